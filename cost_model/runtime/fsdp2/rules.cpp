// What does FSDP2 refuse? Front door: fsdp2_rules.
//
// Sources: torchtitan @b5bcd76c6 distributed/parallel_dims.py, distributed/pipeline_parallel.py,
// models/common/decoder.py, components/loss.py.
#include "cost_model/runtime/fsdp2/code.hpp"

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/runtime/fsdp2/float8.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

// FSDP2 has one MixedPrecisionPolicy.param_dtype for what it gathers and what its modules compute
// in: inputs are cast to it too (torch/distributed/fsdp/_fully_shard/_fsdp_state.py @2.10).
Reason gathers_what_it_computes(const Problem& p) {
  constexpr std::int64_t fp32 = 4;
  return because(
      p.runtime.fsdp2.mixed_precision_bytes == fp32 && p.training.precision != Precision::fp32,
      "training.mixed_precision_param=fp32 computes in fp32, not in {}",
      name_of(p.training.precision));
}

Reason graphs_need_one_rank(const Problem& p) {
  const Layout& l = p.layout;
  const bool asked = p.runtime.fsdp2.disable_cuda_graphs == RecipeSwitch::off;
  return because(asked && (l.pp > 1 || l.ep > 1),
                 "torchtitan captures no CUDA graph under pp {} and ep {}: "
                 "training.disable_cuda_graphs=true",
                 l.pp, l.ep);
}

// torchao float8/config.py __post_init__; torchtitan components/quantization/float8.py.
Reason scales_of_8_bits(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (p.training.precision != Precision::fp8) return std::nullopt;
  if (set.float8_all_gather && !scales_tensors(p)) {
    return fmt::format(
        "float8.enable_fsdp_float8_all_gather gathers what one scale covers: "
        "float8.recipe_name=tensorwise, not {}",
        name_of(float8_recipe(p)));
  }
  return because(float8_recipe(p) == Float8Recipe::tensorwise &&
                     set.layers == LayerCode::torchtitan && set.recipe_date >= titan_scales_rows,
                 "torchtitan has scaled by rows alone since 2026-04-27: "
                 "float8.recipe_name=rowwise, or an earlier --set recipe_date");
}

Reason async_is_compiled(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  return because(set.async_tensor_parallel && !set.compiles_layers(),
                 "compile.enable_async_tensor_parallel needs compiled layers: compile.enable=true");
}

// Transformers' layers, which accelerate wraps.
bool by_accelerate(const Problem& p) {
  return p.runtime.fsdp2.layers == LayerCode::huggingface;
}

// accelerate knows whether to reshard, not what.
Reason accelerate_reshards(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  return because(by_accelerate(p) && set.reshard_after_forward == Reshard::always,
                 "accelerate has no fsdp_reshard_after_forward=always: ZeRO 3, or 2 to keep all");
}

// accelerate 1.15.0 parallelism_config.py has neither.
Reason accelerate_cuts_no_layers(const Problem& p) {
  return because(by_accelerate(p) && p.layout.pp > 1, "accelerate has no pipeline: pp 1, not {}",
                 p.layout.pp);
}
Reason accelerate_sends_no_tokens(const Problem& p) {
  return because(by_accelerate(p) && p.layout.ep > 1,
                 "accelerate has no expert parallelism: ep 1, not {}", p.layout.ep);
}

// accelerate 1.15.0 utils/fsdp_utils.py fsdp2_apply_ac, transformers v5.24.0 modeling_layers.py
// GradientCheckpointingLayer.
Reason accelerate_repeats_whole_layers(const Problem& p) {
  return because(by_accelerate(p) && p.layout.recompute == Recompute::selective,
                 "accelerate recomputes whole layers or nothing");
}

// accelerate 1.15.0 big_modeling.py _attach_context_parallel_hooks.
Reason context_parallelism_takes_no_mask(const Problem& p) {
  const bool masked = by_accelerate(p) && p.model.attention.windowed_layers > 0;
  return because(masked && p.layout.cp > 1,
                 "accelerate's context parallelism takes no mask, and so no sliding window: cp 1, "
                 "not {}",
                 p.layout.cp);
}

