// What is below a shape? Front door: open_shape.
#include "planner/sweep/open_shape.hpp"

#include <algorithm>

#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/repeating_outlook.hpp"
#include "planner/sweep/sharding_family.hpp"
#include "planner/sweep/worst_stage_cache.hpp"

namespace zeroplan {
namespace {

// The points of one shape, node by node.
class OpenShape {
 public:
  OpenShape(SpaceTools& tools, const Cutoff& cutoff, Bytes least, std::span<const Scored> refused)
      : space_(tools.space),
        cutoff_(cutoff),
        found_(space_, cutoff, refused),
        incumbent_(found_.incumbent()),
        out_(found_.result()),
        least_of_shape_(least <= space_.request.cluster.gpu.memory ? least : Bytes{}),
        evaluator_(tools.evaluator),
        bounds_(tools.bounds),
        outlooks_(space_, bounds_, incumbent_),
        enumeration_(tools.enumeration),
        simplicity_(tools.simplicity),
        sums_blocks_(code_of(space_.request.runtime).sums_blocks),
        weighs_time_(cutoff.weighs_time()) {}

  ShapeResult run(const Layout& shape) {
    enumeration_.forget_rejected();
    std::vector<Node> nodes;
    const auto enter = [&](std::size_t depth, const Problem& p) {
      return depth != pass_depth || enter_pass(p);
    };
    const auto visit = [&](const Problem& p) {
      if (may_do(p)) nodes.push_back(node(p));
    };
    enumeration_.below(shape, shape_depth, node_depth, {visit, enter});
    std::vector<const Node*> queue;
    for (const Node& node : nodes) queue.push_back(&node);
    std::stable_sort(queue.begin(), queue.end(),
                     [](const Node* a, const Node* b) { return a->objective < b->objective; });
    for (const Node* node : queue) open(*node);
    return found_.take(enumeration_.rejected());
  }

 private:
  struct Node {
    Layout layout;
    std::int64_t points = 0;
    double seconds = 0;  // a token: the bound
    Bytes device;
    std::int64_t complexity = 0;
    double objective = 0;
  };

  // The complexity of a layout whose first `depth` fields are chosen, where it decides.
  std::int64_t complexity(const Problem& p, std::size_t depth) const {
    return cutoff_.objective == Objective::simplicity ? simplicity_(p, depth).rank() : 0;
  }

  // On Megatron-Core memory is cheap to know: as long as nothing fits, layouts are evaluated, since
  // the smallest of them is told.
  bool weighs_nodes() const { return !cutoff_.exhaustive && !(sums_blocks_ && cutoff_.none_fits); }
  bool weighs_kinds() const { return weighs_nodes() && sums_blocks_; }

  // Whether some recompute may give a plan; else its points are counted.
  bool enter_pass(const Problem& p) {
    if (cutoff_.exhaustive) return true;
    ShapeBound bound{.device = least_of_shape_, .complexity = complexity(p, pass_depth)};
    if (weighs_time_) bound.seconds_per_token = bounds_.pass_time(p) / tokens_of_step(p);
    if (found_.cut(bound, enumeration_.size())) return false;
    bound.device = bounds_.pass_memory(p);
    out_.least_bound = std::min(out_.least_bound.value_or(bound.device), bound.device);
    least_of_pass_ = bound.device;
    if (found_.cut(bound, enumeration_.size())) return false;
    if (weighs_kinds()) outlooks_.weigh(p, bound);
    return true;
  }

  // Whether a node may be worth a look; else its points are counted.
  bool may_do(const Problem& node) {
    if (!weighs_kinds()) return true;
    const Outlook own = outlooks_.outlook(node.layout);
    if (own == Outlook::open) return true;
    found_.reject_unseen(own == Outlook::large, enumeration_.size());
    return false;
  }

  // A node with its floors. The memory of one is not weighed that its time and its pass make
  // hopeless, or that needs least of its pass.
  Node node(const Problem& p) {
    Node n{.layout = p.layout,
           .points = enumeration_.size(),
           .seconds = weighs_time_ ? bounds_.node_time(p) / tokens_of_step(p) : 0,
           .device = least_of_pass_,
           .complexity = complexity(p, node_depth)};
    const bool is_known = p.layout.recompute == Recompute::full;
    if (weighs_nodes() && !is_known && !incumbent_.hopeless({n.seconds, n.device, n.complexity})) {
      n.device = bounds_.memory(p);
    }
    n.objective =
        objective_value(cutoff_.objective, p.cluster.gpus, n.seconds, n.device, n.complexity);
    return n;
  }

