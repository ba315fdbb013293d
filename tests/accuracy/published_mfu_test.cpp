// The fastest published runs are the fastest of the corpus.
#include "cost_model/answer/published_mfu.hpp"

#include <map>
#include <utility>

#include "cost_model/runtime/measured_bands.hpp"
#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;
using tests::problem;

namespace {

struct Fastest {
  double mfu = 0;
  std::string row;
  std::optional<PublishedMfu> known;
};

// What Megatron-LM's table leaves open changes no FLOP.
void open_row(Row& row) {
  if (row.family != "mcore-weak") return;
  row.complete = true;
  row.micro_batch = 1;
  row.vpp = 1;
  row.sequence_parallel = true;
  row.recompute.kind = "none";
  row.model.tied = true;
}

std::map<std::pair<std::string, std::int64_t>, Fastest> fastest_rows() {
  std::map<std::pair<std::string, std::int64_t>, Fastest> fastest;
  for (const char* name : published_steps) {
    const std::string folder = source_dir() + "/tests/reference/";
    for (Row& row : read_corpus(folder + name)) {
      if (row.outcome != Outcome::ran || !row.throughput.published()) continue;
      if (row.family == "paper-recalled") continue;
      open_row(row);
      try {
        const Problem p = problem_of(row).problem;
        const double mfu = causal_mfu(p, measured_step_seconds(row, p));
        Fastest& best = fastest[{p.cluster.gpu.architecture, product_bits(p.training.precision)}];
        if (mfu > best.mfu) best = {mfu, row.id, best_published_mfu(p)};
      } catch (const Skip&) {
      }
    }
  }
  return fastest;
}

}  // namespace

TEST_CASE("the fastest published runs are the fastest of the corpus") {
  const auto fastest = fastest_rows();
  CHECK(fastest.size() == 10);
  for (const auto& [kind, best] : fastest) {
    CAPTURE(kind.first, kind.second, best.mfu, best.row);
    REQUIRE(best.known.has_value());
    CHECK(best.known->row == best.row);
    CHECK(best.known->mfu == Approx(best.mfu).margin(0.0001));
  }
}

TEST_CASE("a step is faster than any published one by its MFU alone") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8}, "H100-80GB");
  const double at_best = best_published_mfu(p)->mfu;
  const double seconds = causal_mfu(p, 1) / at_best;  // as fast as the best
  CHECK_FALSE(faster_than_published(p, 1.01 * seconds).has_value());
  const auto said = faster_than_published(p, 0.9 * seconds);
  REQUIRE(said.has_value());
  CHECK(said->find("54.2 %") != said->npos);
  CHECK(said->find("512 H100") != said->npos);
  p.training.scores = ScoreCount::whole;  // of what is reported alone
  CHECK(faster_than_published(p, 0.9 * seconds) == said);
  p.cluster.gpu.architecture = "Rubin";
  CHECK_FALSE(faster_than_published(p, 0.01 * seconds).has_value());
}
