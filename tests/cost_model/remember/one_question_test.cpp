#include "cost_model/remember/one_question.hpp"

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem llama() {
  return tests::problem(Runtime::megatron, "llama3-8b",
                        {.dp = 8, .tp = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true},
                        "H100-80GB");
}

void require_refused(const Evaluator& known, const Problem& p) {
  CHECK_THROWS_AS(estimate(p, known), std::logic_error);
  CHECK_THROWS_AS(step_seconds(p, known), std::logic_error);
  CHECK_THROWS_AS(known.pieces(p), std::logic_error);
  CHECK_THROWS_AS(known.blocks(p), std::logic_error);
  CHECK_THROWS_AS(known.block_times(p), std::logic_error);
  CHECK_THROWS_AS(known.stage_program(p, stages(p).front()), std::logic_error);
}

}  // namespace

TEST_CASE("what is remembered of one question refuses another") {
  const Problem asked = llama();
  const Evaluator known(asked);
  const double seconds = step_seconds(asked, known);
  Problem p = asked;
  SECTION("another model") {
    p.model = find_model("llama3-70b").spec;
  }
  SECTION("another GPU") {
    p.cluster = cluster_of("A100-80GB", 16);
  }
  SECTION("other links") {
    p.cluster.inter_node_bandwidth /= 2;
  }
  SECTION("another runtime") {
    p.runtime = load_runtime(Runtime::nanotron, {});
  }
  SECTION("another setting") {
    p.runtime.megatron.hidden_dropout = 0.1;
  }
  SECTION("a setting that layouts may decide, where this one does not") {
    p.runtime.megatron.recompute_modules = 2;
  }
  require_refused(known, p);
  CHECK(step_seconds(asked, known) == seconds);
}

TEST_CASE("a model is refused from the first question on") {
  const Problem p = llama();
  Problem other = p;
  other.model = find_model("llama3-70b").spec;
  const Evaluator known(other);
  CHECK_THROWS_WITH(known.pieces(p), ContainsSubstring("another model"));
}

TEST_CASE("one question has many layouts, with the settings that they decide") {
  Problem p = llama();
  const Evaluator known(p);
  const auto answers = [&] { CHECK_NOTHROW(step_seconds(p, known)); };
  answers();
  p.layout.dp = 4;
  p.cluster = cluster_of("H100-80GB", 8);
  answers();
  p.training.sequence_length = 1024;
  p.layout.recompute = Recompute::selective;
  answers();
  p.layout.recompute_modules = p.runtime.megatron.recompute_modules = 2;
  answers();
}
