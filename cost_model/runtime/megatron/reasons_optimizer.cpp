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

Reason megatron_optimizer(const Problem& p) {
  return because(p.training.optimizer == OptimizerKind::adam8bit, "Megatron-Core has no adam8bit");
}

Reason megatron_fsdp_optimizer(const Problem& p) {
  const OptimizerKind o = p.training.optimizer;
  return because(
      p.layout.zero > ZeroStage::optimizer && o != OptimizerKind::adam && o != OptimizerKind::sgd,
      "Megatron-FSDP (ZeRO {}) takes adam or sgd, not {}", name_of(p.layout.zero), name_of(o));
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
