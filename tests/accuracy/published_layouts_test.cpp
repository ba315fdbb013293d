// Layouts that NVIDIA recommends, beside what a search finds for the same model, GPUs, batch and
// settings.
#include <fmt/format.h>

#include <set>
#include <tuple>

#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/search.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/request_around.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

// Of each model, GPU, number of GPUs and precision the first complete row, which is the newest.
std::vector<Row> newest_rows() {
  std::set<std::tuple<std::string, Text, Count, Text>> seen;
  std::vector<Row> rows;
  for (Row& row : read_corpus(source_dir() + "/tests/reference/nvidia_tables.jsonl")) {
    if (!row.complete) continue;
    if (!seen.insert({row.model.name, row.gpu, row.gpus, row.precision}).second) continue;
    rows.push_back(std::move(row));
  }
  return rows;
}

// All layouts but for how optimizer states are divided.
SearchSpace space_around(const Problem& p) {
  SearchSpace space{.request = request_around(p)};
  space.request.zero = p.layout.zero;
  space.request.offload = p.layout.offload;
  return space;
}

std::string degrees(const Layout& l) {
  return fmt::format("tp {} pp {} vpp {} cp {} ep {} mb {} recompute {}", l.tp, l.pp, l.vpp, l.cp,
                     l.ep, l.micro_batch, name_of(l.recompute));
}

}  // namespace

// Tables, not promises: what a search finds was not run.
TEST_CASE("what NVIDIA recommends, beside what a search finds", "[.published-layouts]") {
  for (const Row& row : newest_rows()) {
    const Problem p = problem_of(row).problem;
    const double own = step_seconds(p, Evaluator(p));
    const SearchResult found = search({space_around(p)}, {.shapes = 1, .front = false});
    REQUIRE(!found.best.empty());
    const Scored& best = found.best.front();
    fmt::print("{:5.3f}  {:7.3f} s  {}  |  {:7.3f} s  {}  {}\n", own / best.seconds, own,
               degrees(p.layout), best.seconds, degrees(best.layout), row.id);
  }
}
