// What is below a shape? Front door: Opener::open.
#include "planner/sweep/opening.hpp"

#include <algorithm>
#include <cmath>

#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/family.hpp"
#include "planner/sweep/weighing.hpp"

namespace zeroplan {
namespace {

double tokens(const Problem& p) {
  return static_cast<double>(p.training.global_batch) *
         static_cast<double>(p.training.sequence_length);
}

// The points of one shape, node by node.
class Opening {
 public:
  Opening(const SearchSpace& space,
          const Bar& bar,
          const std::vector<Scored>& refused,
          const Remembered& remembered,
          Floors& floors,
          Enumeration& enumeration)
      : space_(space),
        bar_(bar),
        refused_(refused),
        remembered_(remembered),
        floors_(floors),
        enumeration_(enumeration) {}

  Opened run(const Layout& shape) {
    enumeration_.forget_rejected();
    std::vector<Node> nodes;
    enumeration_.below(shape, shape_depth, node_depth,
                       {[&](const Problem& p) { nodes.push_back(node(p)); }});
    std::vector<const Node*> queue;
    for (const Node& node : nodes) queue.push_back(&node);
    std::stable_sort(queue.begin(), queue.end(),
                     [](const Node* a, const Node* b) { return a->objective < b->objective; });
    for (const Node* node : queue) open(*node);
    out_.front = front_.plans();
    for (const auto& [rule, count] : enumeration_.rejected()) out_.rejected[rule] += count;
    return std::move(out_);
  }

 private:
  struct Node {
    Layout layout;
    std::int64_t points = 0;
    double seconds = 0;  // a token: the floor
    Bytes device;
    double objective = 0;
  };

  Node node(const Problem& p) {
    Node n{.layout = p.layout,
           .points = enumeration_.size(),
           .seconds = floors_.node_time(p) / tokens(p),
           .device = bar_.weighs_memory() ? floors_.memory(p) : Bytes{}};
    n.objective = objective_value(bar_.objective, p.cluster.gpus, n.seconds, n.device);
    if (bar_.weighs_memory())
      out_.least_floor = std::min(out_.least_floor.value_or(n.device), n.device);
    return n;
  }

  void open(const Node& node) {
    const std::int64_t gpus = space_.request.cluster.gpus;
    if (cut(gpus, node.seconds, node.device, node.points)) return;
    const auto visit = [&](const Problem& p) { look_at(p); };
    const auto enter = [&](std::size_t depth, const Problem& p) {
      return depth == group_depth ? enter_group(p) : depth == family_depth ? enter_family(p) : true;
    };
    const auto leave = [&](const Problem& group) { keep_timed(group); };
    enumeration_.below(node.layout, node_depth, point_depth, {visit, enter, leave});
  }

  // Whether nothing with these floors is worth a look; then its points are counted.
  bool cut(std::int64_t gpus, double seconds, Bytes device, std::int64_t points) {
    if (bar_.exhaustive) return false;
    const bool large = device > space_.request.cluster.gpu.memory;
    if (!large && !hopeless(gpus, seconds, device)) return false;
    out_.rejected[large ? floor_too_large : floor_too_slow] += points;
    out_.untimed |= !large;
    return true;
  }

  // One plan of a shape is enough: the best found so far is a bar too.
  bool hopeless(std::int64_t gpus, double seconds, Bytes device) const {
    const double value = objective_value(bar_.objective, gpus, seconds, device);
    return value > std::min(bar_.threshold, own_) &&
           (bar_.front == nullptr || front_.beats(seconds, device) ||
            bar_.front->beats(seconds, device));
  }

  // Layers to recompute with which nothing can be better.
  bool enter_group(const Problem& p) {
    if (!bar_.exhaustive) {
      seconds_ = floors_.group_time(p) / tokens(p);
      const Bytes device = bar_.weighs_memory() ? floors_.memory(p) : Bytes{};
      if (cut(p.cluster.gpus, seconds_, device, enumeration_.size())) return false;
      padding_ = padding_of_buffers(p);
    }
    known_.emplace(remembered_.of(p));
    weighing_.forget();
    known_passes_ = false;
    return true;
  }

  // Memory is least where all ranks share the states, padding apart: on Megatron-Core, whose other
  // buffers do not depend on who shares.
  bool enter_family(const Problem& p) {
    if (bar_.exhaustive) return true;
    if (!code_of(p).sums_blocks) return some_may_fit(p);
    const Bytes capacity = p.cluster.gpu.memory;
    // Once plans are known it no longer matters how much too large a layout is.
    const bool first_too_large =
        !bar_.none_fits && stage_bytes(known_->exchanged(), 0).device() - padding_ > capacity;
    if (!first_too_large) memory_ = weighing_.of(known_->exchanged());
    const Bytes least = memory_.device - padding_;
    if (first_too_large || least > capacity) {
      const bool is_point = space_.request.hsdp.value_or(0) == 0;
      out_.evaluated += is_point;
      if (is_point && !first_too_large) keep_least(p);
      out_.rejected[is_point ? too_large : floor_too_large] += enumeration_.size();
      return false;
    }
    if (!known_passes_) {
      seconds_ = std::max(seconds_, passes_seconds(*known_) / tokens(p));
      known_passes_ = true;
    }
    return !cut(p.cluster.gpus, seconds_, least, enumeration_.size());
  }

