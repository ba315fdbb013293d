// NVIDIA's tables: each row whose recipe was read is predicted, in a family of its own.
#include "tests/accuracy/completed.hpp"

#include <algorithm>

#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/statistics.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

std::vector<Row> complete_rows() {
  std::vector<Row> rows = read_corpus(source_dir() + "/tests/reference/nvidia_tables.jsonl");
  std::erase_if(rows, [](const Row& row) { return !row.complete; });
  return rows;
}

Problem problem_of_id(std::string_view id) {
  const std::vector<Row> rows = complete_rows();
  const auto row = std::ranges::find(rows, id, &Row::id);
  REQUIRE(row != rows.end());
  return problem_of(*row).problem;
}

}  // namespace

TEST_CASE("each complete row of NVIDIA's tables is predicted") {
  const Report report = assess(complete_rows());
  CHECK(report.rows == 165);
  CHECK(report.skipped.empty());
  CHECK(report.steps.size() == report.predicted);
  CHECK(report.judgements.size() == report.predicted);
  CHECK(report.wrong_verdicts() == 0);
  std::size_t in_families = 0;
  for (const Family& family : report.step_families) {
    CAPTURE(family.family);
    CHECK(family.family.starts_with("nvidia-"));
    CHECK(family.in_band <= family.n);
    in_families += family.n;
  }
  CHECK(in_families == report.predicted);
}

TEST_CASE("a recipe's settings are those of the problem") {
  const Problem p = problem_of_id("mbridge-26.08-pretrain-DeepSeekV3-GB300-256g-MXFP8-88");
  const MegatronSettings& set = p.runtime.megatron;
  CHECK(p.training.precision == Precision::fp8);
  CHECK(p.layout.recompute == Recompute::none);
  CHECK(p.layout.etp == 1);
  CHECK(set.fp8_param_gather);
  CHECK(set.grad_reduce_in_bf16);
  CHECK(set.exp_avg_bytes == 2);
  CHECK(set.mtp_num_layers == 1);
  CHECK(set.pipeline_model_parallel_layout.layers.size() == 16);
  CHECK(set.pipeline_model_parallel_layout.mtp_modules == 1);
  CHECK(set.cross_entropy_fusion_impl == CrossEntropy::te);

  const Problem older = problem_of_id("mbridge-25.11-pretrain-DeepSeekV3woMTP-GB200-256g-BF16-332");
  CHECK(older.training.precision == Precision::bf16);
  CHECK(older.runtime.megatron.transformer_engine_version == 209);
  CHECK(older.runtime.megatron.mtp_num_layers == 0);
  CHECK(older.runtime.megatron.pipeline_model_parallel_layout.layers.back() == 1);
  CHECK(older.runtime.megatron.pipeline_model_parallel_layout.mtp_modules == 0);
}

TEST_CASE("GPT-OSS dispatches as its workload's table says, not as its recipe names") {
  const auto settings = [](const char* id) { return problem_of_id(id).runtime.megatron; };
  const MegatronSettings hopper = settings("mbridge-26.04-pretrain-GPTOSS120B-H100-64g-BF16-229");
  CHECK(hopper.moe_token_dispatcher_type == TokenDispatcher::alltoall);
  const MegatronSettings ultra = settings("mbridge-26.04-pretrain-GPTOSS120B-B300-64g-BF16-227");
  CHECK(ultra.moe_token_dispatcher_type == TokenDispatcher::flex);
  const MegatronSettings older = settings("mbridge-26.02-pretrain-GPTOSS120B-B300-64g-BF16-308");
  CHECK(older.moe_token_dispatcher_type == TokenDispatcher::alltoall);
}
