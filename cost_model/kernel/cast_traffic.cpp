// Which bytes move the casts of what products of 8 and 4 bits read? Front doors: add_layer_casts,
// add_head_casts.
#include "cost_model/kernel/cast_traffic.hpp"

#include <cmath>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

// What tensor parallelism gathers for its products is quantized before it travels
// (TransformerEngine pytorch/module/linear.py, base.py grad_output_preprocess): the input of these,
// and the gradient of the output of those.
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
      : out_(out), moved_(kernel_habits(problem).cast_bytes) {}

  void add(std::int64_t forward, std::int64_t backward) {
    out_.push_back({Module::casts, Access::streaming, bytes(forward), bytes(backward)});
  }

 private:
  Bytes bytes(std::int64_t elements) const {
    return Bytes{std::llround(moved_ * static_cast<double>(elements))};
  }
  std::vector<Traffic>& out_;
  double moved_;  // an element
};

}  // namespace

void add_layer_casts(std::vector<Traffic>& out, const Problem& p, LayerKind kind, LayerPart part) {
  if (!is_quantized(p.training.precision)) return;
  Casts casts(out, p);
  const TokenShape token = token_shape(p);
  if (has_rest(part) && p.runtime.megatron.fp8_dot_product_attention) {
    const std::int64_t values = p.model.attention.mla ? token.output : token.key_value;
    casts.add(local_tokens(p) * (token.query + token.key_value + values),
              local_tokens(p) * token.output);
  }
  for (const Gemm& gemm : layer_gemms(p, kind, part)) {
    if (gemm.product != Product::forward) continue;
    const std::int64_t rows = gemm.m * gemm.groups;
    const bool routed =
        kind == LayerKind::moe && (gemm.module == Module::fc1 || gemm.module == Module::fc2);
    const std::int64_t divided = routed ? rows : ceil_div(rows, token.norm_rows);
    const std::int64_t read = gathers_input(gemm.module) ? divided : rows;
    const std::int64_t received = gathers_gradient(gemm.module) ? divided : rows;
    // The activation stands between the two products of an expert.
    const bool fused = gemm.groups > 1 && p.runtime.megatron.use_transformer_engine_op_fuser;
    const bool first = gemm.module == Module::fc1;
    casts.add(fused && !first ? 0 : read * gemm.k, fused && first ? 0 : received * gemm.n);
  }
}

void add_head_casts(std::vector<Traffic>& out, const Problem& p) {
  if (!p.runtime.megatron.fp8_output_proj) return;
  Casts casts(out, p);
  for (const Gemm& gemm : head_gemms(p)) {
    if (gemm.product != Product::forward) continue;
    casts.add(ceil_div(gemm.m, token_shape(p).norm_rows) * gemm.k, gemm.m * gemm.n);
  }
}

}  // namespace zeroplan
