// Behind what collectives run.
#include "cost_model/pipeline/overlap.hpp"

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/pipeline/timed_load.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::vector<Behind> behind(const Problem& p) {
  std::vector<Behind> list;
  for (const CollectiveLoad& load : loads_of(p)) list.push_back(hidden_behind(p, load));
  return list;
}

}  // namespace

// Reduction, then gather of what was updated. Micro-batches before the last reduce nothing in stage
// 1 (DeepSpeed runtime/zero/stage_1_and_2.py reduce_ready_partitions_and_remove_grads).
TEST_CASE("overlap_comm hides stage 1's reduction behind the last backward pass, sent once") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  p = accumulating(p, 4);
  p.runtime.deepspeed.overlap_comm = false;
  const std::int64_t sent = sent_all(p);
  CHECK(behind(p) == std::vector{Behind::nothing, Behind::nothing});
  p.runtime.deepspeed.overlap_comm = true;
  CHECK(sent_all(p) == sent);
  CHECK(behind(p) == std::vector{Behind::last_backward, Behind::nothing});
  // BF16_Optimizer has no hooks that reduce.
  p.runtime.deepspeed.fp32_grad_accumulation = true;
  CHECK(behind(p) == std::vector{Behind::nothing, Behind::nothing});
  p.runtime.deepspeed.fp32_grad_accumulation = false;
  p.layout.zero = ZeroStage::gradients;
  CHECK(behind(p) == std::vector{Behind::pass, Behind::nothing});
}

TEST_CASE("user buffers move linears' collectives beside their products, not the vocabulary's") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.tp = 4, .sequence_parallel = true});
  const auto in_parts = [&] {
    std::int64_t calls = 0;
    for (const CollectiveLoad& load : loads_of(p)) {
      if (load.group.name == "tp" && hidden_behind(p, load) == Behind::parts) calls += load.calls;
    }
    return calls;
  };
  CHECK(in_parts() == 0);
  p.runtime.megatron.tp_comm_overlap = true;
  CHECK(in_parts() == 32 * 10);
}

// Of a stage of 20 layers in 5 chunks each pass begins with a layer that nothing was gathered
// before: 5 of 20.
TEST_CASE("each chunk of a rank waits for the parameters that it begins with") {
  Problem p = problem(Runtime::megatron, "llama3-70b",
                      {.dp = 8, .pp = 4, .vpp = 5, .zero = ZeroStage::parameters});
  p.layout.schedule = Schedule::interleaved;
  int gathers = 0;
  for (const CollectiveLoad& load : loads_of(p)) {
    const bool gather = load.collective == Collective::all_gather && load.during != During::step;
    CHECK(load.layers == (gather ? 20 : 0));
    gathers += gather;
  }
  CHECK(gathers == 2);
  const GpuSpec& gpu = p.cluster.gpu;
  const double all = 10, pass = 20;
  CHECK(exposed_beside_chunks(all, all / 20, 5, pass, gpu) == 2.5 + exposed_beside(7.5, pass, gpu));
  CHECK(exposed_beside_chunks(all, all, 5, pass, gpu) == all);
  CHECK(exposed_beside_chunks(all, 0, 5, pass, gpu) == exposed_beside(all, pass, gpu));
}

TEST_CASE("what travels beside the same pass shares it") {
  const Problem p = problem(Runtime::megatron, "llama3-8b", {});
  const GpuSpec& gpu = p.cluster.gpu;
  const StagePasses passes{.once = {.forward = 10, .backward = 20}};
  UpdateLoads loads;
  loads.hidden = {{.seconds = 6, .gathers = true, .forward = true},
                  {.seconds = 12, .gathers = true, .forward = true},
                  {.seconds = 8}};
  const AtEnd exposed = exposed_at_end(loads, passes, p.cluster);
  CHECK(exposed.gathers == Approx(exposed_beside(18, 10, gpu)));
  CHECK(exposed.reductions == Approx(exposed_beside(8, 20, gpu)));
}

// 16 of 128 experts a rank, each with 2880 x 2880 in its second product and twice that in its
// first: 398 million elements, of which two buckets of a million a rank travel ahead.
TEST_CASE("of a layer's experts two buckets are gathered beside computing") {
  Problem p = problem(Runtime::megatron, "gpt-oss-120b",
                      {.dp = 64, .ep = 8, .zero = ZeroStage::optimizer}, "B200");
  p.runtime.megatron.overlap_param_gather = true;
  const auto gathered = [&](Behind behind) {
    std::int64_t bytes = 0;
    for (const CollectiveLoad& load : loads_of(p)) {
      const bool gathers = load.group.name == "expert-dp" &&
                           load.collective == Collective::all_gather &&
                           hidden_behind(p, load) == behind;
      if (gathers) bytes += load.payload.count();
    }
    return static_cast<double>(bytes);
  };
  const double ahead = gathered(Behind::first_forward), waited = gathered(Behind::nothing);
  const double layer = 16.0 * 3 * 2880 * 2880 + 16.0 * 3 * 2880;  // with biases
  CHECK(ahead / (ahead + waited) == Approx(2 * 64e6 / layer));
  CHECK(ahead + waited == 36 * 2 * layer);
  p.runtime.megatron.ddp_bucket_size = 100'000'000;
  CHECK(gathered(Behind::first_forward) / (ahead + waited) == Approx(2 * 100e6 / layer));
  p.runtime.megatron.ddp_bucket_size = 200'000'000;  // two hold a layer
  CHECK(gathered(Behind::nothing) == 0);
  p.runtime.megatron.ddp_bucket_size = 0;
  p.runtime.megatron.overlap_param_gather = false;
  CHECK(gathered(Behind::first_forward) == 0);
  CHECK(gathered(Behind::nothing) == ahead + waited);
}

TEST_CASE("experts' exchange waits, or runs beside another micro-batch") {
  Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8});
  const auto of_experts = [&] {
    for (const CollectiveLoad& load : loads_of(p)) {
      if (load.group.name == "ep") return hidden_behind(p, load);
    }
    return Behind::pass;
  };
  CHECK(of_experts() == Behind::nothing);
  p.runtime.megatron.overlap_moe_expert_parallel_comm = true;
  CHECK(of_experts() == Behind::other_pass);
  // DualPipe pairs passes by itself.
  p.runtime.megatron.overlap_moe_expert_parallel_comm = false;
  p.runtime.megatron.pipeline_code = PipelineCode::dualpipe;
  CHECK(of_experts() == Behind::other_pass);
}

// One part in four has nothing beside it; what is hidden of the others costs parts_slowdown of it.
TEST_CASE("communication in parts") {
  Problem p;
  p.cluster.gpu = find_gpu("H100-80GB");
  p.layout.tp = 4;
  const StepConstants& step = time_constants(p.cluster.gpu).step;
  CHECK(exposed_in_parts(4, 10, p) == Approx(1 + 3 * step.parts_slowdown));
  CHECK(exposed_in_parts(4, 2, p) == Approx(2 + 2 * step.parts_slowdown));
  p.runtime.kind = Runtime::fsdp2;
  CHECK(exposed_in_parts(4, 10, p) == Approx(1 + 3 * step.copied_parts_slowdown));
  p.layout.tp = 1;
  CHECK(exposed_in_parts(4, 10, p) == Approx(4));
}
