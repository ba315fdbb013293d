// Which nodes of a pass may be worth a look? Front door: RepeatingOutlook::weigh.
#include "planner/sweep/repeating_outlook.hpp"

#include <algorithm>

namespace zeroplan {

void RepeatingOutlook::weigh(const Problem& pass, const ShapeBound& bound) {
  const auto put = [&](Repeating what, Outlook outlook) {
    known_[static_cast<std::size_t>(what)] = outlook;
  };
  known_ = {};
  for (const std::int64_t policy : choices(space_, Field::recompute, pass)) {
    switch (static_cast<Recompute>(policy)) {
      case Recompute::none:
        put(Repeating::nothing, some(pass, bound, Repeating::nothing, {}));
        break;
      case Recompute::selective:
        put(Repeating::parts, some(pass, bound, Repeating::parts, {}));
        put(Repeating::mlp, some(pass, bound, Repeating::mlp, {}));
        break;
      case Recompute::full:
        put(Repeating::all, with_layers(pass, bound));
    }
  }
}

// What few modules repeat is known to take no more time than nothing, without asking.
Outlook RepeatingOutlook::some(const Problem& pass,
                               ShapeBound bound,
                               Repeating what,
                               RepeatedRange layers) {
  const auto weigh = [&](Bytes device) {
    bound.device = std::max(bound.device, device);
    return incumbent_.is_large(bound.device) ? Outlook::large
           : incumbent_.hopeless(bound)      ? Outlook::slow
                                             : Outlook::open;
  };
  if (what == Repeating::parts || what == Repeating::mlp) {
    const Outlook early = weigh(bounds_.memory_beside_parts(pass, what));
    if (early != Outlook::open) return early;
  }
  const Outlook own = weigh(bounds_.repeating_memory(pass, what, layers));
  if (own != Outlook::open) return own;
  const bool no_more_time = what == Repeating::nothing || what == Repeating::parts;
  if (no_more_time || !incumbent_.cutoff().weighs_time()) return Outlook::open;
  bound.seconds_per_token = bounds_.repeating_time(pass, what, layers) / tokens_of_step(pass);
  return incumbent_.hopeless(bound) ? Outlook::slow : Outlook::open;
}

Outlook RepeatingOutlook::with_layers(const Problem& pass, const ShapeBound& bound) {
  Problem& node = follow(node_, pass);
  set_value(node.layout, Field::recompute, static_cast<std::int64_t>(Recompute::full));
  const std::int64_t all = std::ssize(choices(space_, Field::recompute_layers, node));
  // A number that is given is for the node's own floor.
  return all == 1 ? Outlook::open : with_layers(pass, bound, 1, all, all);
}

// By halves: the fewest layers are a floor of the time, and the most of them one of the memory.
Outlook RepeatingOutlook::with_layers(const Problem& pass,
                                      const ShapeBound& bound,
                                      std::int64_t fewest,
                                      std::int64_t most,
                                      std::int64_t all) {
  const auto number = [&](std::int64_t layers) { return layers == all ? every_layer : layers; };
  const Outlook together =
      some(pass, bound, Repeating::all, {.fewest = number(fewest), .most = number(most)});
  if (together != Outlook::open || fewest == most) return together;
  const std::int64_t middle = (fewest + most) / 2;
  const Outlook fewer = with_layers(pass, bound, fewest, middle, all);
  if (fewer == Outlook::open) return fewer;
  const Outlook more = with_layers(pass, bound, middle + 1, most, all);
  return more == Outlook::open ? more : std::max(fewer, more);
}

}  // namespace zeroplan
