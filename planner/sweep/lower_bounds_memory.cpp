// How many bytes can no layout below a node undercut? Front doors: LowerBounds::memory,
// LowerBounds::pass_memory.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/overheads.hpp"
#include "planner/sweep/lower_bounds.hpp"
#include "planner/sweep/recompute_values.hpp"

namespace zeroplan {
namespace {

Bytes outside_bytes(const Problem& p) {
  return communicator_bytes(p) + context_bytes(p) + token_buffer_bytes(p);
}

// What a layer of the first ones of a chunk may repeat: all of them count as such where their
// number is open.
boost::container::small_vector<RepeatSet, 3> may_repeat(const Request& r, const Problem& p) {
  boost::container::small_vector<RepeatSet, 3> sets{repeats(p)};
  if (p.layout.recompute_layers > 0) return sets;
  const LayerChoices open = open_layers(r, p.layout.recompute);
  if (open.number) sets.push_back(0);
  if (open.rest) sets.push_back(code_of(p).repeats_selectively(p));
  return sets;
}

// Bytes on the device, where the allocator is asked for so many.
Bytes device_bytes(const Problem& p, Bytes asked, Bytes outside) {
  return asked + usual_fragmentation(p, asked) + outside;
}

}  // namespace

// Bytes of a layer by itself, so that they depend on neither the sharding, nor on how layers are
// cut into stages: what comes and goes around it for its parameters leaves its activations as they
// are.
const LowerBounds::LayerBytes& LowerBounds::layer_bytes(const Problem& p,
                                                        LayerKind kind,
                                                        RepeatSet repeated) {
  const Layout& l = p.layout;
  const auto [found, added] = layer_bytes_.try_emplace(
      {l.tp, l.cp, l.ep, l.etp, l.micro_batch, l.sequence_parallel,
       static_cast<std::int64_t>(repeated), static_cast<std::int64_t>(kind)});
  if (!added) return found->second;
  const auto block =
      folded(code_of(p).block(p, evaluator_.weights(), BlockKind::layer, kind, repeated));
  LayerBytes& bytes = found->second;
  bytes.kept = block->forward.left[Category::activations];
  const Moment peak =
      block->backward_with(BackwardPart::whole, {.input = true, .output_grad = true}).peak;
  bytes.backward = peak.live[Category::activations] + peak.live[Category::temporaries];
  return bytes;
}

// What a layer that may repeat any of `sets` keeps at least, and what it needs with that.
LowerBounds::LayerBytes LowerBounds::least_layer(const Problem& p,
                                                 LayerKind kind,
                                                 const RepeatSets& sets) {
  std::optional<Bytes> kept, both;
  for (const RepeatSet set : sets) {
    const LayerBytes& own = layer_bytes(p, kind, set);
    kept = std::min(kept.value_or(own.kept), own.kept);
    both = std::min(both.value_or(own.kept + own.backward), own.kept + own.backward);
  }
  return {.kept = *kept, .backward = *both - *kept};
}

// What the layers of FSDP2 keep at least, but where every Nth repeats; and above that what the
// first backward pass of a layer needs.
Bytes LowerBounds::kept_by_eager_layers(const Problem& p, const Stage& first) {
  Layout layout = p.layout;
  set_sharding(layout, {});
  const std::int64_t batch = p.training.global_batch;
  if (layout == keeping_ && batch == batch_keeping_) return kept_by_eager_;
  kept_by_eager_ = find_kept_by_eager_layers(p, first);
  keeping_ = layout;
  batch_keeping_ = batch;
  return kept_by_eager_;
}

Bytes LowerBounds::find_kept_by_eager_layers(const Problem& p, const Stage& first) {
  const RepeatedLayers repeated = repeated_layers(p);
  if (repeated.every > 0 || splits_backward(p.layout.schedule)) return {};
  const RepeatSets taken = may_repeat(space_.request, p);
  const RepeatSets others{repeated.others};
  std::optional<Bytes> backward;  // of the last layer of a chunk, which comes first
  boost::container::small_vector<Bytes, 8> kept(first.chunks.size());
  for (const LayerKind kind : all_layer_kinds) {
    std::optional<LayerBytes> of_taken, of_others;  // where there are any
    const auto find = [&](std::optional<LayerBytes>& least, const RepeatSets& sets) {
      if (!least) least = least_layer(p, kind, sets);
      return *least;
    };
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const LayerRange& chunk = first.chunks[i];
      const std::int64_t all = layers_of_kind(p.model, chunk.first, chunk.last, kind);
      const std::int64_t again = taken.size() > 1 ? all : recomputed_layers(p, chunk, kind, all);
      if (again > 0) kept[i] += again * find(of_taken, taken).kept;
      if (all > again) kept[i] += (all - again) * find(of_others, others).kept;
      if (all == 0) continue;
      const LayerBytes last = again < all ? *of_others : *of_taken;
      backward = std::min(backward.value_or(last.backward), last.backward);
    }
  }
  const auto least = std::ranges::min_element(kept);
  return chunks_in_flight(p, 0) * (least == kept.end() ? Bytes{} : *least) +
         backward.value_or(Bytes{});
}

