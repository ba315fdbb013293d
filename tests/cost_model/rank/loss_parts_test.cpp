#include "cost_model/rank/loss_parts.hpp"

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem titan(const std::vector<Override>& settings, std::int64_t micro_batch = 1) {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b",
                             {.dp = 8, .micro_batch = micro_batch, .zero = ZeroStage::parameters},
                             "H100-80GB");
  p.runtime = load_runtime(Runtime::fsdp2, settings);
  return p;
}

std::string broken_rule(const Problem& p) {
  const auto violation = first_violation(p);
  return violation ? std::string(violation->rule) : "";
}

}  // namespace

TEST_CASE("the loss is cut as torchtitan of the date cuts it") {
  CHECK(loss_parts(titan({{"recipe_date", "2025-02-06"}})).count == 1);
  CHECK(loss_parts(titan({{"recipe_date", "2026-04-26"}})).count == 1);
  const LossParts usual = loss_parts(titan({{"recipe_date", "2026-04-27"}}));
  CHECK(usual.count == 8);
  CHECK(usual.of_hidden());
  const LossParts early = loss_parts(titan({{"recipe_date", "2025-03-24"}, {"loss_chunks", "8"}}));
  CHECK(early.count == 8);
  CHECK(early.of_logits());
  const LossParts whole = loss_parts(titan({{"loss_chunks", "1"}}));
  CHECK(!whole.of_hidden());
  CHECK(!whole.of_logits());
  CHECK(loss_parts(titan({{"layers", "huggingface"}})).count == 1);
  CHECK(loss_parts(tests::problem(Runtime::megatron, "llama3-8b", {})).count == 1);
}

TEST_CASE("parts are refused where the code has none") {
  CHECK(broken_rule(titan({{"recipe_date", "2025-02-06"}, {"loss_chunks", "8"}})) ==
        "T-loss-chunks");
  CHECK(broken_rule(titan({{"recipe_date", "2025-04-02"}, {"loss_chunks", "8"}})) ==
        "T-loss-chunks");
  CHECK(broken_rule(titan({{"layers", "huggingface"}, {"loss_chunks", "8"}})) == "T-loss-chunks");
  CHECK(broken_rule(titan({{"recipe_date", "2025-02-06"}, {"loss_chunks", "1"}})).empty());
  CHECK(broken_rule(titan({{"recipe_date", "2025-03-24"}, {"loss_chunks", "8"}})).empty());
  CHECK(broken_rule(titan({})).empty());
}

// Of one sample before torchtitan 73aed7f6c, of all of a micro-batch since.
TEST_CASE("parts are of equally many tokens") {
  const auto rule = [](const std::string& date, std::int64_t micro_batch, const char* parts) {
    Problem p = titan({{"recipe_date", date}, {"loss_chunks", parts}}, micro_batch);
    p.training.sequence_length = 4100;
    return broken_rule(p);
  };
  CHECK(rule("2026-08-21", 1, "8") == "T-loss-chunks");
  CHECK(rule("2026-08-21", 1, "4").empty());
  CHECK(rule("2026-08-21", 1, "1").empty());
  CHECK(rule("2026-08-21", 2, "8").empty());
  CHECK(rule("2026-06-30", 2, "8") == "T-loss-chunks");
}