  // Whether not even the leanest points of the family are too large; then its points are counted.
  bool some_may_fit(const Problem& family) {
    const std::vector<Problem> leanest = leanest_of_family(space_, family, remembered_);
    if (leanest.empty() || enumeration_.size() == std::ssize(leanest)) return true;
    for (const Problem& p : leanest) {
      memory_ = worst_stage(p, remembered_);
      if (memory_.device <= p.cluster.gpu.memory) return true;
      keep_least(p);
    }
    out_.evaluated += std::ssize(leanest);
    out_.rejected[too_large] += enumeration_.size();
    return false;
  }

  void look_at(const Problem& p) {
    ++out_.evaluated;
    const Exchanged point = known_->exchanged();
    memory_ = weighing_.of(point);
    if (memory_.verdict != Verdict::fits) {
      ++out_.rejected[too_large];
      keep_least(p);
      return;
    }
    Scored scored = scored_by_memory(p);
    const auto outdone = [&](double seconds) {
      return hopeless(scored.gpus, seconds, scored.device);
    };
    if (!bar_.exhaustive &&
        (outdone(seconds_) || outdone(point_time(point, seconds_ * tokens(p)) / tokens(p)))) {
      ++out_.feasible;
      out_.untimed = true;
      return;
    }
    if (bar_.exhaustive) {
      to_time_.push_back(scored);
      together_.add(point);
    } else {
      scored.seconds = step_seconds(point);
      keep(scored, tokens(p));
    }
  }

  // Where nothing is bounded, the points of a group are timed together.
  void keep_timed(const Problem& group) {
    const std::vector<double>& seconds = together_.seconds();
    for (std::size_t i = 0; i < to_time_.size(); ++i) {
      to_time_[i].seconds = seconds[i];
      keep(to_time_[i], tokens(group));
    }
    to_time_.clear();
    together_.clear();
  }

  void keep(Scored scored, double tokens) {
    if (!std::isfinite(scored.seconds)) {
      ++out_.rejected[no_network];
      return;
    }
    ++out_.feasible;
    scored.seconds_per_token = scored.seconds / tokens;
    front_.add(scored);
    const double value =
        objective_value(bar_.objective, scored.gpus, scored.seconds_per_token, scored.device);
    const bool worse = out_.best && !better(bar_.objective, scored, *out_.best);
    if (value > bar_.threshold || worse || is_refused(scored)) return;
    out_.best = scored;
    own_ = value;
  }

  bool is_refused(const Scored& plan) const {
    return std::any_of(refused_.begin(), refused_.end(), [&](const Scored& refused) {
      return refused.layout.micro_batch == plan.layout.micro_batch &&
             refused.layout.recompute == plan.layout.recompute && refused.device <= plan.device;
    });
  }

  Scored scored_by_memory(const Problem& p) const {
    return {.layout = p.layout, .gpus = p.cluster.gpus, .device = memory_.device};
  }

  void keep_least(const Problem& p) {
    if (!out_.least || memory_.device < out_.least->device) out_.least = scored_by_memory(p);
  }

  const SearchSpace& space_;
  const Bar& bar_;
  const std::vector<Scored>& refused_;
  const Remembered& remembered_;
  Floors& floors_;
  Enumeration& enumeration_;
  Opened out_;
  ParetoFront front_;
  double own_ = std::numeric_limits<double>::infinity();  // of the best
  double seconds_ = 0;                                    // a token: the floor of the group
  Bytes padding_;                                         // that a family of it may need more
  bool known_passes_ = false;                             // what its passes take
  std::optional<Recalled> known_;                         // of the group
  Weighing weighing_;
  std::vector<Scored> to_time_;  // of the group
  StepsTogether together_;
  WorstStage memory_;  // of the last point
};

}  // namespace

Opener::Opener(const std::vector<SearchSpace>& spaces) : remembered_(spaces.front().request.model) {
  for (const SearchSpace& space : spaces) tools_.emplace_back(space, remembered_);
}

ShapeFloor Opener::floor(std::size_t space, const Layout& shape, bool weighs_memory) {
  Tools& tools = tools_[space];
  remembered_.trim();
  std::optional<ShapeFloor> least;
  const auto lower = [&](ShapeFloor floor) {
    if (!least) least = floor;
    least->seconds_per_token = std::min(least->seconds_per_token, floor.seconds_per_token);
    least->device = std::min(least->device, floor.device);
  };
  const auto at_node = [&](const Problem& p) {
    lower({tools.floors.node_time(p) / tokens(p), tools.floors.memory(p)});
  };
  const auto at_pass = [&](const Problem& p) {
    lower({tools.floors.pass_time(p) / tokens(p), {}});
  };
  if (weighs_memory) {
    tools.enumeration.below(shape, shape_depth, node_depth, {at_node});
  } else {
    tools.enumeration.below(shape, shape_depth, pass_depth, {at_pass});
  }
  return least.value_or(ShapeFloor{});
}

std::optional<Estimate> Opener::played(std::size_t space, const Scored& plan) const {
  const Request& request = tools_[space].space.request;
  Problem p = open_problem(request);
  p.layout = plan.layout;
  derive(request, p);
  return played_where_it_fits(p, remembered_);
}

Opened Opener::open(std::size_t space,
                    const Layout& shape,
                    const Bar& bar,
                    const std::vector<Scored>& refused) {
  Tools& tools = tools_[space];
  remembered_.trim();
  return Opening(tools.space, bar, refused, remembered_, tools.floors, tools.enumeration)
      .run(shape);
}

}  // namespace zeroplan
