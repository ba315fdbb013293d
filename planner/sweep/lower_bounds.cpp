// What can no layout below a node undercut? Front doors: LowerBounds::memory,
// LowerBounds::node_time.
#include "planner/sweep/lower_bounds.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/rounds.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {
namespace {

// Sums in another order than step_time's may differ in their last digits.
constexpr double rounding = 1e-9;

PassBound block_floor(const TimedBlock& block) {
  const BlockTime& time = block.kernels;
  return {.forward = time.forward.total() + block.loads.waited.forward,
          .backward =
              (time.input_gradient + time.weight_gradient).total() + block.loads.waited.backward,
          .recompute = time.recompute.total() + block.repeated.waited.backward,
          .host = time.host};
}

// What the layers of one micro-batch keep on the first stage of Megatron-Core. With several chunks
// a rank the smallest stands for each.
Bytes kept_by_chunk(const Problem& p, const Evaluator& evaluator, const Stage& first) {
  const MegatronBlocks& blocks = evaluator.blocks(p);
  std::optional<Bytes> least;
  const LayerRange* before = nullptr;
  for (const LayerRange& chunk : first.chunks) {
    if (before != nullptr && alike_layers(p.model, *before, chunk)) continue;
    before = &chunk;
    Bytes kept;
    for (const Run& run : megatron_layers(p, blocks, chunk)) {
      kept += run.count * run.block->forward.left[Category::activations];
    }
    least = std::min(least.value_or(kept), kept);
  }
  return least.value_or(Bytes{});
}

// What tells the blocks of a node from those of others of its shape.
std::int64_t blocks_key(const Layout& l) {
  std::int64_t key = l.recompute_layers;
  const auto add = [&](std::int64_t value, int bits) { key = (key << bits) + value; };
  add(l.sequence_parallel, 1);
  add(l.tp_overlap, 1);
  add(static_cast<std::int64_t>(l.schedule), 3);
  add(static_cast<std::int64_t>(l.recompute), 2);
  add(l.recompute_modules, 8);
  add(l.loss_chunks, 24);
  return key;
}

// A copy of the problem, of which a search changes no more than this: the rest is costly to copy.
Problem& follow(std::optional<Problem>& copy, const Problem& p) {
  if (!copy) copy = p;
  copy->layout = p.layout;
  copy->runtime = p.runtime;
  copy->training = p.training;
  return *copy;
}

Bytes outside_bytes(const Problem& p) {
  return communicator_bytes(p) + context_bytes(p);
}

// On the device, where the allocator is asked for so many.
Bytes device_bytes(const Problem& p, Bytes asked, Bytes outside) {
  return asked + usual_fragmentation(p, asked) + outside;
}

}  // namespace

void PassBound::add(const PassBound& o, std::int64_t times, std::int64_t recomputed) {
  const auto n = static_cast<double>(times);
  forward += n * o.forward;
  backward += n * o.backward + static_cast<double>(recomputed) * o.recompute;
  host.forward += n * o.host.forward;
  host.backward += n * o.host.backward;
}

// What depends on neither the sharding, nor on how layers are cut into stages.
const LowerBounds::LayerBytes& LowerBounds::layer_bytes(const Problem& p, LayerKind kind) {
  const Layout& l = p.layout;
  const auto [found, added] = layer_bytes_.try_emplace(
      {l.tp, l.cp, l.ep, l.etp, l.micro_batch, l.sequence_parallel,
       static_cast<std::int64_t>(l.recompute), static_cast<std::int64_t>(kind)});
  if (!added) return found->second;
  std::int64_t layer = 0;
  while (layers_of_kind(p.model, layer, layer + 1, kind) == 0) ++layer;
  const StageProgram alone = evaluator_.stage_program(p, {.chunks = {{layer, layer + 1}}});
  LayerBytes& bytes = found->second;
  for (const Run& run : alone.chunks.front().runs) {
    bytes.kept += run.count * run.block->forward.left[Category::activations];
    const Moment peak =
        run.block->backward_with(BackwardPart::whole, {.input = true, .output_grad = true}).peak;
    bytes.backward = std::max(bytes.backward,
                              peak.live[Category::activations] + peak.live[Category::temporaries]);
  }
  return bytes;
}