Bytes LowerBounds::group_memory(const Problem& group) {
  return code_of(group).sums_blocks ? least_of_zeros(group, least_device) : memory(group);
}

Bytes LowerBounds::memory_of_any_number(const Problem& group) {
  return least_of_zeros(group, least_repeating_device);
}

// With the ZeRO stage that needs least.
Bytes LowerBounds::least_of_zeros(const Problem& group, Bytes (*device)(const PlanPoint&)) {
  const WithoutRecompute& known = without_recompute(group);
  Problem& p = *leanest_;
  const LayoutPieces pieces = evaluator_.pieces_of_layout(p);
  std::optional<Bytes> least;
  for (const std::int64_t zero : known.zeros) {
    set_value(p.layout, Field::zero, zero);
    const Bytes own = device(pieces.point());
    least = std::min(least.value_or(own), own);
  }
  return std::max(Bytes{}, *least - known.padding);
}

Bytes LowerBounds::memory(const Problem& node) {
  if (!code_of(node).sums_blocks) return with_kept(without_recompute(node), {});
  if (node.layout.recompute != Recompute::full) {
    const WithoutRecompute& known = without_recompute(node);
    return with_kept(known, kept_.needed_by_node(*leanest_, *known.first));
  }
  const bool open = choices(space_, Field::recompute_layers, node).size() > 1;
  return open ? repeating_memory(node, Repeating::all, {1, every_layer}) : group_memory(node);
}

Bytes LowerBounds::with_kept(const WithoutRecompute& known, Bytes kept) const {
  std::optional<Bytes> least;
  for (const auto& [first, last] : known.of_stages) {
    const Bytes asked = std::max(first + kept, last);
    least = std::min(least.value_or(asked), asked);
  }
  return device_bytes(*leanest_, std::max(Bytes{}, *least - known.padding),
                      known.outside + token_buffer_bytes(*leanest_));
}

Bytes LowerBounds::repeating_memory(const Problem& pass, Repeating what, RepeatedRange layers) {
  const WithoutRecompute& known = without_recompute(pass);
  return with_kept(known, kept_.needed(*leanest_, what, *known.first, layers));
}

Bytes LowerBounds::memory_beside_parts(const Problem& pass, Repeating what) {
  const WithoutRecompute& known = without_recompute(pass);
  return with_kept(known, kept_.kept_beside_parts(*leanest_, what, *known.first));
}

