// Layouts that publishers measured as the best of their sweeps, among all that zeroplan predicts.
#include <algorithm>

#include "cost_model/step_time.hpp"
#include "planner/sweep/enumeration.hpp"
#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

// In their id or source.
std::vector<Row> rows_with(std::string_view part) {
  std::vector<Row> rows;
  for (Row& row : read_corpus(ZEROPLAN_SOURCE_DIR "/tests/reference/measured.jsonl")) {
    if ((row.id + " " + row.source).find(part) != std::string::npos) rows.push_back(std::move(row));
  }
  return rows;
}

double tokens(const Problem& p) {
  return static_cast<double>(p.training.global_batch * p.training.sequence_length);
}

// Where a layout stands among those that the runtime can execute with the same model, GPUs, batch
// and recompute, and that are predicted to fit.
struct Standing {
  std::int64_t faster = 0;
  std::int64_t all = 0;

  double share() const { return static_cast<double>(faster) / static_cast<double>(all); }
};

Standing standing_of(const Problem& measured) {
  SearchSpace space{.request = {.model = measured.model,
                                .cluster = measured.cluster,
                                .runtime = measured.runtime}};
  Request& r = space.request;
  r.global_batch = measured.training.global_batch;
  r.sequence_length = measured.training.sequence_length;
  r.precision = measured.training.precision;
  r.optimizer = measured.training.optimizer;
  r.attention = measured.training.attention;
  r.recompute = measured.layout.recompute;
  r.vpp = measured.layout.vpp;
  const Remembered remembered(measured.model);
  const double own = step_seconds(measured, remembered);
  Standing standing;
  Enumeration(space).all(point_depth, [&](const Problem& p) {
    if (worst_stage(p, remembered).verdict == Verdict::does_not_fit) return;
    ++standing.all;
    standing.faster += step_seconds(p, remembered) < own;
  });
  return standing;
}

}  // namespace

// The best of each cell, by model size and nodes, of a sweep over dp, tp, pp, micro-batch and ZeRO
// stages 0 and 1 (nanotron docs/benchmark_summary.svg @2411b022). The 1.34B on 64 nodes stands far
// behind: its own time is met within 4 %, but without ZeRO that cell is predicted faster, and no
// row says how fast it was. The 80B on four nodes, whose time is missed by two thirds, stands
// behind 7 of 32.
TEST_CASE("the best layouts that nanotron measured fit and stand high in the prediction") {
  const std::vector<Row> rows = rows_with("benchmark_summary.svg");
  REQUIRE(rows.size() == 16);
  std::size_t high = 0, near = 0;
  for (const Row& row : rows) {
    const Problem p = problem_of(row).problem;
    const Remembered remembered(p.model);
    CAPTURE(row.id);
    CHECK(estimate(p, remembered).verdict != Verdict::does_not_fit);
    const Standing standing = standing_of(p);
    REQUIRE(standing.all > 0);
    WARN(row.id << ": " << standing.faster << " of " << standing.all << " layouts are faster");
    near += standing.share() <= 0.2;
    high += standing.share() <= 0.1;
  }
  WARN(high << " of " << rows.size() << " are within the first tenth");
  REQUIRE(near + 2 >= rows.size());
  REQUIRE(4 * high >= 3 * rows.size());
}

// torchtitan's Qwen3-32B on 8 and 32 GPUs: which micro-batch still fits at which tp.
TEST_CASE("the boundary that torchtitan measured is where it is predicted") {
  const std::vector<Row> rows = rows_with("titan-qwen32b-");
  REQUIRE(rows.size() == 10);
  for (const Row& row : rows) {
    const Problem p = problem_of(row).problem;
    const Remembered remembered(p.model);
    const Verdict verdict = played_estimate(p, remembered).verdict;
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
      speeds.push_back({row.id, *row.throughput.tokens_per_second,
                        tokens(p) / step_seconds(p, Remembered(p.model))});
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
