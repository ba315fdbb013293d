// Which bytes move the casts of what products of 8 and 4 bits read? Front doors: add_layer_casts,
// add_head_casts.
#include "cost_model/kernel/cast_traffic.hpp"

#include <cmath>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

// What tensor parallelism gathers for its products: the input of a column-parallel linear, and the
// gradient of the output of a row-parallel one. It is quantized before it travels in Transformer
// Engine (pytorch/module/linear.py, base.py grad_output_preprocess) and under torchao's scales of
// whole tensors (float8_tensor_parallel.py).
bool gathers_input(Split split) {
  return split == Split::rows;
}
bool gathers_gradient(Split split) {
  return split == Split::columns;
}

class Casts {
 public:
  Casts(std::vector<Traffic>& out, CastTraffic moved) : out_(out), moved_(moved) {}

  /// Elements of a linear, or of so many linears together, each cast by itself.
  void add(std::int64_t input, std::int64_t gradient, std::int64_t weight, std::int64_t times = 1) {
    const auto bytes = [&](double sum) {
      return Bytes{std::llround(sum / static_cast<double>(times))};
    };
    const auto x = static_cast<double>(input), dy = static_cast<double>(gradient),
               w = static_cast<double>(weight);
    out_.push_back({Module::casts, Access::streaming, bytes(moved_.input * x + moved_.weight * w),
                    bytes(moved_.input_again * x + moved_.gradient * dy + moved_.weight_again * w),
                    times});
  }

 private:
  std::vector<Traffic>& out_;
  CastTraffic moved_;
};

// Transformer Engine casts the tokens of each expert by a kernel of its own; with delayed scaling
// by one for all (pytorch/csrc/extensions/cast.cpp multi_tensor_quantize_impl @v2.14).
bool casts_by_expert(const Problem& p, const KernelHabits& habits) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool at_once =
      p.training.precision == Precision::fp8 && set.fp8_recipe == Fp8Recipe::delayed;
  return habits.launcher == Launcher::transformer_engine && !set.use_transformer_engine_op_fuser &&
         !at_once;
}

constexpr std::int64_t widened = 2 + 4;  // bytes of an element, read and written; narrowed too

// Under autocast each linear casts its weight and, where it reads the hidden state, its input;
// backward both gradients are widened. Where it writes the hidden state, its output's gradient is
// narrowed. Nothing of this is so for grouped products; batched ones cast all.
void add_autocasts(std::vector<Traffic>& out,
                   Module module,
                   const std::vector<Gemm>& gemms,
                   const KernelHabits& habits) {
  for (const Gemm& gemm : gemms) {
    if (gemm.product != Product::forward || (gemm.groups > 1 && habits.wide_experts)) continue;
    const bool writes_hidden = gathers_gradient(gemm.split);
    const Bytes both{widened * gemm.groups *
                     (gemm.k * gemm.n + (writes_hidden ? 0 : gemm.m * gemm.k))};
    const Bytes narrowed{writes_hidden ? widened * gemm.m * gemm.n : 0};
    out.push_back({module, Access::streaming, both, both + narrowed});
  }
}

}  // namespace

bool casts_operands(const Problem& problem) {
  return is_quantized(problem.training.precision) || kernel_habits(problem).autocast;
}

void add_layer_casts(std::vector<Traffic>& out, const Problem& p, LayerKind kind, LayerPart part) {
  const KernelHabits habits = kernel_habits(p);
  if (habits.autocast) return add_autocasts(out, Module::casts, layer_gemms(p, kind, part), habits);
  if (!is_quantized(p.training.precision)) return;
  Casts casts(out, habits.casts);
  const TokenShape token = token_shape(p);
  const std::int64_t rows_cast = habits.casts_parts ? token.norm_rows : 1;
  if (has_rest(part) && p.runtime.megatron.fp8_dot_product_attention) {
    const std::int64_t values = p.model.attention.mla ? token.output : token.key_value;
    casts.add(local_tokens(p) * (token.query + token.key_value + values),
              local_tokens(p) * token.output, 0);
  }
  const bool by_expert = casts_by_expert(p, habits);
  for (const Gemm& gemm : layer_gemms(p, kind, part)) {
    if (gemm.product != Product::forward) continue;
    const std::int64_t rows = gemm.m * gemm.groups;
    const std::int64_t divided = ceil_div(rows, rows_cast);
    const std::int64_t read = gathers_input(gemm.split) ? divided : rows;
    const std::int64_t received = gathers_gradient(gemm.split) ? divided : rows;
    // The activation stands between the two products of an expert.
    const bool fused = gemm.groups > 1 && p.runtime.megatron.use_transformer_engine_op_fuser;
    const bool first = gemm.module == Module::fc1;
    casts.add(fused && !first ? 0 : read * gemm.k, fused && first ? 0 : received * gemm.n,
              gemm.groups * gemm.k * gemm.n, by_expert ? gemm.groups : 1);
  }
}

void add_head_casts(std::vector<Traffic>& out, const Problem& p) {
  const KernelHabits habits = kernel_habits(p);
  if (habits.autocast) return add_autocasts(out, Module::loss, head_gemms(p), habits);
  if (!p.runtime.megatron.fp8_output_proj) return;
  Casts casts(out, habits.casts);
  for (const Gemm& gemm : head_gemms(p)) {
    if (gemm.product != Product::forward) continue;
    casts.add(ceil_div(gemm.m, token_shape(p).norm_rows) * gemm.k, gemm.m * gemm.n, 0);
  }
}

}  // namespace zeroplan
