// What does zeroplan's engine refuse? Front door: zeroplan_rules.
#include "cost_model/runtime/zeroplan/code.hpp"

#include "cost_model/legality/shared_rules.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

Reason engine_precision(const Problem& p) {
  return because(p.training.precision != Precision::bf16, "zeroplan's engine computes in bf16");
}

Reason engine_optimizer(const Problem& p) {
  return because(p.training.optimizer != OptimizerKind::adam, "zeroplan's engine has Adam alone");
}

Reason engine_model(const Problem& p) {
  const ModelSpec& m = p.model;
  const bool norms = m.norms_per_layer != 2 || !m.final_norm || m.embedding_norm ||
                     m.parallel_residual || m.attention.qk_norm;
  const auto other = [&]() -> std::string_view {
    if (m.moe) return "experts";
    if (m.attention.mla) return "latent attention";
    if (m.attention.sinks) return "attention sinks";
    if (m.embedding_size > 0 && m.embedding_size != m.hidden_size) return "narrow embeddings";
    if (norms) return "norms other than before attention, before the MLP and before the head";
    if (p.training.attention != AttentionKernel::flash) return "attention that stores its scores";
    return "";
  }();
  return because(!other.empty(), "zeroplan's engine has no {}", other);
}

Reason engine_grid(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.cp * l.ep * l.etp > 1, "zeroplan's engine divides over dp, tp and pp alone");
}

Reason engine_checkpoints(const Problem& p) {
  if (!p.runtime.zeroplan.partition_activations) return std::nullopt;
  if (p.layout.recompute != Recompute::full) {
    return "partition_activations divides checkpoints, which recompute full makes";
  }
  if (p.layout.sequence_parallel) {
    return "partition_activations: sequence parallelism has divided checkpoints already";
  }
  const std::int64_t elements =
      p.training.sequence_length * p.layout.micro_batch * p.model.hidden_size;
  return because(elements % p.layout.tp != 0,
                 "partition_activations: a checkpoint of {} elements is not divisible by tp {}",
                 elements, p.layout.tp);
}

Reason engine_overlap(const Problem& p) {
  const ZeroplanSettings& set = p.runtime.zeroplan;
  return because(set.overlap_comm && (set.constant_buffers() || set.contiguous_memory_optimization),
                 "overlap_comm keeps a bucket until it has travelled: not with reduce_bucket_size "
                 "or contiguous_memory_optimization, which have one bucket");
}

constexpr Rule rows[] = {
    rules::positions,
    rules::no_linear_attention,
    rules::no_expert_latents,
    rules::number_format,
    rules::no_fp8,
    {"Z-precision", precision, set_of({}), engine_precision},
    {"Z-optimizer", optimizer, set_of({}), engine_optimizer},
    {"Z-overlap", zero, set_of({}), engine_overlap},
    {"Z-model", model, set_of({}), engine_model},
    rules::magnitude,
    rules::heads,
    rules::kv_heads,
    rules::mlp_width,
    rules::world,
    rules::batch,
    rules::experts,
    rules::dense_only,
    {"Z-grid", cp, set_of({cp, ep, etp}), engine_grid},
    rules::enough_layers,
    rules::sequence_parallel_needs_tp,
    rules::sequence_rows,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    rules::dualpipe_pairs,
    rules::full_recompute_only,
    {"Z-checkpoints", recompute, set_of({micro_batch, tp, sequence_parallel, recompute}),
     engine_checkpoints},
    rules::no_offload,
    rules::no_hybrid,
};

}  // namespace

constexpr RuleBook zeroplan_rules(rows);

}  // namespace zeroplan
