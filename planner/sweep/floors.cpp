// What can no layout below a node undercut? Front doors: memory_floor, time_floor.
#include "planner/sweep/floors.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/overheads.hpp"
#include "cost_model/recomputed.hpp"
#include "cost_model/stage_memory.hpp"

namespace zeroplan {
namespace {

// What padding can add to a shard: Megatron-Core ends a buffer at a multiple of 128 elements a
// rank, of dense and of expert weights, and each element has up to this many bytes of states.
constexpr std::int64_t padded_elements = 2 * 128;
constexpr std::int64_t most_bytes_an_element = 24;

// Sums in another order than step_time's may differ in their last digits.
constexpr double rounding = 1e-9;

// What the passes of some blocks take at least: kernels with the collectives that nothing hides, or
// the host where that is slower.
struct PassFloor {
  double forward = 0;
  double backward = 0;
  double recompute = 0;  // of one of these blocks
  HostTime host;

  void add(const PassFloor& o, std::int64_t times, std::int64_t recomputed) {
    const auto n = static_cast<double>(times);
    forward += n * o.forward;
    backward += n * o.backward + static_cast<double>(recomputed) * o.recompute;
    host.forward += n * o.host.forward;
    host.backward += n * o.host.backward;
  }
  double seconds() const {
    return std::max(forward, host.forward) + std::max(backward, host.backward);
  }
};

// `alone`: a stage of nothing else.
PassFloor block_floor(const Problem& p, const BlockTime& time, const Stage& alone) {
  PassFloor floor{.forward = time.forward.total(),
                  .backward = (time.input_gradient + time.weight_gradient).total(),
                  .recompute = time.recompute.total(),
                  .host = time.host};
  const auto passes = static_cast<double>(forward_passes(p));
  for (const TimedLoad& load : timed_loads(p, layer_collectives(p, alone))) {
    if (load.behind != Behind::nothing) continue;
    (load.load.during == During::forward ? floor.forward : floor.backward) += load.seconds / passes;
  }
  return floor;
}

// Of the micro-batches that the first stage has in flight when its first backward pass begins, what
// the layers keep. With several chunks a rank the smallest stands for each.
Bytes kept_by_layers(const Problem& p, const Remembered& remembered, const Stage& first) {
  if (p.runtime.kind != Runtime::megatron || !has_step_program(p)) return {};
  const MegatronBlocks& blocks = remembered.blocks(p);
  const bool full = p.layout.recompute == Recompute::full;
  const bool grouped = p.runtime.megatron.recompute_num_layers > 0;  // fewer, or in other groups
  if (full && grouped) return {};
  std::optional<Bytes> least;
  for (const LayerRange& chunk : first.chunks) {
    Bytes kept;
    for (std::int64_t i = chunk.first; i < chunk.last; ++i) {
      const bool moe = kind_of(p.model, i) == LayerKind::moe;
      const auto& block = full ? (moe ? blocks.recomputed_moe : blocks.recomputed_dense)
                               : (moe ? blocks.moe : blocks.dense);
      kept += block->forward.left[Category::activations];
    }
    least = std::min(least.value_or(kept), kept);
  }
  return chunks_in_flight(p, 0) * least.value_or(Bytes{});
}

}  // namespace

Bytes memory_floor(const SearchSpace& space, const Problem& node, const Remembered& remembered) {
  Problem p = node;
  set_value(p.layout, Field::hsdp, choices(space, Field::hsdp, node).front());
  set_value(p.layout, Field::zero, choices(space, Field::zero, node).back());
  set_value(p.layout, Field::offload, choices(space, Field::offload, node).front());
  const std::vector<Stage>& all = remembered.pieces(p).stages;
  const auto states = [&](const Stage& stage) {
    return model_states(p, remembered.weights(), stage).total();
  };
  const Bytes first = states(all.front()) + kept_by_layers(p, remembered, all.front());
  const Bytes padding{padded_elements * most_bytes_an_element};
  const Bytes asked = std::max(Bytes{}, std::max(first, states(all.back())) - padding);
  return asked + usual_fragmentation(p, asked) + communicator_bytes(p) + context_bytes(p);
}

double time_floor(const Problem& p) {
  const BlockTimes blocks = block_times(p);
  const PassFloor embedding = block_floor(p, blocks.embedding, {.embedding = true});
  const PassFloor head = block_floor(p, blocks.head, {.head = true});
  std::array<PassFloor, 2> layers;
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    const LayerKind kind = kind_of(p.model, i);
    PassFloor& layer = layers[static_cast<std::size_t>(kind)];
    if (layer.forward == 0) layer = block_floor(p, blocks.layer(kind), {.chunks = {{i, i + 1}}});
  }

  // A zero-bubble schedule puts off gradients of weights, and DualPipe fills from both ends.
  const bool fills = p.layout.schedule <= Schedule::interleaved;
  const auto passes = static_cast<double>(forward_passes(p));
  double floor = 0;
  double before = 0;  // forward and backward of one chunk on each rank before
  for (const Stage& stage : stages(p)) {
    double all = 0;
    double first = 0;
    for (const LayerRange& chunk : stage.chunks) {
      PassFloor time;
      for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
        const std::int64_t count = layers_of_kind(p.model, chunk.first, chunk.last, kind);
        time.add(layers[static_cast<std::size_t>(kind)], count,
                 recomputed_layers(p, {.chunks = {chunk}}, count));
      }
      if (stage.embedding && chunk.first == 0) time.add(embedding, 1, 0);
      if (stage.head && chunk.last == p.model.layers) time.add(head, 1, 0);
      all += time.seconds();
      if (&chunk == &stage.chunks.front()) first = time.seconds();
    }
    floor = std::max(floor, before + passes * all);
    if (fills) before += first;
  }
  return (1 - rounding) * floor;
}

double update_floor(const Problem& point, const Remembered& remembered) {
  if (point.layout.schedule > Schedule::interleaved) return 0;
  const StageUpdate& update = remembered.update(point, 0);
  const UpdateTime time = update_time(point, remembered.stage_passes(point, 0), update);
  return (1 - rounding) * (time.reductions + update.optimizer + time.gathers);
}

}  // namespace zeroplan
