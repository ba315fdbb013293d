// However ZeRO divides the states, the same numbers come out.
#include <cmath>
#include <cstring>

#include "cost_model/legality.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

constexpr ZeroStage all_stages[] = {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients,
                                    ZeroStage::parameters};

RunReport run(const ModelSpec& model,
              Layout layout,
              ZeroStage zero,
              std::int64_t micro_batches = 1) {
  layout.zero = zero;
  const Problem p = tests::tiny_problem(model, layout, micro_batches);
  REQUIRE_FALSE(first_violation(p));
  return run_on_host(p, {});
}

bool same(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Bf16)) == 0;
}

bool same_parameters(const RunReport& a, const RunReport& b) {
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    for (std::size_t u = 0; u < a.ranks[r].own_parameters.size(); ++u) {
      if (!same(a.ranks[r].own_parameters[u], b.ranks[r].own_parameters[u])) return false;
    }
  }
  return true;
}

// Replicas of stages 0 to 2 hold the same.
bool replicas_agree(const RunReport& report, const Layout& layout) {
  for (const RankReport& rank : report.ranks) {
    const auto first =
        static_cast<std::size_t>(rank.place.pp * layout.dp * layout.tp + rank.place.tp);
    for (std::size_t u = 0; u < rank.kept_parameters.size(); ++u) {
      if (!same(rank.kept_parameters[u], report.ranks[first].kept_parameters[u])) return false;
    }
  }
  return true;
}

void require_equal_stages(const ModelSpec& model, const Layout& layout) {
  CAPTURE(model.name, layout.dp, layout.tp, layout.pp, name_of(layout.recompute));
  const RunReport plain = run(model, layout, ZeroStage::none);
  REQUIRE(replicas_agree(plain, layout));
  for (const ZeroStage zero : all_stages) {
    CAPTURE(name_of(zero));
    const RunReport divided = run(model, layout, zero);
    REQUIRE(divided.losses() == plain.losses());
    REQUIRE(same_parameters(divided, plain));
    if (zero < ZeroStage::parameters) REQUIRE(replicas_agree(divided, layout));
  }
}

}  // namespace

TEST_CASE("parameters and loss are equal bit for bit across ZeRO 0 to 3") {
  for (const std::int64_t dp : {1, 2, 3, 4, 8}) {
    require_equal_stages(tests::tiny_llama(), {.dp = dp});
    require_equal_stages(tests::tiny_gpt(), {.dp = dp});
  }
}

TEST_CASE("and with tensor and pipeline parallelism") {
  for (const auto& [tp, pp] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {1, 2}, {2, 2}}) {
    for (const std::int64_t dp : {1, 2, 3}) {
      require_equal_stages(tests::tiny_llama(), {.dp = dp, .tp = tp, .pp = pp});
    }
    require_equal_stages(tests::tiny_gpt(), {.dp = 2, .tp = tp, .pp = pp});
  }
}

TEST_CASE("the rest of the layout changes nothing that it should not") {
  const ModelSpec model = tests::tiny_llama();
  const Layout two{.dp = 2, .micro_batch = 2};
  const RunReport plain = run(model, two, ZeroStage::none, 3);
  SECTION("a pipeline computes the same") {
    Layout piped = two;
    piped.pp = 2;
    REQUIRE(run(model, piped, ZeroStage::none, 3).losses() == plain.losses());
  }
  SECTION("so does recompute") {
    Layout full = two;
    full.recompute = Recompute::full;
    const RunReport recomputed = run(model, full, ZeroStage::none, 3);
    REQUIRE(recomputed.losses() == plain.losses());
    REQUIRE(same_parameters(recomputed, plain));
  }
  SECTION("stages that reduce equally often agree bit for bit, others within rounding") {
    REQUIRE(run(model, two, ZeroStage::optimizer, 3).losses() == plain.losses());
    const auto each_time = run(model, two, ZeroStage::gradients, 3).losses();
    REQUIRE(run(model, two, ZeroStage::parameters, 3).losses() == each_time);
    REQUIRE(each_time.back() == Approx(plain.losses().back()).epsilon(1e-3));
  }
  SECTION("tensor parallelism agrees within rounding") {
    Layout split = two;
    split.tp = 2;
    const auto losses = run(model, split, ZeroStage::none, 3).losses();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      REQUIRE(losses[i] == Approx(plain.losses()[i]).epsilon(2e-3));
    }
  }
}

TEST_CASE("the loss starts at that of a guess and falls") {
  for (const ModelSpec& model : {tests::tiny_llama(), tests::tiny_gpt()}) {
    Problem p = tests::tiny_problem(model, {.dp = 2, .micro_batch = 4});
    RunOptions options;
    options.steps = 60;
    options.adam.rate = 1e-2;
    const auto losses = run_on_host(p, options).losses();
    REQUIRE(losses.front() == Approx(std::log(101.0)).epsilon(0.02));
    REQUIRE(losses.back() < 0.5 * losses.front());
  }
}
