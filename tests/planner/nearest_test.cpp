#include "planner/nearest.hpp"

#include <set>

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

namespace {

Request in_full(Runtime runtime, const std::vector<std::pair<std::string, std::string>>& settings) {
  Request r = request();
  r.cluster = cluster_of("A100-80GB", 8);
  r.runtime = load_runtime(runtime, {settings.begin(), settings.end()});
  r.tp = runtime == Runtime::deepspeed ? 2 : 1;
  r.pp = r.cp = 1;
  r.zero = runtime == Runtime::deepspeed ? ZeroStage::gradients : ZeroStage::parameters;
  r.micro_batch = 4;
  r.global_batch = 64;
  r.sequence_length = 1024;
  r.recompute = Recompute::full;
  return r;
}

FitAnswer answered(Request r, Bytes memory) {
  r.cluster.gpu.memory = memory;
  return std::get<FitAnswer>(fit(r));
}

bool offers(const FitAnswer& answer, std::string_view change) {
  return std::ranges::find(answer.nearest_fits, change, &NearestFit::change) !=
         answer.nearest_fits.end();
}

}  // namespace

// What a setting of section 6 of the ZeRO paper saves, between what is needed with it and without.
TEST_CASE("constant buffers and contiguous memory are offered where they decide") {
  struct Case {
    Runtime runtime;
    std::pair<std::string, std::string> set;
    std::string change;
  };
  const Case cases[] = {{Runtime::deepspeed,
                         {"reduce_bucket_size", "50000000"},
                         "set reduce_bucket_size=50000000 (was 500000000)"},
                        {Runtime::zeroplan,
                         {"contiguous_memory_optimization", "true"},
                         "set contiguous_memory_optimization=true (was false)"}};
  constexpr Bytes plenty{std::int64_t{1} << 40};
  for (const Case& c : cases) {
    CAPTURE(c.change);
    const Bytes without = answered(in_full(c.runtime, {}), plenty).estimate.high;
    const FitAnswer changed = answered(in_full(c.runtime, {c.set}), plenty);
    const Bytes with = changed.estimate.high;
    REQUIRE(with < without);
    const Bytes between{(with.count() + without.count()) / 2};
    const FitAnswer tight = answered(in_full(c.runtime, {}), between);
    CHECK(tight.estimate.verdict == Verdict::tight);
    CHECK(offers(tight, c.change));
    CHECK(answered(in_full(c.runtime, {c.set}), between).estimate.verdict == Verdict::fits);
    CHECK_FALSE(offers(answered(in_full(c.runtime, {c.set}), between), c.change));
    CHECK_FALSE(offers(answered(in_full(c.runtime, {}), Bytes{with.count() * 99 / 100}), c.change));
  }
}

TEST_CASE("of each field that is to be changed alone the first value that fits is offered") {
  constexpr Bytes plenty{std::int64_t{1} << 40};
  const Bytes high = answered(in_full(Runtime::fsdp2, {}), plenty).estimate.high;
  bool smaller_batch = false;
  for (const int tenths : {9, 8, 7, 6, 5}) {
    const FitAnswer answer =
        answered(in_full(Runtime::fsdp2, {}), Bytes{high.count() / 10 * tenths});
    REQUIRE(answer.estimate.verdict != Verdict::fits);
    std::set<std::string> fields;
    for (const NearestFit& n : answer.nearest_fits) {
      const std::string field = n.change.substr(0, n.change.find_first_of("0123456789="));
      CAPTURE(n.change);
      CHECK(fields.insert(field).second);
    }
    smaller_batch = smaller_batch || fields.count("micro-batch ") == 1;
  }
  CHECK(smaller_batch);
}

// DeepSpeed's contiguous memory needs Pa, which is not set.
TEST_CASE("a setting that the runtime would refuse is not offered") {
  const Request r = in_full(Runtime::deepspeed, {{"reduce_bucket_size", "5000000000"}});
  const FitAnswer answer = answered(r, Bytes{44 * gibi});
  REQUIRE(answer.estimate.verdict != Verdict::fits);
  CHECK(offers(answer, "set reduce_bucket_size=50000000 (was 5000000000)"));
  for (const NearestFit& n : answer.nearest_fits) {
    CHECK(n.change.find("contiguous") == std::string::npos);
  }
}

TEST_CASE("runtimes without such settings are offered none of them") {
  const FitAnswer answer = answered(in_full(Runtime::zero_paper, {}), Bytes{8 * gibi});
  REQUIRE(answer.estimate.verdict == Verdict::does_not_fit);
  for (const NearestFit& n : answer.nearest_fits) CHECK(n.change.find("set ") != 0);
}