// The same of the layers of FSDP2, where all of them repeat alike; and above that what the first
// backward pass of a layer needs.
Bytes LowerBounds::kept_by_eager_layers(const Problem& p, const Stage& first) {
  Layout layout = p.layout;
  set_sharding(layout, {});
  const std::int64_t batch = p.training.global_batch;
  if (layout == keeping_ && batch == batch_keeping_) return kept_;
  kept_ = find_kept_by_eager_layers(p, first);
  keeping_ = layout;
  batch_keeping_ = batch;
  return kept_;
}

Bytes LowerBounds::find_kept_by_eager_layers(const Problem& p, const Stage& first) {
  if (repeated_layers(p).every > 0 || p.layout.schedule > Schedule::interleaved) return {};
  std::optional<Bytes> least, backward;
  for (const LayerRange& chunk : first.chunks) {
    Bytes kept;
    for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
      const std::int64_t count = layers_of_kind(p.model, chunk.first, chunk.last, kind);
      if (count == 0) continue;
      const LayerBytes& layer = layer_bytes(p, kind);
      kept += count * layer.kept;
      backward = std::min(backward.value_or(layer.backward), layer.backward);
    }
    least = std::min(least.value_or(kept), kept);
  }
  return chunks_in_flight(p, 0) * least.value_or(Bytes{}) + backward.value_or(Bytes{});
}

Bytes LowerBounds::memory(const Problem& node) {
  const WithoutRecompute& known = without_recompute(node);
  const Problem& p = *leanest_;
  const Bytes kept = kept_by_layers(p, *known.first);
  std::optional<Bytes> least;
  for (const auto& [first, last] : known.of_stages) {
    const Bytes asked = std::max(first + kept, last);
    least = std::min(least.value_or(asked), asked);
  }
  return device_bytes(p, std::max(Bytes{}, *least - known.padding), known.outside);
}

LowerBounds::OfShape& LowerBounds::of_shape(const Problem& node) {
  const Layout& l = node.layout;
  const Numbers<8> degrees{node.cluster.gpus, l.micro_batch, l.tp, l.cp, l.pp, l.ep, l.etp, l.vpp};
  if (degrees != of_shape_.degrees) {
    of_shape_.degrees = degrees;
    of_shape_.blocks.clear();
    of_shape_.kept.clear();
  }
  return of_shape_;
}

// Of the micro-batches that the first stage has in flight when its first backward pass begins.
Bytes LowerBounds::kept_by_layers(const Problem& p, const Stage& first) {
  if (!code_of(p).sums_blocks) return {};
  const MegatronSettings& set = p.runtime.megatron;
  const bool in_groups = p.layout.recompute == Recompute::full && set.recompute_num_layers > 0 &&
                         set.recompute_method != RecomputeMethod::block;
  if (in_groups) return {};
  // Where the first two stand, so do the others: stages are alike from round to round.
  const bool several = first.chunks.size() > 1;
  const LayerRange second = several ? first.chunks[1] : LayerRange{};
  const auto [found, added] = of_shape(p).kept.try_emplace(
      {blocks_key(p.layout), first.chunks.front().last, second.first, second.last});
  if (added) found->second = kept_by_chunk(p, evaluator_, first);
  return chunks_in_flight(p, 0) * found->second;
}

