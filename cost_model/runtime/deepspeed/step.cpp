// What do DeepSpeed's optimizers allocate around and after the backward passes? Front door:
// deepspeed_step.
#include "cost_model/runtime/deepspeed/step.hpp"

#include "cost_model/runtime/deepspeed/widened_step.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

// Stage 1 fills its bucket at the end of the step, stage 2 in every backward pass.
bool bucket_stays(const DeepspeedPlan& plan) {
  return plan.optimizer == DeepspeedOptimizer::stage1;
}

// Makes room for owned gradients: those of a later micro-batch are to be added to the first one's.
void put_owned(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch) {
  if (first_micro_batch) return w.put(deepspeed_owned, plan.owned);
  w.put(deepspeed_added, plan.added);
}

}  // namespace

void open_forward(BlockWriter& w, const DeepspeedPlan& plan) {
  write_calls(w, plan.calls, During::forward);
  w.put(deepspeed_live, plan.live - plan.gone);
  w.put(deepspeed_live, plan.gone);
}

void open_head(BlockWriter& w, const DeepspeedPlan& plan) {
  w.free(w.temporary("buffer of parameters gathered ahead", plan.ahead_in_head));
}

void open_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch) {
  write_calls(w, plan.calls, During::backward);
  if (first_micro_batch || !bucket_stays(plan)) w.put(deepspeed_bucket, plan.bucket);
}

void own_gradients(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch) {
  if (plan.owned_from == DeepspeedPlan::Owned::at_end) return;
  put_owned(w, plan, first_micro_batch);
}

void own_late_gradients(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch) {
  if (first_micro_batch) return w.put(deepspeed_owned, plan.owned_late);
  w.put(deepspeed_added, plan.added_late);
}

void reduce_gradients(BlockWriter& w, const DeepspeedPlan& plan, Bytes copied) {
  const Tensor copy = w.temporary("copy of the bucket", copied);
  w.free(w.temporary("gradients on their way to the host", plan.to_host_in_backward()));
  w.free(w.temporary("reduced gradients in fp32", copied > Bytes{} ? plan.part_widened : Bytes{}));
  w.free(copy);
}

void close_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch) {
  if (plan.owned_from == DeepspeedPlan::Owned::at_end) put_owned(w, plan, first_micro_batch);
  if (!bucket_stays(plan)) w.take(deepspeed_bucket, plan.bucket);
  if (first_micro_batch) return;
  w.take(deepspeed_added, plan.added_late);
  w.take(deepspeed_added, plan.added);
}

void release_gathered(BlockWriter& w, const DeepspeedPlan& plan) {
  w.take(deepspeed_live, plan.live - plan.gone);
  w.take(deepspeed_live, plan.gone);
}

Block deepspeed_step(const DeepspeedPlan& plan, const ChunkProgram& chunk) {
  BlockWriter w;
  write_calls(w, plan.calls, During::step);
  if (plan.widening) {
    write_widened_step(w, plan, chunk);
    return w.finish();
  }
  const bool fused = plan.optimizer == DeepspeedOptimizer::fused;
  const bool stage1 = plan.optimizer == DeepspeedOptimizer::stage1;
  const Tensor to_reduce = w.temporary("flattened gradients to reduce", plan.copy_in_step());
  w.free(w.temporary("gradients on their way to the host", plan.to_host_in_step()));
  w.free(to_reduce);
  // The last gradients made are the first of the flat buffer, the embedding's among them.
  std::vector<Bytes> made = put_sizes(chunk, deepspeed_gradient);
  std::vector<Bytes> kept;
  if (!plan.copies_owned) {  // the owned gradients stay what they are, and the others go first
    for (Bytes sum; !made.empty() && sum < plan.boundary; made.pop_back()) {
      sum += made.back();
      kept.push_back(made.back());
    }
    for (const Bytes bytes : made) w.take(deepspeed_gradient, bytes);
  } else if (stage1) {
    for (Bytes sum; !made.empty() && sum + made.back() <= plan.taken_in; made.pop_back()) {
      sum += made.back();
      w.take(deepspeed_gradient, made.back());
    }
  }
  const Tensor boundary =
      w.temporary("gradients of the boundary", plan.copies_owned ? plan.boundary : Bytes{});
  if (stage1 && plan.copies_owned) {
    for (const Bytes bytes : made) w.take(deepspeed_gradient, bytes);
    w.take(deepspeed_bucket, plan.bucket);
  }
  if (!stage1) w.free(boundary);
  w.free(w.temporary("overflow check and norm", plan.check));
  const Tensor flattened = w.temporary("flattened gradients", plan.flattened);
  const Tensor widened = w.temporary("fp32 gradients", plan.widened);
  w.free(flattened);
  if (stage1) w.free(boundary);
  w.free(widened);
  for (const Bytes bytes : kept) w.take(deepspeed_gradient, bytes);
  if (fused || plan.keeps_large) take_all(w, chunk, deepspeed_gradient);
  w.take(deepspeed_owned, plan.owned_late);
  w.take(deepspeed_owned, plan.owned);
  return w.finish();
}

void add_deepspeed_states(StageProgram& program,
                          const DeepspeedPlan& plan,
                          const ModelStates& states) {
  BlockWriter save;
  save.free(save.temporary("gathered weights of a module", plan.gathered_on_save));
  program.checkpoint = save.finish();
  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "second shard of the parameters", plan.secondary, Category::parameters);
  add_resident(program, "gradients", plan.resident_gradients, Category::gradients);
  add_resident(program, "gradient on its way to the host", plan.on_host.gradient,
               Category::communication_buffers);
  add_resident(program, "reduction bucket", plan.resident_bucket, Category::communication_buffers);
  add_resident(program, "fp32 master parameters", states.master_parameters,
               Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
}

}  // namespace zeroplan
