// Which blocks does a rank of Megatron-Core run? Front doors: megatron_blocks, KnownMegatronBlocks.
#include "cost_model/runtime/megatron/blocks.hpp"

#include "cost_model/runtime/megatron/ends.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/mtp.hpp"
#include "cost_model/runtime/megatron/offload.hpp"

namespace zeroplan {
namespace {

// Some 5 KB each.
constexpr std::size_t most_known = 12'000;

enum class Part {
  embedding,
  head,
  dense,
  moe,
  recomputed_dense,
  recomputed_moe,
  offloaded_dense,
  offloaded_moe,
  mtp_input,
  mtp_head,
  passed_on
};

Numbers<10> key(const Problem& problem, Part part, RepeatSet dropped = 0) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {number(part),
          number(dropped),
          l.tp,
          l.cp,
          l.etp,
          l.micro_batch,
          number(l.sequence_parallel),
          t.sequence_length,
          number(t.precision),
          number(t.attention)};
}

// What selective recompute drops of a layer of this kind.
RepeatSet dropped(const Problem& problem, LayerKind kind) {
  using enum RecomputeModule;
  constexpr RepeatSet of_both = bit_of(core_attn) | bit_of(layernorm) | bit_of(mla_up_proj);
  const RepeatSet own =
      kind == LayerKind::moe ? bit_of(moe_act) | bit_of(moe) | bit_of(shared_experts) : bit_of(mlp);
  return repeats(problem) & (of_both | own);
}

}  // namespace

MegatronBlocks KnownMegatronBlocks::of(const Problem& problem) {
  if (known_.size() > most_known) known_.clear();
  const ModelSpec& model = problem.model;
  const auto find = [&](const Numbers<10>& key, auto&& make) {
    const auto [found, added] = known_.try_emplace(key);
    if (added) found->second = make();
    return found->second;
  };
  const auto kept = [&](LayerKind kind, Part part) {
    return find(key(problem, part, dropped(problem, kind)),
                [&] { return folded(megatron_layer(problem, kind)); });
  };
  const auto recomputed = [&](LayerKind kind, Part part) {
    return find(key(problem, part),
                [&] { return folded(megatron_recomputed_layers(problem, {kind})); });
  };
  const auto offloaded = [&](LayerKind kind, Part part) {
    return find(key(problem, part, dropped(problem, kind)),
                [&] { return folded(with_saved_on_host(megatron_layer(problem, kind))); });
  };
  MegatronBlocks blocks{
      .embedding =
          find(key(problem, Part::embedding), [&] { return folded(megatron_embedding(problem)); }),
      .head = find(key(problem, Part::head), [&] { return folded(megatron_head(problem), true); })};
  const bool full = problem.layout.recompute == Recompute::full;
  const bool to_host = offloaded_layers(problem) > 0;
  if (layers_of_kind(model, 0, model.layers, LayerKind::dense) > 0) {
    blocks.dense = kept(LayerKind::dense, Part::dense);
    if (to_host) blocks.offloaded_dense = offloaded(LayerKind::dense, Part::offloaded_dense);
    if (full) blocks.recomputed_dense = recomputed(LayerKind::dense, Part::recomputed_dense);
  }
  if (layers_of_kind(model, 0, model.layers, LayerKind::moe) > 0) {
    blocks.moe = kept(LayerKind::moe, Part::moe);
    if (to_host) blocks.offloaded_moe = offloaded(LayerKind::moe, Part::offloaded_moe);
    if (full) blocks.recomputed_moe = recomputed(LayerKind::moe, Part::recomputed_moe);
  }
  if (trained_mtp_modules(problem) > 0) {
    blocks.mtp_input =
        find(key(problem, Part::mtp_input), [&] { return folded(megatron_mtp_input(problem)); });
    blocks.mtp_head = find(key(problem, Part::mtp_head),
                           [&] { return folded(megatron_mtp_head(problem), true); });
  }
  if (problem.runtime.megatron.pipeline_model_parallel_layout.given()) {
    blocks.passed_on =
        find(key(problem, Part::passed_on), [&] { return folded(megatron_passed_on(problem)); });
  }
  return blocks;
}

MegatronBlocks megatron_blocks(const Problem& problem) {
  return KnownMegatronBlocks().of(problem);
}

std::vector<Call> megatron_block_calls(const Problem& problem,
                                       const WeightInventory&,
                                       BlockKind block,
                                       LayerKind layer,
                                       RepeatSet repeated) {
  switch (block) {
    case BlockKind::embedding:
      return megatron_embedding(problem).calls;
    case BlockKind::layer:
      return repeated == whole_layer ? megatron_recomputed_layers(problem, {layer}).calls
                                     : megatron_layer(problem, layer, repeated).calls;
    case BlockKind::mtp_input:
      return megatron_mtp_input(problem).calls;
    case BlockKind::head:
      break;
  }
  return megatron_head(problem).calls;
}

}  // namespace zeroplan
