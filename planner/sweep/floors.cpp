// What can no layout below a node undercut? Front doors: Floors::memory, Floors::time.
#include "planner/sweep/floors.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/memory/overheads.hpp"
#include "cost_model/recomputed.hpp"
#include "cost_model/stage_memory.hpp"
#include "cost_model/step_time.hpp"

namespace zeroplan {
namespace {

// What padding can add to a shard: Megatron-Core ends a buffer at a multiple of 128 elements a
// rank, of dense and of expert weights, and each element has up to this many bytes of states.
constexpr std::int64_t padded_elements = 2 * 128;
constexpr std::int64_t most_bytes_an_element = 24;

// Sums in another order than step_time's may differ in their last digits.
constexpr double rounding = 1e-9;

// What collectives that nothing hides add to the passes of a stage.
Directions waited_for(const Problem& p, const Stage& stage) {
  Directions waited;
  const auto passes = static_cast<double>(forward_passes(p));
  for (const TimedLoad& load : timed_loads(p, layer_collectives(p, stage))) {
    if (load.behind == Behind::nothing) waited.of(load.load.during) += load.seconds / passes;
  }
  return waited;
}

// `alone`: a stage of nothing else.
PassFloor block_floor(const Problem& p, const BlockTime& time, const Stage& alone) {
  Problem once = p;
  once.layout.recompute = Recompute::none;
  Problem again = p;
  if (p.runtime.megatron.recompute_method == RecomputeMethod::block) {
    again.runtime.megatron.recompute_num_layers = 0;  // this block is recomputed
  }
  const Directions waited = waited_for(once, alone);
  return {.forward = time.forward.total() + waited.forward,
          .backward = (time.input_gradient + time.weight_gradient).total() + waited.backward,
          .recompute = time.recompute.total() + waited_for(again, alone).backward - waited.backward,
          .host = time.host};
}

// Of the micro-batches that the first stage has in flight when its first backward pass begins, what
// the layers keep. With several chunks a rank the smallest stands for each.
Bytes kept_by_layers(const Problem& p, const Remembered& remembered, const Stage& first) {
  if (p.runtime.kind != Runtime::megatron || !has_step_program(p)) return {};
  const MegatronSettings& set = p.runtime.megatron;
  const MegatronBlocks& blocks = remembered.blocks(p);
  const bool full = p.layout.recompute == Recompute::full;
  const bool some = set.recompute_num_layers > 0;
  if (full && some && set.recompute_method != RecomputeMethod::block) return {};  // in groups
  std::optional<Bytes> least;
  for (const LayerRange& chunk : first.chunks) {
    Bytes kept;
    for (std::int64_t i = chunk.first; i < chunk.last; ++i) {
      const bool again = full && (!some || i - chunk.first < set.recompute_num_layers);
      const bool moe = kind_of(p.model, i) == LayerKind::moe;
      const auto& block = again ? (moe ? blocks.recomputed_moe : blocks.recomputed_dense)
                                : (moe ? blocks.moe : blocks.dense);
      kept += block->forward.left[Category::activations];
    }
    least = std::min(least.value_or(kept), kept);
  }
  return chunks_in_flight(p, 0) * least.value_or(Bytes{});
}

}  // namespace

void PassFloor::add(const PassFloor& o, std::int64_t times, std::int64_t recomputed) {
  const auto n = static_cast<double>(times);
  forward += n * o.forward;
  backward += n * o.backward + static_cast<double>(recomputed) * o.recompute;
  host.forward += n * o.host.forward;
  host.backward += n * o.host.backward;
}

Problem with_least_recompute(const SearchSpace& space, Problem node) {
  for (const std::int64_t k : choices(space, Field::recompute_layers, node)) {
    if (k == 0) continue;
    node.layout.recompute_layers = k;
    break;
  }
  derive_flags(space.request, node);
  return node;
}

Bytes Floors::memory(const Problem& node) {
  Problem p = node;
  set_value(p.layout, Field::hsdp, choices(space_, Field::hsdp, node).front());
  set_value(p.layout, Field::offload, choices(space_, Field::offload, node).front());
  const std::vector<Stage>& all = remembered_.pieces(p).stages;
  const Bytes kept = kept_by_layers(p, remembered_, all.front());
  const Bytes padding{padded_elements * most_bytes_an_element};
  std::optional<Bytes> least;
  for (const std::int64_t zero : choices(space_, Field::zero, node)) {
    set_value(p.layout, Field::zero, zero);
    const auto states = [&](const Stage& stage) {
      return model_states(p, remembered_.weights(), stage).total() +
             communication_buffers(p, remembered_.weights(), stage);
    };
    const Bytes needed = std::max(states(all.front()) + kept, states(all.back()));
    least = std::min(least.value_or(needed), needed);
  }
  const Bytes asked = std::max(Bytes{}, least.value_or(Bytes{}) - padding);
  return asked + usual_fragmentation(p, asked) + communicator_bytes(p) + context_bytes(p);
}

const Floors::Blocks& Floors::blocks(const Problem& p) {
  const Layout& l = p.layout;
  const auto [found, added] =
      blocks_.try_emplace({l.micro_batch, l.tp, l.cp, l.ep, l.etp, l.sequence_parallel,
                           static_cast<std::int64_t>(l.recompute)});
  Blocks& floors = found->second;
  if (!added) return floors;
  const BlockTimes& times = remembered_.block_times(p);
  floors.embedding = block_floor(p, times.embedding, {.embedding = true});
  floors.head = block_floor(p, times.head, {.head = true});
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    const LayerKind kind = kind_of(p.model, i);
    PassFloor& layer = kind == LayerKind::moe ? floors.moe : floors.dense;
    if (layer.forward == 0) layer = block_floor(p, times.layer(kind), {.chunks = {{i, i + 1}}});
  }
  return floors;
}

