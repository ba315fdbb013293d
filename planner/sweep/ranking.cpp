// Which plans are best? Front doors: BestShapes, ParetoFront.
#include "planner/sweep/ranking.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace zeroplan {
namespace {

// What layouts that cost the same are ordered by: the one with less to set up comes first.
auto simplicity(const Layout& l) {
  return std::tuple(l.offload, l.recompute, l.recompute_modules, l.recompute_layers,
                    l.selective_rest, l.zero, l.hsdp, l.overlap, l.reduce_bucket, l.reshards_all,
                    l.gathered_layers, l.loss_chunks, l.first_stage, l.last_stage, l.cp,
                    l.tp * l.pp, l.pp, l.vpp, l.etp, l.ep, l.micro_batch, !l.sequence_parallel,
                    l.tp_overlap, l.schedule, l.dp, l.tp);
}

auto shape(const Scored& s) {
  const Layout& l = s.layout;
  return std::tuple(s.gpus, l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp);
}

}  // namespace

double objective_value(Objective objective,
                       std::int64_t gpus,
                       double seconds_per_token,
                       Bytes device,
                       std::int64_t complexity) {
  switch (objective) {
    case Objective::step:
      return seconds_per_token;
    case Objective::headroom:
      return static_cast<double>(device.count());
    case Objective::gpus:
      return static_cast<double>(gpus);
    case Objective::cost:
      return static_cast<double>(gpus) * seconds_per_token;
    case Objective::simplicity: {
      constexpr std::int64_t above_devices = std::int64_t{1} << 40;  // bytes
      return static_cast<double>(complexity * above_devices + device.count());
    }
  }
  return 0;
}

bool better(Objective objective, const Scored& a, const Scored& b) {
  const auto key = [&](const Scored& s) {
    return std::tuple(objective_value(objective, s), s.seconds_per_token, s.device, s.gpus,
                      simplicity(s.layout));
  };
  return key(a) < key(b);
}

bool same_plan(const Scored& a, const Scored& b) {
  return a.layout == b.layout && a.gpus == b.gpus;
}

bool same_shape(const Scored& a, const Scored& b) {
  return shape(a) == shape(b);
}

bool same_family(const Scored& a, const Scored& b) {
  const auto family = [](const Scored& s) {
    return std::tuple(s.gpus, s.layout.tp, s.layout.pp, s.layout.ep);
  };
  return family(a) == family(b);
}

bool BestShapes::takes(const Scored& plan) const {
  if (size_ == 0) return false;
  if (plans_.size() == size_ && !better(objective_, plan, plans_.back())) return false;
  const auto old =
      std::find_if(plans_.begin(), plans_.end(), [&](const Scored& p) { return akin(p, plan); });
  return old == plans_.end() || better(objective_, plan, *old);
}

void BestShapes::add(const Scored& plan) {
  if (!takes(plan)) return;
  std::erase_if(plans_, [&](const Scored& p) { return akin(p, plan); });
  const auto before = [&](const Scored& a, const Scored& b) { return better(objective_, a, b); };
  plans_.insert(std::upper_bound(plans_.begin(), plans_.end(), plan, before), plan);
  if (plans_.size() > size_) plans_.pop_back();
}

bool BestShapes::holds(const Scored& plan) const {
  return std::any_of(plans_.begin(), plans_.end(),
                     [&](const Scored& p) { return same_plan(p, plan); });
}

double BestShapes::threshold() const {
  if (plans_.size() < size_) return std::numeric_limits<double>::infinity();
  return objective_value(objective_, plans_.back());
}

void ParetoFront::add(const Scored& plan) {
  const auto slower = [](double seconds, const Scored& p) { return seconds < p.seconds_per_token; };
  // The last one that is no slower is the smallest of those.
  auto next = std::upper_bound(plans_.begin(), plans_.end(), plan.seconds_per_token, slower);
  if (next != plans_.begin()) {
    const Scored& before = *std::prev(next);
    if (before.device < plan.device) return;
    const bool equal =
        before.device == plan.device && before.seconds_per_token == plan.seconds_per_token;
    if (before.device == plan.device && !(equal && better(Objective::step, plan, before))) return;
    if (before.seconds_per_token == plan.seconds_per_token) --next;
  }
  const auto end =
      std::find_if(next, plans_.end(), [&](const Scored& p) { return p.device < plan.device; });
  plans_.insert(plans_.erase(next, end), plan);
}

bool ParetoFront::beats(double seconds_per_token, Bytes device) const {
  const auto next = std::upper_bound(
      plans_.begin(), plans_.end(), seconds_per_token,
      [](double seconds, const Scored& p) { return seconds < p.seconds_per_token; });
  if (next == plans_.begin()) return false;
  const Scored& rival = *std::prev(next);
  return rival.device < device ||
         (rival.device == device && rival.seconds_per_token < seconds_per_token);
}

}  // namespace zeroplan
