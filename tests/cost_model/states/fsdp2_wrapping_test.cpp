// Which weights are a unit of FSDP2's root, by code and date.
#include "cost_model/states/fsdp2_wrapping.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem plan(std::string_view model, LayerCode code, std::int64_t date) {
  Problem p = problem(Runtime::fsdp2, model, {.dp = 8, .zero = ZeroStage::parameters});
  p.runtime.fsdp2.layers = code;
  p.runtime.fsdp2.recipe_date = date;
  return p;
}

}  // namespace

// torchtitan 83e694105 of 2025-07-28 gives embedding and output layer units of their own.
TEST_CASE("torchtitan's root is divided from a day on") {
  CHECK(keeps_last_layer(plan("llama3-8b", LayerCode::torchtitan, 20250727)));
  CHECK(!keeps_last_layer(plan("llama3-8b", LayerCode::torchtitan, 20250728)));
  CHECK(!keeps_last_layer(plan("llama3-8b", LayerCode::huggingface, 20250727)));
}

TEST_CASE("ends are one unit where their weights are one, but torchtitan's Qwen3") {
  constexpr std::int64_t divided = 20250728;
  CHECK(!joins_ends(plan("llama3-8b", LayerCode::torchtitan, divided)));
  CHECK(joins_ends(plan("llama3-8b", LayerCode::torchtitan, divided - 1)));
  CHECK(joins_ends(plan("llama3.2-1b", LayerCode::torchtitan, divided)));
  CHECK(!joins_ends(plan("qwen3-0.6b", LayerCode::torchtitan, divided)));
  CHECK(joins_ends(plan("qwen3-0.6b", LayerCode::huggingface, divided)));
}