Reason attends_by_package(const Problem& p) {
  return by_accelerate(p) ? flash_attention_package(p) : std::nullopt;
}

// transformers v5.24.0 trainer.py _prepare_context_parallel_inputs.
Reason context_parallelism_takes_sdpa(const Problem& p) {
  const bool other = p.training.attention == AttentionKernel::unfused ||
                     p.runtime.attn_implementation == AttnImplementation::flash_attention_2;
  return because(by_accelerate(p) && other && p.layout.cp > 1,
                 "context parallelism under accelerate takes SDPA alone: cp 1, not {}",
                 p.layout.cp);
}

Reason repeats_some_layers(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.selective_rest &&
      (set.recompute_num_layers == 0 || p.layout.recompute != Recompute::full)) {
    return "selective_rest is of the layers that --recompute full leaves with recompute_num_layers";
  }
  if (set.recompute_num_layers == 0) return std::nullopt;
  if (p.layout.recompute == Recompute::none) {
    return "recompute_num_layers counts layers that are recomputed: --recompute full or selective";
  }
  return because(p.layout.recompute == Recompute::selective && set.selective_ac_layers > 0,
                 "recompute_num_layers and selective_ac_option={} choose layers twice",
                 set.selective_ac_layers);
}

Reason reshards_some_layers(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const std::int64_t kept = set.no_reshard_layers;
  if (kept == 0) return std::nullopt;
  if (p.layout.zero != ZeroStage::parameters || pipelined(p)) {
    return "no_reshard_layers needs ZeRO 3 without a pipeline: else all stay gathered";
  }
  if (set.reshard_after_forward == Reshard::always) {
    return "fsdp_reshard_after_forward=always leaves nothing gathered for no_reshard_layers";
  }
  return because(kept > p.model.layers, "no_reshard_layers {} is more than the model's {} layers",
                 kept, p.model.layers);
}

Reason no_tied_pipeline(const Problem& p) {
  return because(pipelined(p) && p.model.tied_embeddings,
                 "{} ties embedding and head, which {} cannot place on two stages", p.model.name,
                 runtime_name(p));
}

Reason torch_micro_batches(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  if (!pipelined(p)) return std::nullopt;
  if (p.layout.schedule == Schedule::interleaved) {
    const std::int64_t rounds = std::max<std::int64_t>(1, m / p.layout.pp);
    return because(m % rounds != 0,
                   "{} micro-batches are not a multiple of their {} rounds over pp {}", m, rounds,
                   p.layout.pp);
  }
  return because(m < p.layout.pp,
                 "{} micro-batches are fewer than the {} stages, which PyTorch refuses", m,
                 p.layout.pp);
}

Reason loss_in_parts(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.loss_chunks > 1 && !has_loss_parts(p)) {
    const std::int64_t date = set.recipe_date;
    return fmt::format(
        "{}'s code of {:04}-{:02}-{:02} computes the loss whole (--set loss_chunks=1)",
        name_of(set.layers), date / 10'000, date / 100 % 100, date % 100);
  }
  const LossParts parts = loss_parts(p);
  const std::int64_t tokens = tokens_in_parts(p);
  return because(parts.of_hidden() && tokens % parts.count != 0,
                 "{} tokens are not divisible into {} parts of the loss (--set loss_chunks)",
                 tokens, parts.count);
}

Reason fsdp_always_shards(const Problem& p) {
  return because(
      p.layout.zero < ZeroStage::gradients,
      "fsdp2 shards parameters, gradients and optimizer: ZeRO 3, or 2 to keep parameters gathered");
}

// Until 00b7f5693 one data-parallel rank alone is not wrapped, and without that nothing is computed
// in 16 bits beside tensor parallelism or a pipeline (torchtitan distributed/utils.py
// maybe_enable_amp).
Reason one_rank_is_wrapped(const Problem& p) {
  constexpr std::int64_t always_wrapped = 20260409;
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const bool alone = p.layout.dp * p.layout.cp == 1;
  const bool early = set.layers == LayerCode::torchtitan && set.recipe_date < always_wrapped;
  return because(alone && early,
                 "torchtitan before 2026-04-09 has no FSDP over one data-parallel rank, and then "
                 "computes in fp32: two or more, or a later recipe_date");
}

