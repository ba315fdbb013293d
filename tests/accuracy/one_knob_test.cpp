// Pairs of published runs that differ in one setting: the difference must come out, not only the
// sums.
#include <cmath>
#include <map>

#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/row.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan::accuracy;

namespace {

std::map<std::string, Row> corpus() {
  std::map<std::string, Row> rows;
  const std::string folder = zeroplan::source_dir() + "/tests/reference/";
  for (const char* file : {"measured.jsonl", "measured_more.jsonl"}) {
    for (Row& row : read_corpus(folder + file)) rows.emplace(row.id, std::move(row));
  }
  return rows;
}

struct Pair {
  const char* knob;
  const char* from;
  const char* to;
};

// torchtitan, Llama 3 8B and LLaMA 7B; its own commit messages and documents.
constexpr Pair pairs[] = {
    {"last layer resharded", "titan-5940dde-8b-reshard-default", "titan-5940dde-8b-reshard-always"},
    {"eager, compiled", "titan-5940dde-8b-reshard-default", "titan-069bae2-8b-bf16-compile"},
    {"float8 eager, compiled", "titan-2271b63-8b-fp8-eager", "titan-2271b63-8b-fp8-compile"},
    {"logits whole, in parts", "titan-e23bb70-8b-ce", "titan-e23bb70-8b-chunkedce"},
    {"recompute full, by operator", "titan-83c879f-7b-fsdp2-ac", "titan-83c879f-7b-fsdp2-sac"},
    {"by operator, compiled", "titan-83c879f-7b-fsdp2-sac", "titan-83c879f-7b-fsdp2-sac-compile"},
    {"compiled, recompute by operator, none", "titan-83c879f-7b-fsdp2-sac-compile",
     "titan-83c879f-7b-fsdp2-noac-compile"},
    {"micro-batch 1, 2", "titan-069bae2-8b-bf16-compile", "titan-t1-8b-8g-fsdp-compile"},
    {"32, 64 GPUs", "titan-h200-8b-32g", "titan-h200-8b-64g"},
    {"tensor parallel, batch 16, 32", "titan-qwen32b-fsdp4tp8-b16", "titan-qwen32b-fsdp4tp8-b32"},
};

}  // namespace

TEST_CASE("a change of one setting changes the prediction as it changed the measurement") {
  const std::map<std::string, Row> rows = corpus();
  for (const Pair& pair : pairs) {
    const Result from = predict(rows.at(pair.from)).memory.front();
    const Result to = predict(rows.at(pair.to)).memory.front();
    const double measured = to.measured - from.measured;
    const double predicted = to.predicted - from.predicted;
    CAPTURE(pair.knob, measured / 1e9, predicted / 1e9);
    REQUIRE(measured * predicted > 0);
    // Published to two decimals of a GiB.
    constexpr double rounding = 0.01 * (1 << 30);
    REQUIRE(std::abs(predicted - measured) <= 0.1 * std::abs(measured) + rounding);
  }
}