// Nodes that differ in recompute alone are asked about one after the other.
const LowerBounds::WithoutRecompute& LowerBounds::without_recompute(const Problem& node) {
  Layout layout = node.layout;
  if (code_of(node).sums_blocks) {
    layout.recompute = Recompute::none;
    layout.recompute_modules = 0;
    layout.recompute_layers = 0;
  }
  WithoutRecompute& known = without_recompute_;
  if (known.first != nullptr && known.layout == layout && known.training == node.training) {
    leanest_->runtime = node.runtime;
    leanest_->layout.recompute = node.layout.recompute;
    leanest_->layout.recompute_modules = node.layout.recompute_modules;
    leanest_->layout.recompute_layers = node.layout.recompute_layers;
    return known;
  }
  Problem& p = follow(leanest_, node);
  const std::int64_t group = choices(space_, Field::hsdp, node).front();
  p.layout.hsdp = group > 0 && p.layout.dp % group == 0 ? group : 0;  // none is legal: any bound
  set_value(p.layout, Field::offload, choices(space_, Field::offload, node).front());
  const Values stages_of_zero = choices(space_, Field::zero, node);
  set_value(p.layout, Field::zero, stages_of_zero.back());
  known = {.layout = layout, .training = p.training};
  const LayoutPieces pieces = evaluator_.pieces(p);
  known.first = &pieces.stages().front();
  for (const std::int64_t zero : stages_of_zero) {
    set_value(p.layout, Field::zero, zero);
    known.of_stages.push_back(asked(pieces.point()));
  }
  known.padding = padding_of_buffers(p);
  known.outside = outside_bytes(p);
  return known;
}

Bytes LowerBounds::memory(const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  const Bytes kept = kept_by_layers(known.problem(), known.stages().front());
  const auto [first, last] = asked(point);
  const Problem& p = known.problem();
  return device_bytes(p, std::max(first + kept, last), outside_bytes(p));
}

Bytes LowerBounds::pass_memory(const Problem& pass) {
  Values policies = choices(space_, Field::recompute, pass);
  constexpr auto full = static_cast<std::int64_t>(Recompute::full);
  if (std::ranges::find(policies, full) != policies.end()) policies = {full};
  std::optional<Bytes> least;
  Problem& node = follow(node_, pass);
  for (const std::int64_t policy : policies) {
    set_value(node.layout, Field::recompute, policy);
    for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
      set_value(node.layout, Field::recompute_modules, modules);
      derive_flags(space_.request, node);
      const Bytes bound = memory(node);
      least = std::min(least.value_or(bound), bound);
    }
  }
  return *least;
}

// Of the allocator, by the first and by the last stage, but for what Megatron-Core's layers keep.
std::pair<Bytes, Bytes> LowerBounds::asked(const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  const Problem& p = known.problem();
  const Stage& first = known.stages().front();
  if (code_of(p).sums_blocks) {
    return {point.sums(0).resident, point.sums(known.runs() - 1).resident};
  }
  const auto of_run = [&](std::size_t run, Bytes activations) {
    const std::size_t rank = known.firsts()[run];
    const RankStates& share = point.share(run);
    return std::max(share.sums.states, evaluator_.least_of_step(p, known.stages()[rank],
                                                                static_cast<std::int64_t>(rank),
                                                                share.states, activations));
  };
  const bool eager = *code_of(p).divides_states == DividesStates::always;
  const Bytes on_first = of_run(0, eager ? kept_by_eager_layers(p, first) : Bytes{});
  // How much more no longer matters.
  if (on_first > space_.request.cluster.gpu.memory) return {on_first, {}};
  return {on_first, of_run(known.runs() - 1, {})};
}

const LowerBounds::Blocks& LowerBounds::blocks(const Problem& p) {
  const auto [found, added] = of_shape(p).blocks.try_emplace(blocks_key(p.layout));
  if (!added) return found->second;
  // Of one space, whose problems differ in their layouts alone.
  const BlockTimes times = asked_ ? evaluator_.block_times_of_layout(p) : evaluator_.block_times(p);
  asked_ = true;
  return found->second = {.embedding = block_floor(times.embedding),
                          .dense = block_floor(times.dense),
                          .moe = block_floor(times.moe),
                          .head = block_floor(times.head)};
}

