// How many bytes can no layout below a node undercut? Front doors: LowerBounds::memory,
// LowerBounds::pass_memory.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/overheads.hpp"
#include "planner/sweep/lower_bounds.hpp"

namespace zeroplan {
namespace {

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

Bytes outside_bytes(const Problem& p) {
  return communicator_bytes(p) + context_bytes(p);
}

// On the device, where the allocator is asked for so many.
Bytes device_bytes(const Problem& p, Bytes asked, Bytes outside) {
  return asked + usual_fragmentation(p, asked) + outside;
}

}  // namespace

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
  std::optional<Bytes> backward;
  boost::container::small_vector<Bytes, 8> kept(first.chunks.size());
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const LayerBytes* layer = nullptr;  // where there are any
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const LayerRange& chunk = first.chunks[i];
      const std::int64_t count = layers_of_kind(p.model, chunk.first, chunk.last, kind);
      if (count == 0) continue;
      if (layer == nullptr) layer = &layer_bytes(p, kind);
      kept[i] += count * layer->kept;
    }
    if (layer != nullptr) {
      backward = std::min(backward.value_or(layer->backward), layer->backward);
    }
  }
  const auto least = std::ranges::min_element(kept);
  return chunks_in_flight(p, 0) * (least == kept.end() ? Bytes{} : *least) +
         backward.value_or(Bytes{});
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

Bytes padding_of_buffers(const Problem& problem) {
  constexpr std::int64_t buffer_alignment = 128;
  constexpr std::int64_t most_bytes_an_element = 24;
  const ShardWidths widths = shard_widths(problem);
  return Bytes{most_bytes_an_element * (std::lcm(widths.dense, buffer_alignment) +
                                        std::lcm(widths.expert, buffer_alignment))};
}

}  // namespace zeroplan
