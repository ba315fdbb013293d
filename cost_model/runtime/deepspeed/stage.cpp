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
    if (place_.first) w_.put(deepspeed_live, plan_.live);
  }

  void before_backward() override {
    if (place_.last) open_backward(w_, plan_, first_micro_batch());
  }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{shape_.token.element * elements};
    const bool tied = p_.model.tied_embeddings;
    if (tied && place_.last) return w_.put(deepspeed_tied, bytes);
    // Both parts of a tied weight's gradient are there beside their sum, which is the optimizer's.
    const Tensor part = w_.temporary(weight, tied && place_.first ? bytes : Bytes{});
    const bool kept = plan_.keeps_gradients() && first_micro_batch();
    if (kept) w_.put(deepspeed_gradient, bytes);
    const Tensor gradient = w_.temporary(weight, kept ? Bytes{} : bytes);
    if (part != BlockWriter::none) w_.take(deepspeed_tied, bytes);
    w_.free(part);
    if (by_bucket()) {
      reduce(gradient, elements);
    } else {
      w_.free(gradient);
    }
  }

  void after_backward() override {
    if (!by_bucket()) {
      reduce_gradients(w_, plan_);
    } else if (place_.last) {
      empty_bucket(plan_.reduction.copy_in_head);
      put_owned_early(w_, plan_, first_micro_batch());
    } else if (!place_.first && waiting_ != BlockWriter::none) {
      empty_bucket(plan_.reduction.copy_in_layers);
    }
    w_.free(waiting_);
    if (place_.first) close_backward(w_, plan_, first_micro_batch());
  }

  bool by_bucket() const { return plan_.optimizer == DeepspeedOptimizer::stage2; }

  void empty_bucket(std::int64_t copied) {
    w_.free(w_.temporary("copy of the bucket", Bytes{shape_.token.element * copied}));
    w_.free(w_.temporary("gradients on their way to the host", plan_.to_host_in_backward()));
  }

  // A gradient has come: it goes into the bucket, or waits for the next one where it is larger.
  void reduce(Tensor gradient, std::int64_t elements) {
    if (!place_.last) {
      const Reduction& made = plan_.reduction;
      empty_bucket(place_.first ? made.copy_at_embedding : made.copy_in_layers);
    }
    w_.free(waiting_);
    waiting_ = gradient;
    if (elements <= p_.runtime.deepspeed.reduce_bucket_size) {
      w_.free(waiting_);
      waiting_ = BlockWriter::none;
    }
    if (!place_.first) return;
    const bool early = plan_.reduction.emptied_at_embedding;
    if (early) put_owned_late(w_, plan_, first_micro_batch());
    empty_bucket(plan_.reduction.copy_at_end);
    if (!early) put_owned_late(w_, plan_, first_micro_batch());
  }

  Tensor waiting_ = BlockWriter::none;
  const DeepspeedPlan& plan_;
  EagerPlace place_;
};

}  // namespace

StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  // Loops around the engine keep the loss alone, as Transformers' Trainer.compute_loss does: the
  // model's output object goes, and its logits with it.
  EagerCode code = huggingface_code(problem);
  code.loss = LossCode::plain;
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

}  // namespace zeroplan
