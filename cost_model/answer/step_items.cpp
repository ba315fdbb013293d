// What does a rank do in a step, and in which order? Front door: step_items.
#include "cost_model/answer/step_items.hpp"

#include <algorithm>

#include "cost_model/network/load_list.hpp"

namespace zeroplan {
namespace {

class ItemList {
 public:
  ItemList(const Problem& problem,
           const StageProgram& program,
           const std::vector<Pass>& order,
           std::int64_t micro_batches,
           const std::vector<TimedLoad>& loads)
      : p_(problem),
        program_(program),
        order_(order),
        loads_(loads),
        sent_(problem),
        placed_(loads.size()),
        shown_(micro_batches) {
    out_.passes.resize(order.size());
  }

  StepItems take() {
    play_step(program_, order_,
              {.tensor = [&](const Played& event) { add(event); },
               .call = [&](const PlayedCall& call) { add(call); },
               .kernel = [&](const PlayedKernel& kernel) { add(kernel); }});
    for (std::size_t i = 0; i < loads_.size(); ++i) add_missing(i);
    return std::move(out_);
  }

 private:
  void add(const Played& event) {
    const StepItem item{.block = event.block, .event = out_.events.size()};
    out_.events.push_back(event);
    if (event.phase >= Phase::optimizer_step) {
      out_.at_end.push_back(item);
    } else if (event.pass >= 0) {
      pass(event.pass)->push_back(item);
    } else if (item.event >= program_.resident.size()) {
      out_.before.push_back(item);
    }
  }

  void add(const PlayedCall& played) {
    if (played.phase > Phase::optimizer_step) return;  // a checkpoint's is not of the step
    if (played.call.along_pass) return;                // as those that are missing
    const bool at_end = played.phase == Phase::optimizer_step;
    const CollectiveLoad load = sent_.load_of(at_end ? of_step(played.call) : played.call);
    if (!load.is_sent()) return;
    const auto found = std::ranges::find_if(
        loads_, [&](const TimedLoad& known) { return known.load.is_like(load); });
    if (found == loads_.end()) return;
    placed_[static_cast<std::size_t>(found - loads_.begin())] += played.call.times;
    std::vector<StepItem>& list = load.during == During::step ? out_.at_end : *pass(played.pass);
    list.push_back({.block = played.block, .load = &*found, .times = played.call.times});
  }

  void add(const PlayedKernel& played) {
    if (played.pass < 0) return;
    pass(played.pass)->push_back({.block = played.block, .kernel = played});
  }

  void add_missing(std::size_t i) {
    const CollectiveLoad& load = loads_[i].load;
    if (is_message(load) || gathers_messages(p_, load)) return;
    const bool at_end = load.during == During::step;
    const std::int64_t shown = at_end ? load.calls : load.calls * shown_ / micro_batches(p_);
    const std::int64_t missing = shown - placed_[i];
    if (missing <= 0) return;
    if (at_end) {
      out_.at_end.push_back({.load = &loads_[i], .times = missing});
    } else {
      spread(loads_[i], missing);
    }
  }

  void spread(const TimedLoad& load, std::int64_t calls) {
    std::vector<std::vector<StepItem>*> passes;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const bool fits = load.load.during == During::forward ? order_[i].kind == PassKind::forward
                                                            : makes_input_gradient(order_[i]);
      if (fits) passes.push_back(&out_.passes[i]);
    }
    const std::int64_t count = std::ssize(passes);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t own = (i + 1) * calls / count - i * calls / count;
      spread(load, own, *passes[static_cast<std::size_t>(i)]);
    }
  }

  // What is gathered comes before its part of the pass, what is made in it goes after it.
  static void spread(const TimedLoad& load, std::int64_t calls, std::vector<StepItem>& items) {
    const std::int64_t before = std::ssize(items);
    const bool after = load.load.collective != Collective::all_gather;
    for (std::int64_t i = 0; i < calls; ++i) {
      const auto place = items.begin() + before * (i + after) / calls + i;
      items.insert(
          place,
          {.block = place == items.end() ? -1 : place->block, .load = &load, .along_pass = true});
    }
  }

  std::vector<StepItem>* pass(std::int32_t index) {
    return &out_.passes[static_cast<std::size_t>(index)];
  }

  const Problem& p_;
  const StageProgram& program_;
  const std::vector<Pass>& order_;
  const std::vector<TimedLoad>& loads_;
  LoadList sent_;
  std::vector<std::int64_t> placed_;  // calls of each load
  std::int64_t shown_;                // micro-batches
  StepItems out_;
};

}  // namespace

bool is_message(const CollectiveLoad& load) {
  return load.group.name == "pp";
}

bool gathers_messages(const Problem& problem, const CollectiveLoad& load) {
  return scatters_messages(problem) && load.group.name == "tp" &&
         load.collective == Collective::all_gather && load.during != During::step &&
         load.payload == load.group.ranks * pipeline_message(problem);
}

StepItems step_items(const Problem& problem,
                     const StageProgram& program,
                     const std::vector<Pass>& order,
                     std::int64_t micro_batches,
                     const std::vector<TimedLoad>& loads) {
  return ItemList(problem, program, order, micro_batches, loads).take();
}

}  // namespace zeroplan
