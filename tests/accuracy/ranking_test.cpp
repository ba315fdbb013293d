// Layouts that publishers measured as the best of their sweeps, among all that zeroplan predicts.
#include <algorithm>

#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/enumeration.hpp"
#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/request_around.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

// In their id or source.
std::vector<Row> rows_with(std::string_view part) {
  std::vector<Row> rows;
  for (Row& row : read_corpus(source_dir() + "/tests/reference/measured.jsonl")) {
    if ((row.id + " " + row.source).find(part) != std::string::npos) rows.push_back(std::move(row));
  }
  return rows;
}

double tokens(const Problem& p) {
  return static_cast<double>(p.training.global_batch * p.training.sequence_length);
}

struct Standing {
  std::int64_t faster = 0;
  std::int64_t all = 0;

  void add(bool is_faster) {
    ++all;
    faster += is_faster;
  }
  double share() const { return static_cast<double>(faster) / static_cast<double>(all); }
};

// What the script of the sweep runs beside the measured layout (huggingface/nanotron
// scaling_benchmarks.py @67c5ebb6, scripts/scaling_benchmarks.py @e24d2483): tp up to 32, with
// sequence parallelism, 1F1B, and one ZeRO stage at a time, 1 only where replicas divide something.
// Which stages a cell has seen is not published. (It also skips what has fewer than pp - 1
// micro-batches, as nanotron itself does.)
bool in_sweep(const Layout& l, const Layout& measured) {
  return l.tp <= 32 && l.sequence_parallel == (l.tp > 1) &&
         (l.pp == 1 || l.schedule == Schedule::one_f_one_b) && l.zero == measured.zero &&
         (l.zero == ZeroStage::none || l.dp > 1);
}

// Where a layout stands among those that the runtime can execute with the same model, GPUs, batch
// and recompute, and that are predicted to fit rather than not: all of them, and those of the
// sweep.
struct Standings {
  Standing of_all;
  Standing of_sweep;
};

Standings standings_of(const Problem& measured) {
  SearchSpace space{.request = request_around(measured)};
  space.request.recompute = measured.layout.recompute;
  space.request.vpp = measured.layout.vpp;
  const Evaluator evaluator(measured);
  const double own = step_seconds(measured, evaluator);
  Standings standings;
  Enumeration(space).all(point_depth, [&](const Problem& p) {
    if (worst_stage(p, evaluator).device > p.cluster.gpu.memory) return;
    const bool faster = step_seconds(p, evaluator) < own;
    standings.of_all.add(faster);
    if (in_sweep(p.layout, measured.layout)) standings.of_sweep.add(faster);
  });
  return standings;
}

bool high(const Standing& standing) {
  return standing.all > 0 && standing.share() <= 0.1;
}

}  // namespace

// The best of each cell, by model size and nodes, of a sweep over dp, tp, pp, micro-batch and ZeRO
// stages 0 and 1 (nanotron docs/benchmark_summary.svg @2411b022). Of all layouts one stands behind:
// the 1.34B on 64 nodes, whose own time is met, though its pipeline has but one micro-batch. It was
// the best of those that ran, not of the sweep: see below. Among the sweep's, which are fewer, so
// do the 80B on 32 nodes, behind seven of which five are within 2.1 %, and the 1.34B on one node,
// behind three.
//
// The 80B on four nodes is the fastest of those that fit, but took three times as long as
// predicted, 0.3 s more a micro-batch. The branch that holds the sweep ends with a pipeline that
// looks for each message every 0.1 s (parallel/pipeline_parallel/p2p.py @67c5ebb6), and the script
// repeats runs with an older pipeline; all other cells are too fast to have waited so.
TEST_CASE("the best layouts that nanotron measured fit and stand high in the prediction") {
  const std::vector<Row> rows = rows_with("benchmark_summary.svg");
  REQUIRE(rows.size() == 16);
  std::size_t high_of_all = 0, high_of_sweep = 0;
  for (const Row& row : rows) {
    const Problem p = problem_of(row).problem;
    CAPTURE(row.id);
    CHECK(estimate(p, Evaluator(p)).verdict != Verdict::does_not_fit);
    const auto [all, sweep] = standings_of(p);
    WARN(row.id << ": " << all.faster << " of " << all.all << " layouts are faster, "
                << sweep.faster << " of " << sweep.all << " of the sweep");
    high_of_all += high(all);
    high_of_sweep += high(sweep);
  }
  WARN(high_of_all << " of " << rows.size() << " are within the first tenth, " << high_of_sweep
                   << " within that of the sweep");
  REQUIRE(high_of_all >= 15);
  REQUIRE(high_of_sweep >= 13);
}

