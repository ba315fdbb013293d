// Which bytes move the casts of what products of 8 and 4 bits read? Front doors: add_layer_casts,
// add_head_casts.
#include "cost_model/kernel/cast_traffic.hpp"

#include <cmath>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

// What tensor parallelism gathers for its products: the input of these, and the gradient of the
// output of those. It is quantized before it travels in Transformer Engine
// (pytorch/module/linear.py, base.py grad_output_preprocess).
bool gathers_input(Module module) {
  return module == Module::qkv || module == Module::fc1 || module == Module::shared_fc1 ||
         module == Module::output_layer;
}
bool gathers_gradient(Module module) {
  return module == Module::proj || module == Module::fc2 || module == Module::shared_fc2;
}

class Casts {
 public:
  Casts(std::vector<Traffic>& out, const Problem& problem)
      : out_(out), moved_(kernel_habits(problem).casts) {}

  /// Elements of a linear.
  void add(std::int64_t input, std::int64_t gradient, std::int64_t weight) {
    const auto bytes = [](double sum) { return Bytes{std::llround(sum)}; };
    const auto x = static_cast<double>(input), dy = static_cast<double>(gradient),
               w = static_cast<double>(weight);
    out_.push_back(
        {Module::casts, Access::streaming, bytes(moved_.input * x + moved_.weight * w),
         bytes(moved_.input_again * x + moved_.gradient * dy + moved_.weight_again * w)});
  }

 private:
  std::vector<Traffic>& out_;
  CastTraffic moved_;
};

}  // namespace

void add_layer_casts(std::vector<Traffic>& out, const Problem& p, LayerKind kind, LayerPart part) {
  if (!is_quantized(p.training.precision)) return;
  Casts casts(out, p);
  const TokenShape token = token_shape(p);
  const std::int64_t rows_cast = kernel_habits(p).casts_parts ? token.norm_rows : 1;
  if (has_rest(part) && p.runtime.megatron.fp8_dot_product_attention) {
    const std::int64_t values = p.model.attention.mla ? token.output : token.key_value;
    casts.add(local_tokens(p) * (token.query + token.key_value + values),
              local_tokens(p) * token.output, 0);
  }
  for (const Gemm& gemm : layer_gemms(p, kind, part)) {
    if (gemm.product != Product::forward) continue;
    const std::int64_t rows = gemm.m * gemm.groups;
    const bool routed =
        kind == LayerKind::moe && (gemm.module == Module::fc1 || gemm.module == Module::fc2);
    const std::int64_t divided = routed ? rows : ceil_div(rows, rows_cast);
    const std::int64_t read = gathers_input(gemm.module) ? divided : rows;
    const std::int64_t received = gathers_gradient(gemm.module) ? divided : rows;
    // The activation stands between the two products of an expert.
    const bool fused = gemm.groups > 1 && p.runtime.megatron.use_transformer_engine_op_fuser;
    const bool first = gemm.module == Module::fc1;
    casts.add(fused && !first ? 0 : read * gemm.k, fused && first ? 0 : received * gemm.n,
              gemm.groups * gemm.k * gemm.n);
  }
}

void add_head_casts(std::vector<Traffic>& out, const Problem& p) {
  if (!p.runtime.megatron.fp8_output_proj) return;
  Casts casts(out, p);
  for (const Gemm& gemm : head_gemms(p)) {
    if (gemm.product != Product::forward) continue;
    casts.add(ceil_div(gemm.m, token_shape(p).norm_rows) * gemm.k, gemm.m * gemm.n, 0);
  }
}

}  // namespace zeroplan
