// What does an answer take for granted of Transformers' code, and who says so? Front door:
// transformers_assumptions.
#include "cost_model/runtime/pytorch_layers/assumptions.hpp"

#include <fmt/format.h>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/question/units.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"

namespace zeroplan {

std::string_view transformers_source(const Problem& problem) {
  if (problem.model.linear_attention) {
    return "transformers models/*/modeling_*.py, the model's class; flash-linear-attention "
           "fla/ops/gated_delta_rule/chunk.py; causal-conv1d";
  }
  if (problem.model.state_space) {
    return "transformers models/*/modeling_*.py, the model's class; mamba_ssm "
           "ops/triton/ssd_combined.py; causal-conv1d";
  }
  return "transformers models/*/modeling_*.py, the model's class";
}

std::vector<std::string> transformers_assumptions(const Problem& problem) {
  std::vector<std::string> list;
  if (masks_windows(problem)) {
    const Bytes mask{token_shape(problem).element * mask_elements(problem)};
    list.push_back(
        fmt::format("SDPA takes windows of {} keys as masks, {:.2f} GiB in each such layer; "
                    "--set attn_implementation=flash_attention_2 needs none",
                    problem.model.attention.sliding_window, gibibytes(mask)));
  }
  if (kernel_habits(problem).spells_out_layers && lacks_sdpa(problem)) {
    list.push_back(
        fmt::format("Transformers' {} has no SDPA, and is answered as if it had (left out, "
                    "--attention is what its class takes: unfused)",
                    problem.model.family));
  }
  // integrations/moe.py _grouped_mm (huggingface/transformers v5.24.0).
  if (kernel_habits(problem).wide_experts) {
    list.emplace_back(
        "experts multiply in fp32, as their weights are: autocast does not reach them");
  }
  if (problem.model.moe && repeats_tokens(problem)) {
    list.emplace_back(
        "each expert works on all tokens, whichever were sent to it, as Transformers' code of "
        "Llama 4 has it");
  }
  if (problem.model.state_space) {
    list.emplace_back(
        "a state space runs by the packages mamba_ssm and causal-conv1d, whose kernels are timed "
        "by what they move: no run was measured");
  }
  if (problem.model.linear_attention) {
    list.emplace_back(
        "linear attention runs by the packages flash-linear-attention and causal-conv1d, whose "
        "kernels are timed by what they move: no run was measured");
  }
  return list;
}

}  // namespace zeroplan
