// What does a rank of DeepSpeed hold and run? Front door: deepspeed_stage.
#include "cost_model/runtime/deepspeed/stage.hpp"

#include "cost_model/runtime/deepspeed/step.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

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
  void before_forward() override {
    if (place_.first) open_forward(w_, plan_);
    if (place_.last) open_head(w_, plan_);
  }

  void before_backward() override {
    if (place_.last) open_backward(w_, plan_, first_micro_batch());
  }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{shape_.token.element * elements};
    if (plan_.keeps_gradients() && first_micro_batch()) {
      w_.put(deepspeed_gradient, bytes);
    } else {
      w_.free(w_.temporary(weight, bytes));
    }
  }

  void after_backward() override {
    reduce_gradients(w_, plan_);
    if (place_.first) close_backward(w_, plan_, first_micro_batch());
  }

  const DeepspeedPlan& plan_;
  EagerPlace place_;
};

EagerCode code_of_layers(const Problem& problem) {
  EagerCode code = huggingface_code(problem);
  code.style.exchanges_heads = true;
  if (problem.runtime.deepspeed.logits == Logits::dropped) code.loss = LossCode::plain;
  return code;
}

}  // namespace

StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const EagerCode code = code_of_layers(problem);
  const DeepspeedPlan plan = deepspeed_plan(problem, inventory, stage);
  const bool full = problem.layout.recompute == Recompute::full;
  StageProgram program;
  program.chunks.push_back(eager_chain(
      problem, full ? Checkpoint::layer : Checkpoint::none, [&](const EagerPlace& place) {
        return DeepspeedWriter(problem, inventory, code, plan, place).write();
      }));
  program.step = deepspeed_step(plan, program.chunks.front());
  add_deepspeed_states(program, plan, model_states(problem, inventory, stage));
  add_plain_buffers(program, problem, inventory, stage);
  return program;
}

Block deepspeed_block(const Problem& problem,
                      const WeightInventory& inventory,
                      BlockKind block,
                      LayerKind layer,
                      RepeatSet policy) {
  return eager_block(problem, inventory, code_of_layers(problem), block, layer, policy);
}

}  // namespace zeroplan
