// What does a rank of DeepSpeed hold and run? Front door: deepspeed_stage.
#include "cost_model/program/deepspeed_stage.hpp"

#include "cost_model/program/deepspeed_plan.hpp"
#include "cost_model/program/eager_chain.hpp"

namespace zeroplan {
namespace {

constexpr Carried gradient{"gradient", Category::gradients};
constexpr Carried owned_gradients{"owned gradients", Category::gradients};
// Of a later micro-batch: beside the first one's until the backward pass is done.
constexpr Carried added_gradients{"owned gradients to add", Category::gradients};
constexpr Carried bucket{"reduction bucket", Category::communication_buffers};
constexpr Carried live{"gathered parameters", Category::communication_buffers};

class DeepspeedWriter final : public EagerBlockWriter {
 public:
  DeepspeedWriter(const Problem& problem,
                  const WeightInventory& inventory,
                  const EagerCode& code,
                  const DeepspeedPlan& plan,
                  const EagerPlace& place)
      : EagerBlockWriter(problem, inventory, code, place.link), plan_(plan), place_(place) {}

 private:
  bool first_micro_batch() const { return place_.micro_batch == MicroBatch::first; }
  bool keeps_gradients() const {
    return plan_.optimizer == DeepspeedOptimizer::fused ||
           plan_.optimizer == DeepspeedOptimizer::stage1;
  }
  // Stage 1 fills its bucket at the end of the step, stage 2 in every backward pass.
  bool bucket_stays() const { return plan_.optimizer == DeepspeedOptimizer::stage1; }

  void before_forward() override {
    if (place_.first) w_.put(live, plan_.live);
  }

  // The first gradient of a backward pass makes the buffers.
  void before_backward() override {
    if (!place_.last) return;
    if (first_micro_batch() || !bucket_stays()) w_.put(bucket, plan_.bucket);
    w_.put(first_micro_batch() ? owned_gradients : added_gradients, plan_.owned);
  }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{shape_.token.element * elements};
    if (keeps_gradients() && first_micro_batch()) {
      w_.put(gradient, bytes);
    } else {
      w_.free(w_.temporary(weight, bytes));
    }
  }

  void after_backward() override {
    if (plan_.optimizer != DeepspeedOptimizer::fused) {
      w_.free(w_.temporary("copy of the bucket", plan_.copy));
    }
    if (!place_.first) return;
    if (!bucket_stays()) w_.take(bucket, plan_.bucket);
    if (!first_micro_batch()) w_.take(added_gradients, plan_.owned);
    w_.take(live, plan_.live);
  }

  const DeepspeedPlan& plan_;
  EagerPlace place_;
};

Block end_of_step(const DeepspeedPlan& plan, const ChunkProgram& chunk) {
  BlockWriter w;
  const Tensor boundary = w.temporary("gradients of the boundary", plan.boundary);
  if (plan.optimizer == DeepspeedOptimizer::fused) {
    w.free(w.temporary("flattened gradients to reduce", plan.copy));
  }
  if (plan.optimizer != DeepspeedOptimizer::stage1) w.free(boundary);
  if (plan.optimizer == DeepspeedOptimizer::stage1) {
    take_all(w, chunk, gradient);
    w.take(bucket, plan.bucket);
  }
  w.free(w.temporary("overflow check", plan.check));
  const Tensor flattened = w.temporary("flattened gradients", plan.flattened);
  const Tensor widened = w.temporary("fp32 gradients", plan.widened);
  w.free(flattened);
  if (plan.optimizer == DeepspeedOptimizer::stage1) w.free(boundary);
  w.free(widened);
  if (plan.optimizer == DeepspeedOptimizer::fused) take_all(w, chunk, gradient);
  w.take(owned_gradients, plan.owned);
  return w.finish();
}

}  // namespace

StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const EagerCode code{.style = {.composite_norm = true}, .loss = LossCode::huggingface};
  const DeepspeedPlan plan = deepspeed_plan(problem, inventory, stage);
  const bool full = problem.layout.recompute == Recompute::full;
  StageProgram program;
  program.chunks.push_back(eager_chain(
      problem, full ? Checkpoint::layer : Checkpoint::none, [&](const EagerPlace& place) {
        return DeepspeedWriter(problem, inventory, code, plan, place).write();
      }));
  program.step = end_of_step(plan, program.chunks.front());
  const ModelStates states = model_states(problem, inventory, stage);
  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "second shard of the parameters", plan.secondary, Category::parameters);
  add_resident(program, "gradients", plan.resident_gradients, Category::gradients);
  add_resident(program, "reduction bucket", plan.resident_bucket, Category::communication_buffers);
  add_resident(program, "fp32 master parameters", states.master_parameters,
               Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  add_plain_buffers(program, problem, inventory, stage);
  return program;
}

}  // namespace zeroplan
