// How does torchao multiply in 8 bits? Front doors: float8_recipe, torchao_casts.
#include "cost_model/runtime/fsdp2/float8.hpp"

namespace zeroplan {
namespace {

constexpr double narrow = 1, half = 2, whole = 4;  // bytes

// Looking for the largest value, and scaling: a kernel each when compiled. Eagerly magnitudes are a
// tensor, and so are the widened, the scaled and the bounded one (float8_utils.py tensor_to_amax,
// to_fp8_saturated; float8_training_tensor.py _ToFloat8ConstrFunc).
struct Steps {
  double looks = half;
  double scales = half + narrow;
};
constexpr Steps eager{.looks = half + half + half,
                      .scales = half + whole + 4 * whole + whole + narrow};

// For a product that reads the other order.
constexpr double turned = narrow + narrow;

// Backward products whose operands have a scale a row run as if they had none, and their result is
// scaled by a kernel of its own: the kernel that could is slow where it sums up in fp32.
constexpr double rescales = half + half;

}  // namespace

Float8Recipe float8_recipe(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  if (set.float8_recipe != Float8Recipe::recipe) return set.float8_recipe;
  return set.recipe_date < titan_scales_rows ? Float8Recipe::tensorwise : Float8Recipe::rowwise;
}

bool scales_tensors(const Problem& problem) {
  const Float8Recipe recipe = float8_recipe(problem);
  return recipe == Float8Recipe::tensorwise || recipe == Float8Recipe::delayed;
}

bool gathers_eight_bit(const Problem& problem) {
  constexpr std::int64_t converter_renamed = 20250930;
  constexpr std::int64_t converter_found = 20260223;
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  const bool missed = set.layers == LayerCode::torchtitan && set.recipe_date >= converter_renamed &&
                      set.recipe_date < converter_found;
  return scales_tensors(problem) && !missed;
}

CastTraffic torchao_casts(const Problem& problem) {
  if (problem.training.precision != Precision::fp8) return {};
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  const bool compiled = set.compiles_layers();
  const Steps step = compiled ? Steps{} : eager;
  const double tensor = step.looks + step.scales;
  const double column = tensor;
  const double row = compiled ? step.scales : tensor;  // one that was looked at is still there
  switch (float8_recipe(problem)) {
    case Float8Recipe::recipe:
    case Float8Recipe::tensorwise:
      return {.input = tensor,
              .input_again = turned,
              .gradient = tensor + turned,
              .weight = set.float8_all_gather ? 0 : tensor,
              .weight_again = (set.float8_all_gather ? 0 : tensor) + turned};
    case Float8Recipe::rowwise:
      return {.input = row,
              .input_again = column + rescales,
              .gradient = row + column,
              .weight = row,
              .weight_again = column + rescales};
    case Float8Recipe::rowwise_with_gw_hp:
      return {.input = row,
              .input_again = rescales,
              .gradient = row,
              .weight = row,
              .weight_again = tensor};
    case Float8Recipe::delayed:
      break;
  }
  // One kernel reads, narrows and turns (TransformerEngine common/cast).
  constexpr double fused = half + 2 * narrow;
  return {.input = fused, .gradient = fused, .weight = fused};
}

double torchao_forward_rate(const Problem& problem) {
  constexpr double of_rows = 0.95;
  return scales_tensors(problem) ? 1 : of_rows;
}

}  // namespace zeroplan
