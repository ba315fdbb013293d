// Steps that a GPU ran, and not fake tensors: one H100 alone, or as one rank of many whose
// collectives moved nothing (validator/pytorch/measure_torchtitan.py, measure_transformers.py).
#include <cmath>

#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/row.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan::accuracy;

namespace {

std::vector<Row> rows() {
  return read_corpus(zeroplan::source_dir() + "/tests/reference/gpu/steps.jsonl");
}

}  // namespace

TEST_CASE("an H100 allocates and reserves what the program says") {
  REQUIRE(rows().size() >= 13);
  for (const Row& row : rows()) {
    CAPTURE(row.id);
    // What the compiler keeps of casts by rows was not looked into.
    const bool by_rows = row.id.ends_with("b1x1-op-compiled-rowwise");
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 2);
    CHECK(std::abs(prediction.memory[0].error()) < (by_rows ? 0.03 : 0.003));
    CHECK(std::abs(prediction.memory[1].error()) < 0.016);
  }
}

// Others wait for the host, whose time is not described, or move what experts read.
TEST_CASE("an H100 that computes alone takes what the law of step time says") {
  std::size_t judged = 0;
  for (const Row& row : rows()) {
    CAPTURE(row.id);
    const bool dense = row.model.hidden.value_or(0) >= 4096 && !row.model.experts;
    if (!row.silent || !dense || row.id.ends_with("rowwise")) continue;
    ++judged;
    const Prediction prediction = predict(row);
    REQUIRE(prediction.step);
    CHECK(prediction.step->instrument == "computed");
    CHECK(std::abs(prediction.step->error()) < 0.09);
  }
  CHECK(judged >= 7);
}
