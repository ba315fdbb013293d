// What of an optimizer and of its sharding does Megatron-Core refuse?
#include "cost_model/runtime/megatron/reasons.hpp"

namespace zeroplan::megatron_reasons {
namespace {

using namespace legality;  // NOLINT: what is wrong is said in its words

bool overlaps_parameters(const Problem& p) {
  return p.runtime.megatron.overlap_param_gather || p.layout.overlap == Overlap::parameters;
}

bool offloads_optimizer(const Problem& p) {
  return p.layout.offload == Offload::optimizer;
}

bool precision_aware(const Problem& p) {
  return p.runtime.megatron.precision_aware() || offloads_optimizer(p);
}

// What asks for it.
std::string_view precision_aware_for(const Problem& p) {
  if (offloads_optimizer(p)) return "offload of the optimizer";
  return p.runtime.megatron.use_precision_aware_optimizer ? "use_precision_aware_optimizer"
                                                          : "a moment below fp32";
}

}  // namespace

// core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py
// _init_each_parameter_group_buffers.
Reason outer_shards_need_inner(const Problem& p) {
  return because(outer_ranks(p) > 1 && p.layout.zero < ZeroStage::parameters,
                 "outer_dp_sharding_strategy optim needs ZeRO 3");
}

Reason megatron_optimizer(const Problem& p) {
  return because(p.training.optimizer == OptimizerKind::adam8bit, "Megatron-Core has no adam8bit");
}

// Since 2023 (core/optimizer/distrib_optimizer.py, "Only Adam"). Of others Muon has one of its own,
// which Megatron-FSDP refuses (training/arguments.py).
Reason distributed_optimizer(const Problem& p) {
  const OptimizerKind o = p.training.optimizer;
  const ZeroStage zero = p.layout.zero;
  const bool refused = zero > ZeroStage::optimizer
                           ? o != OptimizerKind::adam
                           : zero == ZeroStage::optimizer && o == OptimizerKind::sgd;
  return because(refused, "the distributed optimizer (ZeRO {}) takes {}adam, not {}", name_of(zero),
                 zero == ZeroStage::optimizer ? "muon or " : "", name_of(o));
}

// Its mesh of ranks has no dimension for stages, and its building fails (core/distributed/fsdp/
// mcore_fsdp_adapter.py _get_dp_tp_mesh, since af28b5a559 of 2025-08-21; run @d98e8a64dd).
Reason megatron_fsdp_pipeline(const Problem& p) {
  return because(
      p.layout.zero > ZeroStage::optimizer && p.layout.pp > 1,
      "Megatron-FSDP (ZeRO {}) divides ranks by dp, cp, ep and tp alone: pp {} needs ZeRO "
      "1 or below",
      name_of(p.layout.zero), p.layout.pp);
}

// core/optimizer/optimizer_config.py: Transformer Engine's FusedAdam, or the host's.
Reason precision_aware_needs_adam(const Problem& p) {
  const bool engine = p.runtime.megatron.transformer_engine_version != MegatronSettings::no_engine;
  if (precision_aware(p) && !engine && !offloads_optimizer(p)) {
    return fmt::format(
        "{} needs Transformer Engine's Adam, where transformer_engine=none says it is not there",
        precision_aware_for(p));
  }
  return because(precision_aware(p) && p.training.optimizer != OptimizerKind::adam,
                 "{} needs the precision-aware optimizer, which is adam, not {}",
                 precision_aware_for(p), name_of(p.training.optimizer));
}

Reason precision_aware_needs_sharding(const Problem& p) {
  return because(precision_aware(p) && p.layout.zero == ZeroStage::none,
                 "{} needs the precision-aware optimizer, so the distributed one: ZeRO 1 or above",
                 precision_aware_for(p));
}

Reason overlap_needs_sharding(const Problem& p) {
  return because(overlaps_parameters(p) && p.layout.zero == ZeroStage::none,
                 "overlap of updated parameters needs the distributed optimizer: ZeRO 1 or above");
}

// Megatron-FSDP sets both.
Reason overlap_needs_gradients(const Problem& p) {
  const bool gradients =
      p.runtime.megatron.overlap_grad_reduce || p.layout.overlap != Overlap::as_set;
  return because(overlaps_parameters(p) && !gradients && p.layout.zero <= ZeroStage::optimizer,
                 "overlap_param_gather needs overlap_grad_reduce: --set overlap_grad_reduce=true");
}

}  // namespace zeroplan::megatron_reasons
