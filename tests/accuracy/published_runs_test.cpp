// Runs that everybody compares with, each with its source and with what it leaves open.
#include <cmath>

#include "cost_model/answer/step_band.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;
using tests::problem;

namespace {

constexpr double near = 0.08;

double seconds_of(const Problem& p) {
  return step_seconds(p, Evaluator(p));
}

Row row_of_timing(std::string_view id) {
  for (Row& row : read_corpus(source_dir() + "/tests/reference/timing.jsonl")) {
    if (row.id == id) return std::move(row);
  }
  FAIL(id << " is no row");
  return {};
}

// By how much a step is predicted longer than the row's.
double error_of(const Problem& p, const Row& row) {
  return seconds_of(p) / *row.throughput.step_seconds - 1;
}

// Whether a step that is predicted so many times as long as it was lies in the band that is said.
bool in_measured_band(const Problem& p, double predicted) {
  const StepBand band = step_band(p);
  return band.measured && std::abs(1 / predicted - 1) <= band.half_width;
}

}  // namespace

// Llama 3 (arXiv 2407.21783), Table 4: TFLOP/s a GPU, causal attention by half. Published: degrees,
// batch, sequence, no recompute; the first and last stage have a layer less. Assumed: micro-batch
// 1, eight chunks a rank, Megatron-Core's ZeRO 1 for Meta's FSDP, which shards gradients too.
TEST_CASE("Llama 3 405B is predicted as fast as its paper's three runs") {
  struct Run {
    std::int64_t gpus, cp, sequence, batch;
    double tflops;
  };
  for (const Run& run : {Run{8192, 1, 8192, 2048, 430}, Run{16'384, 1, 8192, 2048, 400},
                         Run{16'384, 16, 131'072, 128, 380}}) {
    CAPTURE(run.gpus, run.sequence);
    Problem p = problem(Runtime::megatron, "llama3.1-405b",
                        {.dp = run.gpus / (8 * 16 * run.cp),
                         .tp = 8,
                         .pp = 16,
                         .vpp = 8,
                         .cp = run.cp,
                         .zero = ZeroStage::optimizer,
                         .sequence_parallel = true,
                         .schedule = Schedule::interleaved},
                        "H100-80GB");
    p.training.sequence_length = run.sequence;
    p.training.global_batch = run.batch;
    p.runtime.megatron.account_for_embedding_in_pipeline_split = true;
    p.runtime.megatron.account_for_loss_in_pipeline_split = true;
    CHECK(std::abs(tflops_per_gpu(p, step_time(p, Evaluator(p))) / run.tflops - 1) < near);
    CHECK(in_measured_band(p, run.tflops / tflops_per_gpu(p, step_time(p, Evaluator(p)))));
  }
}

// NVIDIA/Megatron-LM README.md and images/model_table.png @d98e8a64: steps with data, optimizer and
// logging. Not published: micro-batch, chunks, recompute. Assumed: micro-batch 2 where it fits (not
// 462B), as many chunks as there are layers, no recompute, user buffers (the table's text says that
// all communication is overlapped), and the embedding tied.
TEST_CASE("Megatron-LM's own table of H100 is predicted") {
  struct Run {
    const char* id;
    std::int64_t micro_batch, vpp;
    double within;
  };
  // The smallest takes 0.45 s a step, of which the host, data and logging have an unknown part; 70B
  // is a little further off than 8 %.
  for (const Run& run : {Run{"mcore-weak-1.7B", 2, 1, 0.15}, Run{"mcore-weak-7.1B", 2, 1, near},
                         Run{"mcore-weak-16B", 2, 1, near}, Run{"mcore-weak-70B", 2, 42, 0.09},
                         Run{"mcore-weak-119B", 2, 23, near}, Run{"mcore-weak-462B", 1, 7, near}}) {
    CAPTURE(run.id);
    Row row = row_of_timing(run.id);
    row.complete = true;
    row.micro_batch = run.micro_batch;
    row.vpp = run.vpp;
    row.sequence_parallel = true;
    row.recompute.kind = "none";
    row.model.tied = true;
    Problem p = problem_of(row).problem;
    p.runtime.megatron.attention_backend = AttentionLibrary::fused;
    p.runtime.megatron.overlap_grad_reduce = true;
    p.runtime.megatron.overlap_param_gather = true;
    p.runtime.megatron.tp_comm_overlap = p.layout.tp > 1;
    CHECK(std::abs(error_of(p, row)) < run.within);
    // That of runs whose settings are known does not hold a host's unknown part.
    if (run.within < 0.1) CHECK(in_measured_band(p, 1 + error_of(p, row)));
  }
}

// MegaScale (Jiang et al. 2024, arXiv 2402.15627), Table 2: its Megatron-LM baseline, from memory.
// Assumed: Megatron-LM's own layers with flash attention, fused gradient accumulation, without
// dropout and recompute.
TEST_CASE("MegaScale's Megatron-LM baseline is predicted") {
  for (const char* id : {"megascale-megatron-175B-768", "megascale-megatron-175B-1024",
                         "megascale-megatron-175B-3072", "megascale-megatron-175B-8192"}) {
    CAPTURE(id);
    Row row = row_of_timing(id);
    row.complete = true;
    row.recompute.kind = "none";
    row.gpu = "A100-80GB";
    Problem p = problem_of(row).problem;
    p.runtime =
        load_runtime(Runtime::megatron, {{"transformer_engine", "none"}, {"megatron_core", "0.1"}});
    CHECK(std::abs(error_of(p, row)) < near);
  }
}

// The same table's own rows, from memory. Its section 3 lists what it does: fused norms, GELU and
// FlashAttention-2 are Transformer Engine's kernels here; collectives of tensor parallelism beside
// parts of their products are user buffers; gathers and reductions of data parallelism beside the
// passes are the distributed optimizer's overlaps. It also runs attention and MLP beside each other
// on one norm, which needs half of tensor parallelism's collectives, attends in windows (how wide,
// the paper does not say), sends between stages apart from receiving, and finds and removes slow
// nodes: for these there are no words here, so that every row is predicted longer than it was, and
// most where stragglers count most. LAMB changes the batch alone.
TEST_CASE("MegaScale's own runs are predicted as near as its overlaps and kernels bring them") {
  struct Run {
    const char* id;
    double within;
  };
  for (const Run& run :
       {Run{"megascale-megascale-175B-256", near}, Run{"megascale-megascale-175B-768", near},
        Run{"megascale-megascale-175B-1024", near}, Run{"megascale-megascale-175B-6144", near},
        Run{"megascale-megascale-175B-8192", near}, Run{"megascale-megascale-175B-12288", 0.12}}) {
    CAPTURE(run.id);
    Row row = row_of_timing(run.id);
    row.complete = true;
    row.framework = "megatron";
    row.recompute.kind = "none";
    row.gpu = "A100-80GB";
    Problem p = problem_of(row).problem;
    p.layout.zero = ZeroStage::optimizer;
    p.runtime = load_runtime(Runtime::megatron, {{"attention_backend", "flash"},
                                                 {"overlap_grad_reduce", "on"},
                                                 {"overlap_param_gather", "on"},
                                                 {"tp_comm_overlap", "on"}});
    const double error = error_of(p, row);
    CHECK(error > 0);
    CHECK(error < run.within);
    p.runtime =
        load_runtime(Runtime::megatron, {{"transformer_engine", "none"}, {"megatron_core", "0.1"}});
    CHECK(error_of(p, row) > 0.25);  // as Megatron-LM ran then
  }
}

// DeepSeek-V3 (arXiv 2412.19437): 14.8 trillion tokens in 2.664 million hours of H800 (Table 1), in
// batches of 15,360 (section 4.2) of 4,096 tokens on 2,048 of them: 19.9 s. Published: pp 16, ep
// 64, ZeRO 1, no tp, DualPipe (3.2), products of 8 bits with scales of tiles and blocks, moments in
// 16 bits (3.3), norms, up-projections and SwiGLU recomputed (3.2.3, 3.3.3), at most four nodes a
// token (2.1.2), MTP of one module, SwiGLU's inputs kept in 8 bits (3.3.3). Assumed: micro-batch 1,
// Megatron-Core's layers, which gather 8-bit weights, DeepEP, an allocator whose segments grow.
TEST_CASE("DeepSeek-V3 on 2,048 H800 fits and is predicted as fast as it was") {
  Problem p = problem(Runtime::megatron, "deepseek-v3",
                      {.dp = 128,
                       .pp = 16,
                       .ep = 64,
                       .zero = ZeroStage::optimizer,
                       .schedule = Schedule::dualpipe,
                       .recompute = Recompute::selective},
                      "H800-80GB");
  p.training.global_batch = 15'360;
  p.training.precision = Precision::fp8;
  p.runtime =
      load_runtime(Runtime::megatron, {{"pipeline_code", "dualpipe"},
                                       {"decoder_first_pipeline_num_layers", "2"},
                                       {"decoder_last_pipeline_num_layers", "3"},
                                       {"recompute_modules", "layernorm,mla_up_proj,moe_act"},
                                       {"moe_token_dispatcher_type", "flex"},
                                       {"moe_flex_dispatcher_backend", "deepep"},
                                       {"fp8_recipe", "blockwise"},
                                       {"activation_func_fp8_input_store", "on"},
                                       {"fp8_param_gather", "on"},
                                       {"expandable_segments", "on"},
                                       {"use_precision_aware_optimizer", "on"},
                                       {"exp_avg_dtype", "bf16"},
                                       {"exp_avg_sq_dtype", "bf16"},
                                       {"mtp_num_layers", "1"}});
  REQUIRE_FALSE(first_violation(p).has_value());
  CHECK(std::abs(seconds_of(p) / 19.9 - 1) < near);
  CHECK(played_estimate(p, Evaluator(p)).verdict == Verdict::fits);
  // Its tokens would take longer if they went anywhere.
  Problem anywhere = p;
  anywhere.model.moe->router_groups = anywhere.model.moe->groups_per_token = 1;
  CHECK(seconds_of(anywhere) > 1.1 * seconds_of(p));
}