// The node with the most sharding and offload that are open, but for the ZeRO stage.
Problem& LowerBounds::lean(const Problem& node) {
  Problem& p = follow(leanest_, node);
  const std::int64_t group = space_.request.hsdp.value_or(0);
  p.layout.hsdp = group > 0 && p.layout.dp % group == 0 ? group : 0;  // none is legal: any bound
  set_value(p.layout, Field::offload, choices(space_, Field::offload, node).front());
  return p;
}

LowerBounds::WithoutRecompute LowerBounds::find_without_recompute(Problem& p) {
  Values stages_of_zero = choices(space_, Field::zero, p);
  set_value(p.layout, Field::zero, stages_of_zero.back());
  // Where all ZeRO stages divide everything, the last gathers least.
  if (*code_of(p).divides_states == DividesStates::always) {
    stages_of_zero.erase(stages_of_zero.begin(), stages_of_zero.end() - 1);
  }
  WithoutRecompute made{.zeros = stages_of_zero};
  const LayoutPieces pieces = evaluator_.pieces(p);
  made.first = &pieces.stages().front();
  for (const std::int64_t zero : stages_of_zero) {
    set_value(p.layout, Field::zero, zero);
    made.of_stages.push_back(asked(pieces.point()));
  }
  made.padding = padding_of_buffers(p);
  made.outside = communicator_bytes(p) + context_bytes(p);
  return made;
}

const LowerBounds::WithoutRecompute& LowerBounds::without_recompute(const Problem& node) {
  if (code_of(node).sums_blocks) return without_micro_batch(node);
  // Some nodes are asked about several times in a row.
  if (asked_about_.first == nullptr || last_asked_ != node.layout ||
      last_training_ != node.training) {
    asked_about_ = find_without_recompute(lean(node));
    last_asked_ = node.layout;
    last_training_ = node.training;
  }
  leanest_->runtime = node.runtime;
  return asked_about_;
}

// Neither states nor stages depend on the micro-batch, and no buffer is smaller for a larger one.
const LowerBounds::WithoutRecompute& LowerBounds::without_micro_batch(const Problem& node) {
  const Layout& l = node.layout;
  const auto [found, added] = without_recompute_.try_emplace(
      {l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp, static_cast<std::int64_t>(l.schedule), l.first_stage,
       l.last_stage, 2 * static_cast<std::int64_t>(l.sequence_parallel) + l.tp_overlap,
       node.cluster.gpus});
  Problem& p = lean(node);
  if (!added) return found->second;
  p.layout.micro_batch = 1;
  found->second = find_without_recompute(p);
  lean(node);
  return found->second;
}

Bytes LowerBounds::memory(const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  const auto [first, last] = asked(point);
  const Problem& p = known.problem();
  return device_bytes(p, std::max(first, last), outside_bytes(p));
}

// Neither context parallelism nor the micro-batch decides what states need: both leave the ranks
// that share them.
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
  asked_about_ = {};  // of the same copy
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
  const bool may_be_full = std::ranges::find(policies, full) != policies.end();
  if (may_be_full && policies.size() > 1 && code_of(pass).sums_blocks) {
    const WithoutRecompute& known = without_recompute(pass);
    return with_kept(known, kept_.least_kept(*leanest_, *known.first));
  }
  if (may_be_full) policies = {full};
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

// Bytes asked of the allocator by the first and by the last stage, but for what Megatron-Core's
// layers keep.
std::pair<Bytes, Bytes> LowerBounds::asked(const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  const Problem& p = known.problem();
  const Stage& first = known.stages().front();
  if (code_of(p).sums_blocks) {
    const auto of_run = [&](std::size_t run) {
      const RankStates::Sums& sums = point.sums(run);
      Bytes buckets;
      if (is_megatron_fsdp(p)) buckets = point.least_buckets(run).at_first_backward(p.model.layers);
      return sums.resident - sums.bucket_padding + known.megatron_buffer_bytes(run) + buckets;
    };
    return {of_run(0), of_run(known.runs() - 1)};
  }
  // By how much a stage is too large no longer matters.
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
