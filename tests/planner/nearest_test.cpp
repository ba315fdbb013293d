#include "planner/nearest.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Request request() {
  return {.model = find_model("llama3-8b").spec,
          .cluster = cluster_of("H100-80GB", 8),
          .runtime = load_runtime(Runtime::megatron, {})};
}

std::string refusal(const Request& request) {
  const auto answered = fit(request);
  REQUIRE(std::holds_alternative<Refusal>(answered));
  return std::get<Refusal>(answered).message;
}

}  // namespace

TEST_CASE("a refusal names the nearest legal values of what was given") {
  Request heads = request();
  heads.tp = 3;
  CHECK_THAT(refusal(heads), ContainsSubstring("--tp 2 or 4 would do"));
  Request batch = request();
  batch.micro_batch = 2;
  batch.global_batch = 7;
  CHECK_THAT(refusal(batch), ContainsSubstring("--global-batch 16 would do"));
  Request chunks = request();
  chunks.cp = 2;
  chunks.sequence_length = 4097;
  CHECK_THAT(refusal(chunks), ContainsSubstring("--cp 1 would do"));
}