  void open(const Node& node) {
    if (found_.cut({node.seconds, node.device, node.complexity}, node.points)) return;
    node_ = &node;
    any_number_ = {};
    const auto visit = [&](const Problem& p) { look_at(p); };
    const auto enter = [&](std::size_t depth, const Problem& p) {
      return depth == group_depth ? enter_group(p) : depth == family_depth ? enter_family(p) : true;
    };
    const auto leave = [&](const Problem& group) { keep_timed(group); };
    enumeration_.below(node.layout, node_depth, point_depth, {visit, enter, leave});
  }

  // Whether anything can be better with a group's layers to recompute; else its points are counted.
  bool enter_group(const Problem& p) {
    if (!cutoff_.exhaustive) {
      const bool is_node = p.layout.recompute_layers == node_->layout.recompute_layers;
      const bool one_time = p.layout.recompute != Recompute::full;
      const bool is_known = !weighs_time_ || (is_node && one_time);
      seconds_ = is_known ? node_->seconds : bounds_.group_time(p) / tokens_of_step(p);
      least_ = node_->device;
      const std::int64_t complexity = this->complexity(p, group_depth);
      const auto is_cut = [&] {
        return found_.cut({seconds_, least_, complexity}, enumeration_.size());
      };
      if (is_cut()) return false;
      if (cutoff_.weighs_memory() && (sums_blocks_ ? !cutoff_.none_fits : !is_node)) {
        if (p.layout.recompute == Recompute::full && sums_blocks_) {
          least_ = std::max(least_, memory_of_any_number(p));
          if (is_cut()) return false;
          const std::int64_t number = p.layout.recompute_layers;
          const std::int64_t layers = number > 0 ? number : every_layer;
          least_ = std::max(least_, bounds_.repeating_memory(p, Repeating::all, {layers, layers}));
          if (is_cut()) return false;
        }
        least_ = bounds_.group_memory(p);
        if (is_cut()) return false;
      }
      padding_ = padding_of_buffers(p);
    }
    known_.emplace(evaluator_.pieces(p));
    worst_stages_.forget();
    known_passes_ = false;
    knows_lean_ = false;
    return true;
  }

  // Of the node's groups that leave other layers alike.
  Bytes memory_of_any_number(const Problem& group) {
    std::optional<Bytes>& known = any_number_[group.layout.selective_rest ? 1 : 0];
    if (!known) known = bounds_.memory_of_any_number(group);
    return *known;
  }

  // Seconds of the group, by the schedule of its passes.
  void sharpen(const Problem& p) {
    if (known_passes_ || !weighs_time_) return;
    seconds_ = std::max(seconds_, passes_seconds(*known_) / tokens_of_step(p));
    known_passes_ = true;
  }

  // Memory is least where all ranks share the states, padding apart: on Megatron-Core, whose other
  // buffers do not depend on who shares.
  bool enter_family(const Problem& p) {
    if (cutoff_.exhaustive) return true;
    const std::int64_t complexity = this->complexity(p, family_depth);
    const auto cut_with = [&](Bytes device) {
      return found_.cut({seconds_, device, complexity}, enumeration_.size());
    };
    if (cut_with(least_)) return false;
    if (!sums_blocks_) {  // where time is cheaper to know than memory
      if (incumbent_.is_bounded()) sharpen(p);
      return !cut_with(least_) && some_may_fit(p);
    }
    const PlanPoint point = known_->point();
    // Narrower groups of Megatron-FSDP, which runs no pipeline, pad their buckets less.
    const bool pads_less = is_megatron_fsdp(p) && enumeration_.size() > 1;
    Bytes least = (pads_less ? least_device(point) : stage_bytes(point, 0).device()) - padding_;
    const bool first_too_large = !cutoff_.none_fits && least > incumbent_.most();
    if (!first_too_large && (!pads_less || cutoff_.none_fits)) {
      memory_ = worst_stages_.find_or_make(point);
    }
    if (!first_too_large && !pads_less) least = memory_.device - padding_;
    if (first_too_large || least > incumbent_.most()) {
      const bool is_point = space_.request.hsdp.value_or(0) == 0;
      out_.evaluated += is_point;
      if (is_point && !first_too_large) keep_least(p);
      out_.rejected[is_point ? too_large : bound_too_large] += enumeration_.size();
      return false;
    }
    sharpen(p);
    return !cut_with(least);
  }

  // Whether not even the leanest points of the family are too large; then its points are counted.
  bool some_may_fit(const Problem& family) {
    if (!knows_lean_) {
      lean_ = family;
      of_lean_.emplace(evaluator_.pieces(lean_));
      knows_lean_ = true;
    }
    lean_.layout = family.layout;
    lean_.runtime = family.runtime;
    const std::vector<Sharding> leanest = leanest_of_family(space_, lean_, evaluator_);
    if (leanest.empty() || enumeration_.size() == std::ssize(leanest)) return true;
    for (const Sharding& sharding : leanest) {
      set_sharding(lean_.layout, sharding);
      derive_flags(space_.request, lean_);
      const PlanPoint point = of_lean_->point();
      const bool is_larger = !cutoff_.none_fits && bounds_.memory(point) > incumbent_.most();
      if (is_larger || is_first_too_large(point)) continue;
      memory_ = worst_stage(point);
      if (memory_.device <= incumbent_.most()) return true;
      keep_least(lean_);
    }
    out_.evaluated += std::ssize(leanest);
    out_.rejected[too_large] += enumeration_.size();
    return false;
  }