// The sweep runs the 8.86B's best layout with the 1.34B too, which has half its layers and half its
// hidden size, so half its step, but for what does not grow with a model. That is at most what the
// 1.34B's step on 16 nodes takes beyond its products at their fastest, those of one node. The run
// would have been the best, so it must have failed. (3.57B was fastest on 64 nodes with ZeRO 1 too,
// and on 16 and 32 nodes both without.)
TEST_CASE("nanotron's figure lacks runs of the 1.34B on 64 nodes that were faster than its best") {
  const auto run = [](std::string_view id) {
    const std::vector<Row> rows = rows_with(id);
    REQUIRE(rows.size() == 1);
    const Problem p = problem_of(rows.front()).problem;
    return std::pair{p, measured_step_seconds(rows.front(), p)};
  };
  const auto [best, best_seconds] = run("nanotron-1.34B-64n-dp128tp2pp2-mbs2-z1");
  const auto [large, large_seconds] = run("nanotron-8.86B-64n-dp128tp4pp1-mbs2-z0");
  const auto [fewer, fewer_seconds] = run("nanotron-1.34B-16n-dp64tp2pp1-mbs4-z0");
  const auto [node, node_seconds] = run("nanotron-1.34B-1n-dp4tp1pp2-mbs4-z1");
  REQUIRE(2 * best.model.layers <= large.model.layers);
  REQUIRE(2 * best.model.hidden_size <= large.model.hidden_size);
  REQUIRE(best.model.mlp.intermediate_size <= large.model.mlp.intermediate_size);
  REQUIRE(best.model.attention.heads == large.model.attention.heads);
  REQUIRE(best.model.vocab_size == large.model.vocab_size);
  for (const Problem* p : {&large, &fewer, &node}) REQUIRE(tokens(*p) == tokens(best));
  const double spread = static_cast<double>(fewer.cluster.gpus / node.cluster.gpus);
  const double of_no_model = fewer_seconds - node_seconds / spread;
  const double missing_seconds = of_no_model + (large_seconds - of_no_model) / 2;
  CAPTURE(best_seconds, of_no_model, missing_seconds);
  CHECK(missing_seconds < best_seconds);
}

// torchtitan's Qwen3-32B on 8 and 32 GPUs: which micro-batch still fits at which tp.
TEST_CASE("the boundary that torchtitan measured is where it is predicted") {
  const std::vector<Row> rows = rows_with("titan-qwen32b-");
  REQUIRE(rows.size() == 10);
  for (const Row& row : rows) {
    const Problem p = problem_of(row).problem;
    const Evaluator evaluator(p);
    const Verdict verdict = played_estimate(p, evaluator).verdict;
    CAPTURE(row.id, name_of(verdict));
    CHECK((row.outcome == Outcome::ran) == (verdict != Verdict::does_not_fit));
  }
}

// Of the layouts that ran on the same GPUs, in tokens a second.
TEST_CASE("torchtitan's fastest layout of those it measured is predicted to be the fastest") {
  struct Speed {
    std::string id;
    double measured, predicted;
  };
  for (const std::int64_t gpus : {8, 32}) {
    std::vector<Speed> speeds;
    for (const Row& row : rows_with("titan-qwen32b-")) {
      if (row.outcome != Outcome::ran || *row.gpus != gpus || row.compiled) continue;
      const Problem p = problem_of(row).problem;
      speeds.push_back(
          {row.id, *row.throughput.tokens_per_second, tokens(p) / step_seconds(p, Evaluator(p))});
    }
    REQUIRE(speeds.size() >= 2);
    const auto best = [&](auto key) {
      return std::max_element(speeds.begin(), speeds.end(),
                              [&](const Speed& a, const Speed& b) { return key(a) < key(b); })
          ->id;
    };
    CHECK(best([](const Speed& s) { return s.predicted; }) ==
          best([](const Speed& s) { return s.measured; }));
  }
}
