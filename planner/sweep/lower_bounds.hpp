#pragma once
// What no completion of a node can be below, in time and in memory: the bounds of branch and bound.
// Admissible means: never above what the evaluation itself returns.

#include <boost/container/small_vector.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost_model/pipeline/straggling.hpp"
#include "cost_model/remember/layout_pieces.hpp"
#include "planner/sweep/kept_layers.hpp"

namespace zeroplan {

/// What passes of some blocks take at least: kernels with the collectives that nothing hides, or
/// the host where that is slower.
struct PassBound {
  double forward = 0;
  double backward = 0;
  double recompute = 0;  // of one of these blocks
  double lesser = 0;     // of a block that repeats less
  HostTime host;

  void add(const PassBound& blocks, std::int64_t times, std::int64_t recomputed);
  double seconds() const {
    return std::max(forward, host.forward) + std::max(backward, host.backward);
  }
};

/// Lower bounds of the nodes and groups of one space. Not for use by several threads at once.
class LowerBounds {
 public:
  /// The space and the evaluator must outlive this object.
  LowerBounds(const SearchSpace& space, const Evaluator& evaluator)
      : space_(space),
        evaluator_(evaluator),
        kept_(space, evaluator),
        straggling_(straggling_part(space.request.cluster)) {}

  /// Bytes that every layout below a node or a group needs on some stage: parameters, gradients and
  /// optimizer states with the most sharding and offload that are still open; on the first stage of
  /// Megatron-Core and FSDP2 what its layers keep of the micro-batches in flight; what the
  /// allocator usually wastes on these; communicators and CUDA context. Nothing for most buffers
  /// and what comes and goes. A worst stage needs at least what any one stage does, and wider
  /// groups leave smaller shards, padding apart, which is subtracted.
  Bytes memory(const Problem& node);
  /// Bytes that every layout below a group needs: on Megatron-Core all that its worst stage does.
  Bytes group_memory(const Problem& group);
  /// Bytes that on Megatron-Core every layout below a group needs, and below each like it that
  /// repeats another number of layers whole.
  Bytes memory_of_any_number(const Problem& group);
  /// Bytes that one point needs at least.
  Bytes memory(const PlanPoint& point);
  /// Bytes that all nodes need which differ in recompute alone: where all of each layer may be
  /// repeated, that keeps least.
  Bytes pass_memory(const Problem& pass);
  /// Bytes that those nodes of a pass on Megatron-Core need which repeat alike.
  Bytes repeating_memory(const Problem& pass, Repeating what, RepeatedRange layers = {});
  /// No more bytes than that, known sooner, of nodes that repeat parts of layers.
  Bytes memory_beside_parts(const Problem& pass, Repeating what);
  /// Seconds that those nodes of a pass on Megatron-Core need which repeat alike.
  double repeating_time(const Problem& pass, Repeating what, RepeatedRange layers = {});
  /// A lower floor of the bytes of a pass, at next to no cost: what FSDP2 needs whatever the tokens
  /// are, of the states and of what a pipeline gathers of them. Nothing of other runtimes.
  Bytes states_memory(const Problem& pass);

  /// Seconds that every layout below a group needs: each rank runs all its passes one after the
  /// other, with the collectives that nothing hides, and under a pipeline the first of a rank waits
  /// for the ranks before it, which after its last still have theirs to do; the slowest GPU makes
  /// the others wait. Gradients, parameters and the optimizer take no time. Narayanan et al. 2021,
  /// section 2.2, without assuming equal stages.
  double group_time(const Problem& group) { return time(group); }

  /// Seconds that every layout below a node needs: with the fewest layers to recompute that are
  /// open, its passes are the shortest.
  double node_time(const Problem& node);

  /// Seconds that all nodes need which differ in recompute alone: the first choice repeats least.
  double pass_time(const Problem& pass);

 private:
  Bytes least_of_zeros(const Problem& group, Bytes (*device)(const PlanPoint&));
  struct Blocks {
    PassBound embedding, head;
    ByKind<PassBound> layers;
  };
  const Blocks& blocks(const Problem& node);

  struct Chunk {
    LayerRange layers;
    ByKind<std::int64_t> of_kind;
    bool embedding = false;
    bool head = false;
  };
  static Chunk chunk_of(const ModelSpec& model, const LayerRange& layers);
  // Neighbouring ranks whose chunks are alike.
  struct Ranks {
    std::int64_t count = 0;
    std::vector<std::size_t> chunks;  // by their kinds, in the order of the rank
    friend bool operator==(const Ranks&, const Ranks&) = default;
  };
  // A model cut into chunks that go round the ranks.
  struct Cut {
    std::vector<Chunk> kinds;  // the first chunk of each kind
    std::vector<Ranks> runs;
  };
  const Cut& cut(const Problem& node);

