// DeepSpeed's engine itself, its tensors counted, against its program: 0.19.6 with Transformers'
// Llama and FusedAdam, two micro-batches of 32 tokens a step, on rank 0 of groups whose collectives
// move nothing.
#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/remembered.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

ModelSpec small_llama(bool tied = false) {
  ModelSpec model = read_hf_config(R"({"model_type": "llama", "hidden_size": 512,
      "intermediate_size": 1408, "num_attention_heads": 8, "num_key_value_heads": 8,
      "num_hidden_layers": 6, "vocab_size": 8192, "max_position_embeddings": 2048,
      "tie_word_embeddings": false, "rms_norm_eps": 1e-5, "hidden_act": "silu",
      "rope_theta": 10000.0})",
                                   "small Llama", nullptr);
  model.tied_embeddings = tied;
  return model;
}

// MiB at the peak of a step, library workspaces not counted.
double peak(const Problem& p) {
  const StageProgram program = Remembered(p.model).stage_program(p, stages(p).front());
  Bytes live = play_step(program, representative_passes(p, 0)).peak.live.allocated();
  for (const TensorSpec& spec : program.resident) {
    if (spec.name == "cuBLAS workspaces") live -= spec.bytes;
  }
  return 1024 * gibibytes(live);
}

struct Row {
  std::string_view name;
  ZeroStage zero;
  std::int64_t ranks;
  double measured;  // MiB
  std::int64_t bucket = 5'000'000;
  bool overlap = false;
  bool tied = false;
};

Problem problem_of(const Row& row) {
  Problem p = tests::problem(Runtime::deepspeed, "llama-7b", {.dp = row.ranks, .zero = row.zero});
  p.model = small_llama(row.tied);
  p.training.sequence_length = 32;
  p.training.global_batch = 2 * row.ranks;
  p.runtime.deepspeed.reduce_bucket_size = row.bucket;
  p.runtime.deepspeed.overlap_comm = row.overlap;
  p.runtime.deepspeed.stage3_prefetch_bucket_size = 1'000'000;
  return p;
}

}  // namespace

TEST_CASE("the peak of a step of DeepSpeed's engine") {
  using enum ZeroStage;
  const Row row = GENERATE(values<Row>({
      {"stage 0", none, 2, 633.15},
      {"stage 1", optimizer, 2, 317.08},
      {"stage 1, many ranks", optimizer, 32, 137.95},
      {"stage 2, one rank", gradients, 1, 580.39},
      {"stage 2", gradients, 2, 317.08},
      {"stage 2, overlap", gradients, 2, 317.08, 5'000'000, true},
      {"stage 2, four ranks", gradients, 4, 185.61},
      {"stage 3", parameters, 2, 299.74},
      {"stage 3, four ranks", parameters, 4, 180.82},
  }));
  CAPTURE(row.name);
  CHECK(peak(problem_of(row)) == Approx(row.measured).epsilon(0.01));
}

// Rank 0 of 32 owns the word embedding alone, 8 MiB. It holds those of the first micro-batch and no
// others yet when that of the second has come and the bucket is emptied: 95.83 MiB. The step's peak
// is another rank's, which has head and last layers of both micro-batches by then.
TEST_CASE("what rank 0 of 32 holds when the word embedding's gradient comes") {
  const Problem p = problem_of({"", ZeroStage::gradients, 32, 0});
  const WeightInventory inventory = weight_inventory(p.model);
  const DeepspeedPlan plan = deepspeed_plan(p, inventory, stages(p).front());
  const ModelStates states = model_states(p, inventory, stages(p).front());
  const Bytes embedding{2LL * 8192 * 512};
  const Bytes live = states.parameters + states.master_parameters + states.optimizer_states +
                     plan.bucket + Bytes{2 * plan.reduction.copy_at_embedding} + 2 * embedding;
  CHECK(1024 * gibibytes(live) == Approx(95.83).epsilon(0.001));
  // That rank's two in place of rank 0's one.
  CHECK(peak(p) == Approx(95.83 - 8.00 + 2 * 9.38).margin(0.05));
}
