// Rows of the project's own PyTorch harness: every tensor is known there, so nothing but a wrong
// mechanism can set the prediction apart.
#include <cmath>

#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/row.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan::accuracy;

TEST_CASE("fake tensors under FSDP2 take what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/harness.jsonl");
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
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/transformers.jsonl");
  REQUIRE(rows.size() >= 238);
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    // Falcon makes a mask in every layer, and OPT's positions have a gradient in fp32 beside the
    // tokens' where those add up: neither is described, nor are Llama 4's masks of chunks. What
    // Command R has too much is not known.
    const auto is = [&row](const char* model) { return row.model.name.starts_with(model); };
    const double most = is("falcon")      ? 0.02
                        : is("opt")       ? 0.008
                        : is("llama4")    ? 0.01
                        : is("command-r") ? 0.002
                                          : 0.0015;
    CHECK(std::abs(prediction.memory.front().error()) < most);
  }
}

TEST_CASE("DistributedDataParallel around Transformers' models takes what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/ddp.jsonl");
  REQUIRE(rows.size() >= 84);
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    // The gradients of gate and up of Llama 4's experts, which are one, are widened together. What
    // is too much of Granite's state spaces is not known.
    const auto is = [&row](const char* model) { return row.model.name.starts_with(model); };
    const double most = is("llama4") ? 0.007 : is("granite-4.0-h") ? 0.006 : 0.003;
    CHECK(std::abs(prediction.memory.front().error()) < most);
  }
}

TEST_CASE("torchtitan's own code takes what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/torchtitan.jsonl");
  REQUIRE(rows.size() >= 430);
  std::size_t near = 0;
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    const double error = std::abs(prediction.memory.front().error());
    CHECK(error < 0.03);
    near += error < 0.005 ? 1 : 0;
    // Mechanisms that such rows have shown.
    const auto has = [&row](const char* part) { return row.id.find(part) != std::string::npos; };
    const bool output_held = has("pp2-stage1") || has("pp2-vpp2-stage1");
    const bool values_viewed = has("deepseek-v2-lite-L4") && has("b1x1-none-ep4");
    const bool sum_sent_again = has("0.3.0-llama3-8b") && has("-op-tp");
    const bool gradient_let_go = has("0.3.0-llama3-70b-L8") && has("-full-tp8");
    if (output_held || sum_sent_again || gradient_let_go) CHECK(error < 0.001);
    if (values_viewed && has("0.2.2")) CHECK(error < 0.002);
  }
  CHECK(near * 100 >= rows.size() * 98);
}

TEST_CASE("Megatron-LM's own code takes what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/megatron.jsonl");
  REQUIRE(rows.size() >= 350);
  std::size_t near = 0;
  std::size_t far = 0;
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    const double error = std::abs(prediction.memory.front().error());
    CHECK(error < 0.03);
    near += error < 0.001 ? 1 : 0;
    far += error > 0.01 ? 1 : 0;
    const auto has = [&row](const char* part) { return row.id.find(part) != std::string::npos; };
    // Mechanisms that such rows have shown: values that core_attn's checkpoint holds as a view.
    const bool viewed = has("recompute-modules=core_attn") && !has("unfused");
    if (viewed && row.pp == 1 && !row.model.learned_positions.value_or(false)) CHECK(error < 0.001);
  }
  CHECK(near * 100 >= rows.size() * 85);
  CHECK(far * 100 <= rows.size());
}

// Three in four are random draws. What those further off show: validator/pytorch/README.md.
TEST_CASE("DeepSpeed's own engine takes about what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/deepspeed.jsonl");
  REQUIRE(rows.size() >= 204);
  double sum = 0;
  std::size_t near = 0;
  for (const Row& row : rows) {
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    const double error = std::abs(prediction.memory.front().error());
    sum += error;
    near += error < 0.003 ? 1 : 0;
    CAPTURE(row.id);
    CHECK(error < 0.03);
  }
  CHECK(sum / static_cast<double>(rows.size()) < 0.002);
  CHECK(near * 100 >= rows.size() * 85);
}

// Half are random draws, as are most of those further off, whose pipelines keep an output more or
// less (validator/pytorch/README.md).
TEST_CASE("nanotron's own code takes what the program says") {
  const std::vector<Row> rows =
      read_corpus(zeroplan::source_dir() + "/tests/reference/traced/nanotron.jsonl");
  REQUIRE(rows.size() >= 119);
  std::size_t near = 0;
  for (const Row& row : rows) {
    const Prediction prediction = predict(row);
    REQUIRE(prediction.memory.size() == 1);
    const double error = std::abs(prediction.memory.front().error());
    near += error < 0.001 ? 1 : 0;
    CAPTURE(row.id);
    CHECK(error < 0.03);
  }
  CHECK(near * 100 >= rows.size() * 88);
}
