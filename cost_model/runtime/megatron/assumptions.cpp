// What does an answer of Megatron-Core take for granted? Front door: megatron_assumptions.
#include <fmt/format.h>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/megatron/own_linears.hpp"

namespace zeroplan {
namespace {

std::string own_layers(const MegatronSettings& set) {
  const auto gradients = [&] {
    switch (handed_by_own_linears(set)) {
      case HandedGradient::nothing:
        return "whose weights have no gradients beside the main ones";
      case HandedGradient::tensor:
        return "which make a tensor for each weight's gradient";
      case HandedGradient::shared:
        break;
    }
    return "whose weight gradients take Transformer Engine's placeholders";
  };
  const bool beside = set.transformer_engine_version == MegatronSettings::engine_beside;
  return fmt::format(
      "layers are those of Megatron-Core {}.{} itself, with{} Transformer Engine beside them, {} "
      "(--set megatron_core, transformer_engine)",
      set.megatron_core / 100, set.megatron_core % 100, beside ? "" : "out", gradients());
}

}  // namespace

std::vector<std::string> megatron_assumptions(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const TrainingSpec& t = problem.training;
  const Layout& l = problem.layout;
  std::vector<std::string> out;
  if (set.container > 0) {
    out.push_back(fmt::format(
        "what NVIDIA's NeMo container {}.{:02} turns on holds where nothing else is set",
        set.container / 100, set.container % 100));
  }
  if (set.local_layers()) out.push_back(own_layers(set));
  const std::int64_t unit = set.make_vocab_size_divisible_by * l.tp;
  if (problem.model.vocab_size % unit != 0) {
    out.push_back(fmt::format("vocabulary {} padded to {} (make_vocab_size_divisible_by x tp = {})",
                              problem.model.vocab_size, round_up(problem.model.vocab_size, unit),
                              unit));
  }
  const Bytes mask{l.micro_batch * t.sequence_length * t.sequence_length};
  if (set.create_attention_mask_in_dataloader && mask > 256_MiB) {
    out.push_back(
        fmt::format("the dataloader makes a mask of {:.2f} GiB (--set "
                    "create_attention_mask_in_dataloader=false)",
                    gibibytes(mask)));
  }
  if (set.cross_entropy_loss_fusion && set.cross_entropy_fusion_impl == CrossEntropy::te) {
    // training/arguments.py validate_args, since commits 168cb15d70 and b57449928a.
    out.emplace_back(
        "Megatron-LM of before June 2026: since then it refuses cross_entropy_fusion_impl=te");
  }
  if (drops(problem, RecomputeModule::layernorm) && !has_own_norms(problem)) {
    out.emplace_back(
        "recompute of layernorm changes nothing: Transformer Engine has these norms fused into the "
        "linears that read them");
  }
  if (set.offload_modules != 0) {
    out.emplace_back(
        "what offload_modules moves is off the device when its module is done, as the allocator's "
        "statistics count it; what is still on its way may stay reserved");
    if (l.vpp > 1) {
      out.emplace_back(
          "what one chunk's backward pass brings back early for another chunk is not counted: up "
          "to "
          "about a layer's groups");
    }
  }
  if (problem.model.state_space) {
    out.emplace_back(
        "state spaces run by mamba_ssm 2.3.2, whose kernels' rate is fitted on runs of Nemotron 3 "
        "Nano on Hopper and Blackwell");
  }
  if (problem.model.linear_attention) {
    out.emplace_back(
        "linear attention runs by flash-linear-attention 0.5.1, whose kernels are timed by what "
        "they move, and PyTorch's compiler keeps the inputs of what it fuses: no run was measured");
  }
  const bool whole_copies = t.precision == Precision::fp8 && l.zero >= ZeroStage::gradients;
  if (whole_copies && !set.fp8_param_gather) {
    out.emplace_back(
        "every rank keeps 8-bit copies of all matrices of its layers, which ZeRO does not divide "
        "(--set fp8_param_gather=true)");
  }
  return out;
}

}  // namespace zeroplan