double Floors::time(const Problem& p) {
  const Blocks& floors = blocks(p);
  // A zero-bubble schedule puts off gradients of weights, and DualPipe fills from both ends.
  const bool fills = p.layout.schedule <= Schedule::interleaved;
  const auto passes = static_cast<double>(forward_passes(p));
  double floor = 0;
  double before = 0;  // forward and backward of one chunk on each rank before
  const SharedPieces& pieces = remembered_.pieces(p);
  const double message = p.layout.pp > 1 ? remembered_.message(p) : 0;
  const double exchange = sends_block(p) ? 2 * message : 0;  // of a pass forward and one backward
  double all = 0;    // chunks of the rank
  double first = 0;  // chunk of it
  for (std::size_t i = 0; i < pieces.stages.size(); ++i) {
    const Stage& stage = pieces.stages[i];
    if (pieces.first_alike[i] == i) {
      all = first = 0;
      for (const LayerRange& chunk : stage.chunks) {
        PassFloor time;
        for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
          const std::int64_t count = layers_of_kind(p.model, chunk.first, chunk.last, kind);
          if (count == 0) continue;
          time.add(kind == LayerKind::moe ? floors.moe : floors.dense, count,
                   recomputed_layers(p, {.chunks = {chunk}}, kind));
        }
        if (stage.embedding && chunk.first == 0) time.add(floors.embedding, 1, 0);
        if (stage.head && chunk.last == p.model.layers) time.add(floors.head, 1, 0);
        all += time.seconds();
        if (&chunk == &stage.chunks.front()) first = time.seconds();
      }
    }
    const auto chunks = static_cast<double>(stage.chunks.size());
    floor = std::max(floor, before + passes * (all + chunks * exchange));
    if (fills) before += first + 2 * message;
  }
  return (1 - rounding) * (1 + straggling_part(p.cluster)) * floor;
}

double update_floor(const Problem& point, const Remembered& remembered) {
  if (point.layout.schedule > Schedule::interleaved) return 0;
  const StageUpdate& update = remembered.update(point, 0);
  const UpdateTime time = update_time(point, remembered.stage_passes(point, 0), update);
  return (1 - rounding) * (1 + straggling_part(point.cluster)) *
         (time.reductions + update.optimizer + time.gathers);
}

}  // namespace zeroplan
