#include "cost_model/states/state_recipe.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// Where products take operands in either orientation, 8 bits with one scale a tensor need no
// transposed copy (Transformer Engine, is_non_tn_fp8_gemm_supported).
TEST_CASE("Blackwell for data centers and what follows need one 8-bit copy, others two") {
  struct Case {
    std::int64_t capability;
    std::int64_t copies;
  };
  for (const Case& c : {Case{89, 2},
                        {90, 2},
                        {99, 2},
                        {100, 1},
                        {103, 1},
                        {119, 1},
                        {120, 2},
                        {121, 2},
                        {129, 2},
                        {130, 1}}) {
    CAPTURE(c.capability);
    Problem p = tests::problem(Runtime::megatron, "llama3-8b", {});
    p.training.precision = Precision::fp8;
    p.cluster.gpu.compute_capability = c.capability;
    for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::tensorwise}) {
      p.runtime.megatron.fp8_recipe = recipe;
      CHECK(copies_of_matrix(p) == c.copies);
    }
    for (const Fp8Recipe recipe : {Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
      p.runtime.megatron.fp8_recipe = recipe;
      CHECK(copies_of_matrix(p) == 2);
    }
    p.training.precision = Precision::nvfp4;
    CHECK(copies_of_matrix(p) == 2);
  }
}

// Main gradients of 16 bits are widened for the step, those of 32 are read as they are; both are by
// a precision-aware FusedAdam from ZeRO 1 on. Megatron-FSDP's are as narrow as parameters.
TEST_CASE("Megatron widens narrow gradients for the step at each stage of ZeRO") {
  for (const ZeroStage zero :
       {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
    for (const bool narrow : {false, true}) {
      for (const bool aware : {false, true}) {
        Problem p = tests::problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = zero});
        p.runtime.megatron.grad_reduce_in_bf16 = narrow;
        p.runtime.megatron.use_precision_aware_optimizer = aware;
        CAPTURE(name_of(zero), narrow, aware);
        const bool divided = zero >= ZeroStage::gradients;
        const bool as_they_are = (!narrow && !divided) || (aware && zero >= ZeroStage::optimizer);
        CHECK(state_recipe(p).step_gradient_bytes == (as_they_are ? 0 : 4));
      }
    }
  }
}