  bool is_first_too_large(const PlanPoint& point) const {
    return !cutoff_.none_fits && stage_bytes(point, 0).device() > incumbent_.most();
  }

  void look_at(const Problem& p) {
    const PlanPoint point = known_->point();
    const bool is_dear = !sums_blocks_ && !cutoff_.exhaustive;
    Bytes least = least_;
    // Once plans are known it no longer matters how much too large a layout is.
    if (is_dear && !cutoff_.none_fits) {
      least = bounds_.memory(point);
      if (least > incumbent_.most()) {
        ++out_.rejected[bound_too_large];
        return;
      }
    }
    const std::int64_t complexity = this->complexity(p, point_depth);
    const auto outdone = [&](Bytes device) {
      if (incumbent_.hopeless({seconds_, device, complexity})) return true;
      return weighs_time_ && incumbent_.hopeless({point_time(point, seconds_ * tokens_of_step(p)) /
                                                      tokens_of_step(p),
                                                  device, complexity});
    };
    if (is_dear && incumbent_.is_bounded() && outdone(least)) {
      ++out_.rejected[bound_too_slow];
      out_.untimed = true;
      return;
    }
    ++out_.evaluated;
    if (is_dear && is_first_too_large(point)) {
      ++out_.rejected[too_large];
      return;
    }
    memory_ = worst_stages_.find_or_make(point);
    if (memory_.verdict != Verdict::fits) {
      ++out_.rejected[too_large];
      keep_least(p);
      return;
    }
    Scored scored = scored_by_memory(p);
    if (!cutoff_.exhaustive && outdone(scored.device)) {
      ++out_.feasible;
      out_.untimed = true;
      return;
    }
    if (cutoff_.exhaustive) {
      to_time_.push_back(scored);
      together_.add(point);
    } else {
      scored.seconds = step_seconds(point);
      found_.keep(scored, tokens_of_step(p));
    }
  }

  // Where nothing is bounded, the points of a group are timed together.
  void keep_timed(const Problem& group) {
    const std::vector<double>& seconds = together_.seconds();
    for (std::size_t i = 0; i < to_time_.size(); ++i) {
      to_time_[i].seconds = seconds[i];
      found_.keep(to_time_[i], tokens_of_step(group));
    }
    to_time_.clear();
    together_.clear();
  }

  Scored scored_by_memory(const Problem& p) const {
    return {.layout = p.layout,
            .gpus = p.cluster.gpus,
            .device = memory_.device,
            .complexity = complexity(p, point_depth)};
  }

  void keep_least(const Problem& p) { found_.keep_least(scored_by_memory(p)); }

  const SearchSpace& space_;
  const Cutoff& cutoff_;
  ShapeFindings found_;
  Incumbent& incumbent_;
  ShapeResult& out_;
  // Bytes that all of the shape, of the pass, of the group need at least.
  const Bytes least_of_shape_;
  Bytes least_of_pass_, least_;
  const Evaluator& evaluator_;
  LowerBounds& bounds_;
  RepeatingOutlook outlooks_;  // of the pass
  Enumeration& enumeration_;
  const SimplicityOf& simplicity_;
  const bool sums_blocks_;
  const bool weighs_time_;
  const Node* node_ = nullptr;                      // that is open
  std::array<std::optional<Bytes>, 2> any_number_;  // memory_of_any_number, by selective_rest
  double seconds_ = 0;                              // a token: the bound of the group
  Bytes padding_;                                   // that a family of the group may need more
  bool known_passes_ = false;                       // what its passes take
  std::optional<LayoutPieces> known_;               // of the group
  Problem lean_;                                    // a point of the group while it is weighed
  std::optional<LayoutPieces> of_lean_;
  bool knows_lean_ = false;
  WorstStageCache worst_stages_;
  std::vector<Scored> to_time_;  // of the group
  StepLanes together_;
  WorstStage memory_;  // of the last point
};

}  // namespace

ShapeResult open_shape(SpaceTools& tools,
                       const Layout& shape,
                       const Cutoff& cutoff,
                       Bytes least,
                       std::span<const Scored> refused) {
  return OpenShape(tools, cutoff, least, refused).run(shape);
}

}  // namespace zeroplan