LowerBounds::Chunk LowerBounds::chunk_of(const ModelSpec& model, const LayerRange& layers) {
  return {.layers = layers,
          .dense = layers_of_kind(model, layers.first, layers.last, LayerKind::dense),
          .moe = layers_of_kind(model, layers.first, layers.last, LayerKind::moe)};
}

double LowerBounds::chunk_seconds(const Problem& p,
                                  const Blocks& bounds,
                                  const Chunk& chunk,
                                  std::int64_t recomputed) {
  PassBound time;
  const auto add = [&](const PassBound& layer, LayerKind kind, std::int64_t count) {
    if (count == 0) return;
    const LayerRange& range = chunk.layers;
    const std::int64_t again =
        layer.recompute == 0 ? 0
        : recomputed == as_problem_says
            ? recomputed_layers(p, range, kind, count)
            : layers_of_kind(p.model, range.first, std::min(range.last, range.first + recomputed),
                             kind);
    time.add(layer, count, again);
  };
  add(bounds.dense, LayerKind::dense, chunk.dense);
  add(bounds.moe, LayerKind::moe, chunk.moe);
  if (chunk.embedding) time.add(bounds.embedding, 1, 0);
  if (chunk.head) time.add(bounds.head, 1, 0);
  return time.seconds();
}

double LowerBounds::message(const Problem& p) {
  if (p.layout.pp == 1) return 0;
  const Layout& l = p.layout;
  const auto [found, added] = messages_.try_emplace(
      {l.micro_batch, l.tp, l.cp, l.pp, l.sequence_parallel, p.training.sequence_length}, 0.0);
  if (added) found->second = message_seconds(p);
  return found->second;
}

double LowerBounds::time(const Problem& p, std::int64_t recomputed) {
  // A zero-bubble schedule puts off gradients of weights, and DualPipe fills from both ends.
  const bool fills = p.layout.schedule <= Schedule::interleaved;
  return (1 - rounding) * (1 + straggling_) *
         (fills ? filling_time(p, recomputed) : longest_time(p, recomputed));
}

const LowerBounds::Cut& LowerBounds::cut(const Problem& p) {
  const Layout& l = p.layout;
  const Numbers<4> key{l.pp, l.vpp, l.first_stage, l.last_stage};
  if (last_cut_ != nullptr && key == last_cut_key_) return *last_cut_;
  const auto [found, added] = cuts_.try_emplace(key);
  Cut& cut = found->second;
  last_cut_key_ = key;
  last_cut_ = &cut;
  if (!added) return cut;
  const std::vector<std::int64_t> sizes = chunk_sizes(p);
  const auto ranks = static_cast<std::size_t>(l.pp);
  std::vector<Ranks> all(ranks, {.count = 1});
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Chunk chunk = chunk_of(p.model, {first, first + sizes[i]});
    chunk.embedding = i == 0;
    chunk.head = i + 1 == sizes.size();
    first += sizes[i];
    const auto known = std::ranges::find_if(cut.kinds, [&](const Chunk& kind) {
      return kind.embedding == chunk.embedding && kind.head == chunk.head &&
             alike_layers(p.model, kind.layers, chunk.layers);
    });
    all[i % ranks].chunks.push_back(static_cast<std::size_t>(known - cut.kinds.begin()));
    if (known == cut.kinds.end()) cut.kinds.push_back(chunk);
  }
  for (Ranks& rank : all) {
    if (!cut.runs.empty() && cut.runs.back().chunks == rank.chunks) {
      ++cut.runs.back().count;
    } else {
      cut.runs.push_back(std::move(rank));
    }
  }
  return cut;
}