Reason experts_in_shard_group(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t group = (l.hsdp > 0 ? l.hsdp : l.dp) * l.cp * l.tp;
  return because(group % l.ep != 0, "ep {} does not divide the {} ranks of a sharding group", l.ep,
                 group);
}

// pytorch torch/distributed/fsdp/_fully_shard/_fsdp_param.py _init_sharded_param: no uneven
// sharding on a dimension other than the first.
Reason expert_rows_divide(const Problem& p) {
  if (!p.model.moe || !cuts_expert_rows(p) || hybrid_shards(p)) return std::nullopt;
  const std::int64_t width = shard_widths(p).expert;
  const MoeSpec& moe = *p.model.moe;
  const bool divide = moe.intermediate_size % width == 0 && p.model.hidden_size % width == 0;
  return because(width > moe.experts / p.layout.ep && !divide,
                 "FSDP2 cuts experts evenly along their rows: {} ranks do not divide {} and {}",
                 width, moe.intermediate_size, p.model.hidden_size);
}

Reason all_or_nothing_offload(const Problem& p) {
  if (Reason moved = no_offload_of_activations(p)) return moved;
  return because(p.layout.offload == Offload::optimizer,
                 "fsdp2 offloads parameters, gradients and optimizer together: parameters");
}

constexpr Rule rows[] = {
    rules::positions,
    rules::no_expert_latents,
    rules::number_format,
    {"G-nvfp4", precision, set_of({}), no_nvfp4},
    {"T-gathered-format", precision, set_of({}), gathers_what_it_computes},
    {"T-float8", knobs, set_of({}), scales_of_8_bits},
    {"T-async", knobs, set_of({}), async_is_compiled},
    {"H-flash-attention", knobs, set_of({}), attends_by_package},
    rules::magnitude,
    rules::heads,
    rules::kv_heads,
    rules::hidden_width,
    rules::mlp_width,
    rules::context_halves,
    {"T-windows", cp, set_of({cp}), context_parallelism_takes_no_mask},
    {"H-context-sdpa", cp, set_of({cp}), context_parallelism_takes_sdpa},
    rules::world,
    rules::linear_attention,
    {"T-one-rank", tp, set_of({tp, cp, pp}), one_rank_is_wrapped},
    {"T-tied", pp, set_of({pp}), no_tied_pipeline},
    {"H-pipeline", pp, set_of({pp}), accelerate_cuts_no_layers},
    rules::batch,
    rules::experts,
    {"H-experts", ep, set_of({ep}), accelerate_sends_no_tokens},
    {"T-graphs", knobs, set_of({pp, ep}), graphs_need_one_rank},
    rules::dense_only,
    rules::no_expert_tensor_parallel,
    rules::enough_layers,
    rules::sequence_parallel_needs_tp,
    rules::sequence_rows,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    {"T-micro-batches", global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     torch_micro_batches},
    rules::dualpipe_pairs,
    {"T-loss-chunks", loss_chunks, set_of({micro_batch, cp, loss_chunks}), loss_in_parts},
    {"H-recompute", recompute, set_of({recompute}), accelerate_repeats_whole_layers},
    {"T-recompute-layers", recompute, set_of({recompute, recompute_layers}), repeats_some_layers},
    {"T-stage", zero, set_of({zero}), fsdp_always_shards},
    {"G-offload", offload, set_of({zero, offload}), all_or_nothing_offload},
    {"T-expert-group", ep, set_of({tp, cp, pp, ep, hsdp}), experts_in_shard_group},
    rules::hybrid_shards,
    {"T-expert-rows", ep, set_of({tp, cp, pp, ep, etp, hsdp}), expert_rows_divide},
    rules::hybrid_needs_sharding,
    {"T-reshard", knobs, set_of({knobs}), accelerate_reshards},
    {"T-reshard-layers", knobs, set_of({pp, zero, knobs}), reshards_some_layers},
};

}  // namespace

constexpr RuleBook fsdp2_rules(rows);

}  // namespace zeroplan
