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
  const MegatronBlocks& blocks = evaluator.blocks_of_layout(p);
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

// Of a layer by itself, so that it depends on neither the sharding, nor on how layers are cut into
// stages: what comes and goes around it for its parameters leaves its activations as they are.
const LowerBounds::LayerBytes& LowerBounds::layer_bytes(const Problem& p, LayerKind kind) {
  const Layout& l = p.layout;
  const auto [found, added] = layer_bytes_.try_emplace(
      {l.tp, l.cp, l.ep, l.etp, l.micro_batch, l.sequence_parallel,
       static_cast<std::int64_t>(l.recompute), static_cast<std::int64_t>(kind)});
  if (!added) return found->second;
  const auto block =
      folded(code_of(p).block(p, evaluator_.weights(), BlockKind::layer, kind, repeats(p)));
  LayerBytes& bytes = found->second;
  bytes.kept = block->forward.left[Category::activations];
  const Moment peak =
      block->backward_with(BackwardPart::whole, {.input = true, .output_grad = true}).peak;
  bytes.backward = peak.live[Category::activations] + peak.live[Category::temporaries];
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
  const Layout& l = p.layout;
  auto& known =
      kept_by_first_.of({p.cluster.gpus, l.micro_batch, l.tp, l.cp, l.pp, l.ep, l.etp, l.vpp});
  const auto [found, added] =
      known.try_emplace({blocks_key(l), first.chunks.front().last, second.first, second.last});
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
  Values stages_of_zero = choices(space_, Field::zero, node);
  set_value(p.layout, Field::zero, stages_of_zero.back());
  // Where all divide everything, the last gathers least.
  if (*code_of(p).divides_states == DividesStates::always) {
    stages_of_zero.erase(stages_of_zero.begin(), stages_of_zero.end() - 1);
  }
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

// Neither context parallelism nor the micro-batch decides it: both leave the ranks that share.
Bytes LowerBounds::states_memory(const Problem& pass) {
  if (*code_of(pass).divides_states != DividesStates::always) return {};
  const Layout& l = pass.layout;
  const auto [found, added] = states_memory_.try_emplace(
      {l.tp, l.pp, l.vpp, l.ep, l.etp, l.first_stage, l.last_stage,
       static_cast<std::int64_t>(l.schedule), l.sequence_parallel, l.loss_chunks});
  if (added) found->second = find_states_memory(pass);
  return found->second;
}

Bytes LowerBounds::find_states_memory(const Problem& pass) {
  without_recompute_ = {};  // of the same copy
  Problem& p = follow(leanest_, pass);
  p.layout.hsdp = 0;
  set_value(p.layout, Field::offload, choices(space_, Field::offload, pass).front());
  set_value(p.layout, Field::zero, choices(space_, Field::zero, pass).back());
  const LayoutPieces known = evaluator_.pieces(p);
  const PlanPoint point = known.point();
  const auto of_run = [&](std::size_t run) {
    const LeastBytes least = point.least_of_step(run);
    // Without a pipeline the number of micro-batches decides what waits for the end.
    return least.states + std::max(least.until_backward, p.layout.pp > 1 ? least.at_end : Bytes{});
  };
  return std::max(of_run(0), of_run(known.runs() - 1));
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
  // How much more no longer matters.
  const auto is_too_large = [&](Bytes bytes) { return bytes > space_.request.cluster.gpu.memory; };
  const auto with_states = [&](std::size_t run, Bytes bytes) {
    return std::max(point.sums(run).states, bytes);
  };
  const LeastBytes least = point.least_of_step(0);
  Bytes on_first = with_states(0, least.with({}));
  if (is_too_large(on_first)) return {on_first, {}};
  if (*code_of(p).divides_states == DividesStates::always) {
    on_first = with_states(0, least.with(kept_by_eager_layers(p, first)));
    if (is_too_large(on_first)) return {on_first, {}};
  }
  const std::size_t last = known.runs() - 1;
  return {on_first, with_states(last, point.least_of_step(last).with({}))};
}

Bytes padding_of_buffers(const Problem& problem) {
  constexpr std::int64_t buffer_alignment = 128;
  constexpr std::int64_t most_bytes_an_element = 24;
  const ShardWidths widths = shard_widths(problem);
  return Bytes{most_bytes_an_element * (std::lcm(widths.dense, buffer_alignment) +
                                        std::lcm(widths.expert, buffer_alignment))};
}

}  // namespace zeroplan
