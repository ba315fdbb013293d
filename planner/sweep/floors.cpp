// What can no layout below a node undercut? Front doors: Floors::memory, Floors::node_time.
#include "planner/sweep/floors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/memory/overheads.hpp"
#include "cost_model/recomputed.hpp"
#include "cost_model/stage_memory.hpp"
#include "cost_model/step_time.hpp"

namespace zeroplan {
namespace {

// Sums in another order than step_time's may differ in their last digits.
constexpr double rounding = 1e-9;

PassFloor block_floor(const TimedBlock& block) {
  const BlockTime& time = block.kernels;
  return {.forward = time.forward.total() + block.loads.waited.forward,
          .backward =
              (time.input_gradient + time.weight_gradient).total() + block.loads.waited.backward,
          .recompute = time.recompute.total() + block.repeated.waited.backward,
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

Bytes Floors::memory(const Problem& node) {
  Problem p = node;
  const std::int64_t group = choices(space_, Field::hsdp, node).front();
  p.layout.hsdp = group > 0 && p.layout.dp % group == 0 ? group : 0;  // none is legal: any floor
  set_value(p.layout, Field::offload, choices(space_, Field::offload, node).front());
  const std::vector<Stage>& all = remembered_.of(p).stages();
  const Bytes kept = kept_by_layers(p, remembered_, all.front());
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
  const Bytes asked = std::max(Bytes{}, least.value_or(Bytes{}) - padding_of_buffers(p));
  return asked + usual_fragmentation(p, asked) + communicator_bytes(p) + context_bytes(p);
}

Floors::Blocks Floors::blocks(const Problem& p) const {
  const BlockTimes& times = remembered_.block_times(p);
  return {.embedding = block_floor(times.embedding),
          .dense = block_floor(times.dense),
          .moe = block_floor(times.moe),
          .head = block_floor(times.head)};
}

double Floors::chunk_seconds(const Problem& p,
                             const Blocks& floors,
                             const Chunk& chunk,
                             std::int64_t recomputed) {
  PassFloor time;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const LayerRange& range = chunk.layers;
    const std::int64_t count = layers_of_kind(p.model, range.first, range.last, kind);
    if (count == 0) continue;
    const std::int64_t again =
        recomputed == as_problem_says
            ? recomputed_layers(p, range, kind)
            : layers_of_kind(p.model, range.first, std::min(range.last, range.first + recomputed),
                             kind);
    time.add(kind == LayerKind::moe ? floors.moe : floors.dense, count, again);
  }
  if (chunk.embedding) time.add(floors.embedding, 1, 0);
  if (chunk.head) time.add(floors.head, 1, 0);
  return time.seconds();
}

double Floors::message(const Problem& p) {
  if (p.layout.pp == 1) return 0;
  const Layout& l = p.layout;
  const auto [found, added] = messages_.try_emplace(
      {l.micro_batch, l.tp, l.cp, l.pp, l.sequence_parallel, p.training.sequence_length}, 0.0);
  if (added) found->second = message_seconds(p);
  return found->second;
}

double Floors::time(const Problem& p, std::int64_t recomputed) {
  // A zero-bubble schedule puts off gradients of weights, and DualPipe fills from both ends.
  const bool fills = p.layout.schedule <= Schedule::interleaved;
  return (1 - rounding) * (1 + straggling_part(p.cluster)) *
         (fills ? filling_time(p, recomputed) : longest_time(p, recomputed));
}

double Floors::filling_time(const Problem& p, std::int64_t recomputed) {
  const auto ranks = static_cast<std::size_t>(p.layout.pp);
  const auto passes = static_cast<double>(forward_passes(p));
  const double message = this->message(p);
  const bool blocking = sends_block(p);
  const Blocks floors = blocks(p);
  ranks_.assign(ranks, {});
  const std::vector<std::int64_t> sizes = chunk_sizes(p);
  Chunk chunk;
  std::optional<Chunk> known;
  double seconds = 0;  // of the known one, and of all that hold as many layers of one kind
  const bool one_kind = !p.model.moe || p.model.layer_kinds.empty();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    chunk.layers = {chunk.layers.last, chunk.layers.last + sizes[i]};
    chunk.embedding = i == 0;
    chunk.head = i + 1 == sizes.size();
    const bool same = one_kind && known && known->embedding == chunk.embedding &&
                      known->head == chunk.head &&
                      known->layers.last - known->layers.first == sizes[i];
    if (!same) {
      seconds = chunk_seconds(p, floors, chunk, recomputed);
      known = chunk;
    }
    // Forward for the chunk after it, backward for the one before.
    const double exchange = message * static_cast<double>((i + 1 < sizes.size()) + (i > 0));
    RankFloor& rank = ranks_[i % ranks];
    rank.all += seconds + (blocking ? exchange : 0);
    if (i < ranks) rank.first = seconds + (blocking ? exchange : 2 * message);
  }
  double floor = 0;
  double before = 0;  // forward and backward of one chunk on each rank before
  for (const RankFloor& rank : ranks_) {
    floor = std::max(floor, before + passes * rank.all);
    before += rank.first;
  }
  return floor;
}

double Floors::longest_time(const Problem& p, std::int64_t recomputed) {
  const auto passes = static_cast<double>(forward_passes(p));
  const Blocks floors = blocks(p);
  double longest = 0;
  for (const Stage& stage : stages(p)) {
    double all = 0;
    for (const LayerRange& range : stage.chunks) {
      all += chunk_seconds(p, floors,
                           {.layers = range,
                            .embedding = stage.embedding && range.first == 0,
                            .head = stage.head && range.last == p.model.layers},
                           recomputed);
    }
    longest = std::max(longest, passes * all);
  }
  return longest;
}

double Floors::node_time(const Problem& node) {
  if (node.layout.recompute != Recompute::full) return time(node);
  for (const std::int64_t k : choices(space_, Field::recompute_layers, node)) {
    if (k > 0) return time(node, k);
  }
  return time(node);
}

double Floors::pass_time(const Problem& pass) {
  const std::int64_t least = choices(space_, Field::recompute, pass).front();
  if (static_cast<Recompute>(least) == Recompute::none) return node_time(pass);
  Problem node = pass;
  set_value(node.layout, Field::recompute, least);
  double floor = std::numeric_limits<double>::infinity();
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    derive_flags(space_.request, node);
    floor = std::min(floor, node_time(node));
  }
  return floor;
}

double passes_seconds(const Recalled& group) {
  const std::vector<double>& finished = group.finished({});
  return (1 - rounding) * (1 + straggling_part(group.problem().cluster)) *
         *std::max_element(finished.begin(), finished.end());
}

Bytes padding_of_buffers(const Problem& problem) {
  constexpr std::int64_t buffer_alignment = 128;
  constexpr std::int64_t most_bytes_an_element = 24;
  const ShardWidths widths = shard_widths(problem);
  return Bytes{most_bytes_an_element * (std::lcm(widths.dense, buffer_alignment) +
                                        std::lcm(widths.expert, buffer_alignment))};
}

double update_floor(const Recalled& point) {
  const Problem& p = point.problem();
  if (p.layout.schedule > Schedule::interleaved) return 0;
  const UpdateLoads& update = point.update_loads(0);
  const UpdateTime time = update_time(p, point.passes(0), update);
  return (1 - rounding) * (1 + straggling_part(p.cluster)) *
         (time.reductions + update.optimizer + time.gathers);
}

}  // namespace zeroplan