  static constexpr std::int64_t as_problem_says = -1;
  static double chunk_seconds(const Problem& p,
                              const Blocks& bounds,
                              const Chunk& chunk,
                              std::int64_t recomputed);
  double message(const Problem& p);

  // Activations that a layer keeps, and what its backward pass needs at most above its start.
  struct LayerBytes {
    Bytes kept, backward;
  };
  const LayerBytes& layer_bytes(const Problem& p, LayerKind kind, RepeatSet repeated);
  using RepeatSets = boost::container::small_vector<RepeatSet, 3>;
  LayerBytes least_layer(const Problem& p, LayerKind kind, const RepeatSets& sets);
  Bytes kept_by_eager_layers(const Problem& p, const Stage& first);
  Bytes find_kept_by_eager_layers(const Problem& p, const Stage& first);
  std::pair<Bytes, Bytes> asked(const PlanPoint& point);

  // What the memory of nodes that differ in recompute alone has in common; of other runtimes than
  // Megatron-Core, whose layers are not added to it, of nodes that differ in nothing.
  struct WithoutRecompute {
    Values zeros = {};  // ZeRO stages that may need least
    const Stage* first = nullptr;
    std::vector<std::pair<Bytes, Bytes>> of_stages = {};  // first and last, by ZeRO stage
    Bytes padding = {};
    Bytes outside = {};
  };
  Problem& lean(const Problem& node);
  WithoutRecompute find_without_recompute(Problem& lean);
  const WithoutRecompute& without_micro_batch(const Problem& node);
  const WithoutRecompute& without_recompute(const Problem& node);
  Bytes with_kept(const WithoutRecompute& known, Bytes kept) const;
  Bytes find_states_memory(const Problem& pass);

  // `recomputed`: layers of each chunk.
  double time(const Problem& p, std::int64_t recomputed = as_problem_says);
  double filling_time(const Problem& p, std::int64_t recomputed);
  double longest_time(const Problem& p, std::int64_t recomputed);

  // What nodes of equal degrees share, by what else tells their blocks apart. Only of the last
  // degrees: of all it would cost more to find than to make.
  template <std::size_t degrees, class Key, class Value>
  struct OfDegrees {
    Numbers<degrees> last{};
    std::unordered_map<Key, Value, NumbersHash> known = {};
    auto& at(const Numbers<degrees>& asked) {
      if (asked != last) known.clear();
      last = asked;
      return known;
    }
  };
  const SearchSpace& space_;
  const Evaluator& evaluator_;
  KeptLayers kept_;
  bool asked_ = false;              // whether blocks were asked about
  double straggling_;               // as a part of a step
  std::optional<Problem> leanest_;  // while its memory is weighed
  std::optional<Problem> node_;     // of a pass
  WithoutRecompute asked_about_;
  Layout last_asked_;
  TrainingSpec last_training_;
  std::unordered_map<Numbers<11>, WithoutRecompute, NumbersHash> without_recompute_;
  OfDegrees<7, Numbers<5>, Blocks> blocks_;
  Numbers<4> last_cut_key_{};
  const Cut* last_cut_ = nullptr;
  // What the eager layers of the last layout keep, however its states were exchanged.
  Layout keeping_;
  std::int64_t batch_keeping_ = 0;
  Bytes kept_by_eager_;
  std::unordered_map<Numbers<8>, LayerBytes, NumbersHash> layer_bytes_;
  std::unordered_map<Numbers<10>, Bytes, NumbersHash> states_memory_;
  std::unordered_map<Numbers<4>, Cut, NumbersHash> cuts_;
  std::unordered_map<Numbers<6>, double, NumbersHash> messages_;
  std::vector<double> seconds_;  // of each kind of chunk, while they are added up
};

/// Seconds until the last pass of a group has ended, by its schedule: as admissible, sharper and
/// dearer than group_time. Less where the step is continued, by what that may be off.
double passes_seconds(const LayoutPieces& group);

/// Bytes by which a wider sharding group can need more than a narrower one of the same layout:
/// Megatron-Core ends its buffers, one of dense and one of expert weights, at multiples of 128
/// elements and of the group's ranks.
Bytes padding_of_buffers(const Problem& problem);

/// Seconds that a point needs: the longest passes of a stage, with what updates add to them, or
/// `passes`, the seconds of a floor of its group; and what the first stage, whose last backward
/// pass ends no earlier, still waits for gradients and parameters and updates them. Not the latter
/// under schedules whose first stage may be done before others.
double point_time(const PlanPoint& point, double passes);

}  // namespace zeroplan
