// Which matrix products does a rank compute? Front doors: layer_gemms, head_gemms.
#include "cost_model/kernel/layer_gemms.hpp"

#include <optional>
#include <utility>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// Fused projections are one GEMM over the sum of their output features.
bool joins(const KernelHabits& habits, const Weight& first, const Weight& second) {
  return habits.fuses_projections && first.module == second.module && first.expert == second.expert;
}

std::int64_t tokens_of(const Weight& w, const LocalWeight& local, const Problem& p) {
  if (w.expert) return ceil_div(routed_tokens(p).received, local.copies);
  const std::int64_t tokens = local_tokens(p);
  return w.split == Split::replicated ? ceil_div(tokens, token_shape(p).norm_rows) : tokens;
}

void add_linear(std::vector<Gemm>& out,
                Module module,
                const Weight& w,
                const LocalWeight& local,
                const Problem& p,
                const KernelHabits& habits) {
  const std::int64_t tokens = tokens_of(w, local, p);
  const std::int64_t element = token_shape(p).element;
  Gemm gemm{.module = module,
            .m = tokens,
            .n = local.rows,
            .k = local.columns,
            .groups = local.copies,
            .output_bytes = element,
            .rate = is_quantized(p.training.precision) ? habits.forward_rate : 1,
            .split = w.expert ? Split::replicated : w.split};
  out.push_back(gemm);
  gemm.rate = 1;
  gemm.product = Product::input_gradient;
  gemm.n = local.columns;
  gemm.k = local.rows;
  out.push_back(gemm);
  gemm.product = Product::weight_gradient;
  gemm.m = local.rows;
  gemm.n = local.columns;
  gemm.k = tokens;
  if (habits.weight_gradient_bytes > 0) gemm.output_bytes = habits.weight_gradient_bytes;
  out.push_back(gemm);
}

// `module`: what all of them are part of; else each is what its weight says.
std::vector<Gemm> gemms_of(std::vector<Weight> weights,
                           const Problem& p,
                           std::optional<Module> module = {}) {
  std::erase_if(weights, [](const Weight& w) { return w.columns == 1; });  // norms, biases
  const KernelHabits habits = kernel_habits(p);
  std::vector<Gemm> out;
  out.reserve(3 * weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    LocalWeight local = local_weight(w, p);
    while (i + 1 < weights.size() && joins(habits, w, weights[i + 1])) {
      local.rows += local_weight(weights[++i], p).rows;
    }
    add_linear(out, module ? *module : linear_of(p, w), w, local, p, habits);
  }
  return out;
}

}  // namespace

Module linear_of(const Problem& problem, const Weight& weight) {
  const bool joined = kernel_habits(problem).fuses_projections;
  return parse_name<Module>(joined ? weight.module : weight.name).value();
}

std::vector<Gemm> layer_gemms(const Problem& problem, LayerKind kind, LayerPart part) {
  return gemms_of(layer_weights(problem.model, kind, part), problem);
}

std::vector<Gemm> mtp_projection_gemms(const Problem& problem) {
  std::vector<Weight> weights = mtp_module_weights(problem.model);
  std::erase_if(weights, [](const Weight& w) { return w.module != "eh_proj"; });
  return gemms_of(std::move(weights), problem);
}

std::vector<Gemm> head_gemms(const Problem& problem) {
  std::vector<Weight> weights = head_weights(problem.model);
  if (problem.model.tied_embeddings) weights.push_back(embedding_weights(problem.model).front());
  std::vector<Gemm> gemms = gemms_of(std::move(weights), problem, Module::output_layer);
  const LossParts parts = loss_parts(problem);
  if (!parts.of_hidden()) return gemms;
  for (Gemm& gemm : gemms) {
    std::int64_t& tokens = gemm.product == Product::weight_gradient ? gemm.k : gemm.m;
    tokens = ceil_div(tokens, parts.count);
  }
  return gemms;
}

}  // namespace zeroplan
