// However ZeRO divides the states, the same numbers come out.
#include <array>
#include <cmath>
#include <cstring>

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

constexpr std::array all_stages{ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients,
                                ZeroStage::parameters};

RunReport run(const ModelSpec& model,
              Layout layout,
              ZeroStage zero,
              std::int64_t micro_batches = 1,
              const ZeroplanSettings& set = {}) {
  layout.zero = zero;
  Problem p = tests::tiny_problem(model, layout, micro_batches);
  p.runtime.zeroplan = set;
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

// All that ranks keep, whoever owns it.
bool same_kept(const RunReport& a, const RunReport& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankReport& x, const RankReport& y) {
                      return std::equal(x.kept_parameters.begin(), x.kept_parameters.end(),
                                        y.kept_parameters.begin(), y.kept_parameters.end(), same);
                    });
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

void require_equal(const RunReport& a, const RunReport& b) {
  REQUIRE(a.losses() == b.losses());
  REQUIRE(same_parameters(a, b));
}

void require_equal_stages(const ModelSpec& model, const Layout& layout) {
  CAPTURE(model.name, layout.dp, layout.tp, layout.pp);
  const RunReport plain = run(model, layout, ZeroStage::none);
  for (const ZeroStage zero : all_stages) {
    CAPTURE(name_of(zero));
    const RunReport divided = run(model, layout, zero);
    require_equal(divided, plain);
    if (zero < ZeroStage::parameters) REQUIRE(replicas_agree(divided, layout));
  }
}

// Of several micro-batches in a step. Stages 0 and 1 send once, so each rank adds up its
// micro-batches before ranks are added; stages 2 and 3 keep no sum that is not reduced, so ranks
// are added within each micro-batch before micro-batches are. Neither can do it the other's way
// without what makes it that stage: the traffic of one reduction, the memory of one part. Rounded
// addition is not associative, in fp32 as in bf16, so the two pairs differ in the last bits
// wherever there is more than one micro-batch.
void require_equal_pairs(const ModelSpec& model, const Layout& layout, std::int64_t micro_batches) {
  CAPTURE(model.name, layout.dp, layout.tp, layout.pp, micro_batches);
  const auto losses = [&](ZeroStage less, ZeroStage more) {
    const RunReport a = run(model, layout, less, micro_batches);
    require_equal(run(model, layout, more, micro_batches), a);
    return a.losses();
  };
  const auto once = losses(ZeroStage::none, ZeroStage::optimizer);
  const auto each_time = losses(ZeroStage::gradients, ZeroStage::parameters);
  REQUIRE(each_time.back() == Approx(once.back()).epsilon(1e-3));
}

// Under sanitizers fewer ranks: each is a thread, and all of them run the same code. That one alone
// divides nothing is seen without.
std::vector<std::int64_t> replicas() {
  if (tests::sanitized) return {3};
  return {1, 2, 3, 4, 8};
}

}  // namespace

TEST_CASE("parameters and loss are equal bit for bit across ZeRO 0 to 3") {
  for (const std::int64_t dp : replicas()) {
    for (const std::int64_t tp : {1, 2}) {
      for (const std::int64_t pp : {1, 2}) {
        const Layout layout{.dp = dp, .tp = tp, .pp = pp};
        require_equal_stages(tests::tiny_llama(), layout);
        if (dp > 3) continue;  // the rest asks for no more ranks
        require_equal_stages(tests::tiny_gpt(), layout);
        if (tp > 1) {
          Layout split = layout;
          split.sequence_parallel = true;
          require_equal_stages(tests::tiny_llama(), split);
          require_equal_stages(tests::tiny_gpt(), split);
          require_equal_pairs(tests::tiny_gpt(), split, 2 * pp);
        }
        require_equal_stages(tests::tied(tests::tiny_gpt()), layout);
        require_equal_pairs(tests::tied(tests::tiny_llama()), layout, 2 * pp);
        require_equal_pairs(tests::tiny_llama(), layout, 2 * pp);
      }
    }
  }
}