double LowerBounds::filling_time(const Problem& p, std::int64_t recomputed) {
  const Cut& cut = this->cut(p);
  const Blocks& bounds = blocks(p);
  const double message = this->message(p);
  const bool blocking = sends_block(p);
  seconds_.clear();
  for (const Chunk& kind : cut.kinds) {
    // Forward for the chunk after it, backward for the one before.
    const int exchanges = !kind.head + !kind.embedding;
    seconds_.push_back(chunk_seconds(p, bounds, kind, recomputed) +
                       (blocking ? message * exchanges : 0));
  }
  const auto passes = static_cast<double>(forward_passes(p));
  double bound = 0;
  double before = 0;  // forward and backward of one chunk on each rank before
  for (const Ranks& run : cut.runs) {
    if (run.chunks.empty()) continue;
    double all = 0;  // chunks of a rank, one micro-batch
    for (const std::size_t kind : run.chunks) all += seconds_[kind];
    // Its first chunk, with the messages to it and back.
    const double first = seconds_[run.chunks.front()] + (blocking ? 0 : 2 * message);
    const auto others = static_cast<double>(run.count - 1);
    bound = std::max(bound, before + others * first + passes * all);
    before += (others + 1) * first;
  }
  return bound;
}

double LowerBounds::longest_time(const Problem& p, std::int64_t recomputed) {
  const auto passes = static_cast<double>(forward_passes(p));
  const Blocks& bounds = blocks(p);
  double longest = 0;
  for (const Stage& stage : stages(p)) {
    double all = 0;
    for (const Stage& alone : chunks_of(stage)) {
      Chunk chunk = chunk_of(p.model, alone.chunks.front());
      chunk.embedding = alone.embedding;
      chunk.head = alone.head;
      all += chunk_seconds(p, bounds, chunk, recomputed);
    }
    longest = std::max(longest, passes * all);
  }
  return longest;
}

double LowerBounds::node_time(const Problem& node) {
  if (node.layout.recompute != Recompute::full) return time(node);
  for (const std::int64_t k : choices(space_, Field::recompute_layers, node)) {
    if (k > 0) return time(node, k);
  }
  return time(node);
}

double LowerBounds::pass_time(const Problem& pass) {
  const std::int64_t least = choices(space_, Field::recompute, pass).front();
  if (static_cast<Recompute>(least) == Recompute::none) return node_time(pass);
  Problem& node = follow(node_, pass);
  set_value(node.layout, Field::recompute, least);
  double bound = std::numeric_limits<double>::infinity();
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    derive_flags(space_.request, node);
    bound = std::min(bound, node_time(node));
  }
  return bound;
}

double passes_seconds(const LayoutPieces& group) {
  const std::vector<double>& finished = group.finished();
  const double off = std::max(rounding, continued_error(group.problem()));
  return (1 - off) * (1 + group.straggling()) * *std::max_element(finished.begin(), finished.end());
}

Bytes padding_of_buffers(const Problem& problem) {
  constexpr std::int64_t buffer_alignment = 128;
  constexpr std::int64_t most_bytes_an_element = 24;
  const ShardWidths widths = shard_widths(problem);
  return Bytes{most_bytes_an_element * (std::lcm(widths.dense, buffer_alignment) +
                                        std::lcm(widths.expert, buffer_alignment))};
}

double point_time(const PlanPoint& point, double passes) {
  const LayoutPieces& group = point.layout();
  const Problem& p = group.problem();
  const auto times = static_cast<double>(forward_passes(p));
  double longest = 0;
  for (std::size_t run = 0; run < group.runs(); ++run) {
    const StagePasses& own = group.passes(run);
    const Directions part = added_part(point.loads(run), own, p.cluster.gpu);
    longest = std::max(longest, times * ((1 + part.forward) * own.once.forward +
                                         (1 + part.backward) * own.once.backward));
  }
  double update = 0;
  if (p.layout.schedule <= Schedule::interleaved) {
    const UpdateLoads& first = point.loads(0);
    const AtEnd exposed = exposed_at_end(first, group.passes(0), p.cluster.gpu);
    update = exposed.reductions + exposed.gathers + first.optimizer;
  }
  const double slower = (1 - rounding) * (1 + group.straggling());
  return std::max(passes, slower * longest) + slower * update;
}

}  // namespace zeroplan
