// A runtime is one value: given that alone, every answer is its own.
#include "tests/cost_model/runtime/toy/toy.hpp"

#include <algorithm>

#include "cost_model/explain/explanation.hpp"
#include "planner/sweep/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Request request(std::int64_t gpus) {
  return {.model = find_model("llama3.2-1b").spec,
          .cluster = cluster_of("H100-80GB", gpus),
          .runtime = {.kind = Runtime::zeroplan, .other = &tests::toy_code}};
}

FitAnswer fitted(const Request& asked) {
  const auto answer = fit(asked);
  REQUIRE(std::holds_alternative<FitAnswer>(answer));
  return std::get<FitAnswer>(answer);
}

}  // namespace

TEST_CASE("fit of a runtime outside the list counts what its program holds", "[toy]") {
  Request asked = request(8);
  asked.tp = asked.pp = 1;
  asked.zero = ZeroStage::optimizer;
  asked.recompute = Recompute::none;
  const FitAnswer answer = fitted(asked);
  const Problem& p = answer.problem;
  // Four residuals of 16 bits a token and layer.
  const std::int64_t kept = 4 * 2 * p.model.hidden_size * local_tokens(p) * p.model.layers;
  const StageMemory& peak = answer.estimate.peak();
  REQUIRE(peak.memory[Category::activations] == Bytes{kept});
  REQUIRE(4 * peak.memory[Category::master_parameters] == peak.memory[Category::parameters]);
  REQUIRE(answer.estimate.verdict == Verdict::fits);
  REQUIRE(std::ranges::find(answer.assumptions, "toy exists") != answer.assumptions.end());
}

TEST_CASE("what it cannot run is refused by its own rule", "[toy]") {
  Request asked = request(8);
  asked.tp = 2;
  const auto answer = fit(asked);
  REQUIRE(std::holds_alternative<Refusal>(answer));
  REQUIRE(std::get<Refusal>(answer).message.find("toy divides no layer") != std::string::npos);
}

TEST_CASE("a sweep tries what it says that one would try", "[toy]") {
  const SweepAnswer answer = sweep({.request = request(8)});
  REQUIRE(!answer.plans.empty());
  for (const Plan& plan : answer.plans) {
    const Layout& l = plan.answer.problem.layout;
    REQUIRE(l.tp * l.cp == 1);
    REQUIRE(l.zero <= ZeroStage::optimizer);
    REQUIRE(l.schedule == Schedule::one_f_one_b);
    REQUIRE(plan.scored.seconds > 0);
  }
}

TEST_CASE("its step can be played and taken apart", "[toy]") {
  const FitAnswer answer = fitted(request(8));
  const Problem& p = answer.problem;
  const Evaluator evaluator(p);
  const Stage stage = stages(p).front();
  const StageProgram program = evaluator.stage_program(p, stage);
  REQUIRE(timeline(program, representative_passes(p, 0)).highest > 0);
  const Explanation e = explain(p, evaluator, stage, stage_memory(p, evaluator, stage, 0));
  for (const ExplainedRow& row : e.rows) {
    Bytes sum;
    for (const ExplainedPart& part : row.parts) sum += part.total();
    REQUIRE(sum == row.bytes);
    if (row.category == Category::activations) REQUIRE(row.source == "toy: program");
  }
}
