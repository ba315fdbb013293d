// Rows of the project's own PyTorch harness: every tensor is known there, so nothing but a wrong
// mechanism can set the prediction apart.
#include <cmath>

#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/row.hpp"
#include "tests/catch.hpp"

using namespace zeroplan::accuracy;

TEST_CASE("fake tensors under FSDP2 take what the program says") {
  const std::vector<Row> rows = read_corpus(ZEROPLAN_SOURCE_DIR "/tests/reference/harness.jsonl");
  REQUIRE(rows.size() >= 20);
  double sum = 0;
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    const double error = std::abs(prediction.memory.front().error());
    CHECK(error < 0.0005);
    sum += error;
  }
  CHECK(sum / static_cast<double>(rows.size()) < 0.0001);
}

TEST_CASE("Transformers' own code under accelerate's takes what the program says") {
  const std::vector<Row> rows =
      read_corpus(ZEROPLAN_SOURCE_DIR "/tests/reference/traced/transformers.jsonl");
  REQUIRE(rows.size() >= 20);
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    CHECK(std::abs(prediction.memory.front().error()) < 0.01);
  }
}