TEST_CASE("the engine's settings change no bit") {
  const ZeroStage zero = GENERATE(ZeroStage::none, ZeroStage::gradients, ZeroStage::parameters);
  const Recompute recompute = GENERATE(Recompute::none, Recompute::full);
  const Layout layout{.dp = 3, .tp = 2, .pp = 2, .recompute = recompute};
  const ModelSpec model =
      GENERATE(false, true) ? tests::tied(tests::tiny_gpt()) : tests::tiny_gpt();
  const RunReport plain = run(model, layout, zero, 2);
  for (const ZeroplanSettings& set : tests::engine_settings(recompute)) {
    CAPTURE(name_of(zero), name_of(recompute), set.prefetch, set.partition_activations,
            set.reduce_bucket_size, set.contiguous_memory_optimization, set.overlap_comm);
    const RunReport with = run(model, layout, zero, 2, set);
    REQUIRE(with.losses() == plain.losses());
    if (!set.constant_buffers()) {
      REQUIRE(same_parameters(with, plain));
    } else if (zero < ZeroStage::parameters) {
      REQUIRE(same_kept(with, plain));  // its ranks own other elements
    } else {
      REQUIRE(same_parameters(with, run(model, layout, ZeroStage::gradients, 2, set)));
    }
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
  SECTION("tensor parallelism agrees within rounding") {
    Layout split = two;
    split.tp = 2;
    const auto losses = run(model, split, ZeroStage::none, 3).losses();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      REQUIRE(losses[i] == Approx(plain.losses()[i]).epsilon(2e-3));
    }
  }
}

// Sums are those of an all-reduce, row by row; only norms' gradients are added up in two steps.
TEST_CASE("sequence parallelism computes the same, and norms stay alike on all ranks") {
  for (const ModelSpec& model : {tests::tiny_llama(), tests::tiny_gpt()}) {
    const Layout whole{.dp = 2, .tp = 2, .pp = 2, .micro_batch = 3};
    Layout split = whole;
    split.sequence_parallel = true;
    const RunReport a = run(model, whole, ZeroStage::parameters, 3);
    const RunReport b = run(model, split, ZeroStage::parameters, 3);
    REQUIRE(a.losses().front() == b.losses().front());
    for (std::size_t i = 0; i < a.losses().size(); ++i) {
      REQUIRE(b.losses()[i] == Approx(a.losses()[i]).epsilon(1e-4));
    }
    const RunReport kept = run(model, split, ZeroStage::none, 3);
    const std::size_t norm = static_cast<std::size_t>(model.hidden_size);  // a layer begins with it
    const std::size_t before = model.learned_positions > 0 ? 2 : 1;        // units of the embedding
    for (const auto& [first, layer] : {std::pair{std::size_t{0}, before}, {4, 0}}) {
      const std::vector<Bf16>& one = kept.ranks[first].kept_parameters[layer];
      const std::vector<Bf16>& other = kept.ranks[first + 1].kept_parameters[layer];
      REQUIRE_FALSE(same(one, other));
      REQUIRE(same({one.begin(), one.begin() + norm}, {other.begin(), other.begin() + norm}));
      REQUIRE_FALSE(std::all_of(one.begin(), one.begin() + norm,
                                [](Bf16 value) { return widen(value) == 1.0F; }));
    }
  }
}

TEST_CASE("a tied head on another stage keeps its copy of the embedding alike") {
  for (const ZeroStage zero : all_stages) {
    CAPTURE(name_of(zero));
    const ModelSpec model = tests::tied(tests::tiny_gpt());
    const Layout apart{.dp = 2, .tp = 2, .pp = 3};
    const RunReport copied = run(model, apart, zero, 2);
    constexpr std::size_t stage_ranks = 4;
    for (std::size_t rank = 0; rank < stage_ranks; ++rank) {
      const std::vector<Bf16>& words = copied.ranks[rank].own_parameters.front();
      REQUIRE(same(words, copied.ranks[2 * stage_ranks + rank].own_parameters.back()));
    }
    // Both uses add to one gradient before it is rounded, or after.
    Layout together = apart;
    together.pp = 1;
    const auto losses = run(model, together, zero, 2).losses();
    REQUIRE(losses.front() == copied.losses().front());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      REQUIRE(copied.losses()[i] == Approx(losses[i]).epsilon(2e-3));
    }
    // And it is not the model whose head is its own.
    Layout plain = together;
    REQUIRE(run(tests::tiny_gpt(), plain, zero, 2).losses() != losses);
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
