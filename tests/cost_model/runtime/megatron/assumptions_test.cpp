// What Megatron-LM does that nobody asked for is said.
#include "cost_model/runtime/megatron/code.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("a vocabulary is padded to a multiple of the tensor parallel group") {
  Problem p = tests::problem(Runtime::megatron, "gpt2-xl", {.tp = 8, .pp = 2});
  p.model.vocab_size = 50'257;
  const auto said = megatron_assumptions(p);
  REQUIRE(said.size() == 1);
  CHECK_THAT(said.front(), ContainsSubstring("vocabulary 50257 padded to 51200"));
  CHECK_THAT(said.front(), ContainsSubstring("= 1024)"));
  p.model.vocab_size = 51'200;
  CHECK(megatron_assumptions(p).empty());
}
