// What does a rank of DistributedDataParallel hold and run? Front door: ddp_stage.
#include "cost_model/runtime/ddp/stage.hpp"

#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;
constexpr Carried gradient{"gradient", Category::gradients};
constexpr Carried cast_weights{"autocast copies of weights", Category::parameters};

// A rank alone has nothing to reduce: transformers' Trainer and accelerate leave its model as it is
// (accelerate v1.15.0 accelerator.py prepare_model: MULTI_GPU alone is wrapped), without buckets.
bool is_wrapped(const Problem& problem) {
  return problem.layout.dp > 1;
}

class DdpWriter final : public EagerBlockWriter {
 public:
  DdpWriter(const Problem& problem,
            const WeightInventory& inventory,
            const EagerCode& code,
            const EagerPlace& place)
      : EagerBlockWriter(problem, inventory, code, place.link), place_(place) {}

 private:
  bool full_precision() const { return p_.training.precision == Precision::fp32; }
  bool views() const { return is_wrapped(p_) && p_.runtime.ddp.gradient_as_bucket_view; }

  // The 16-bit copies of this block's matrices.
  Bytes copies(const EagerLink& link) const {
    if (full_precision() || link.kind == EagerLink::Kind::embedding) return {};
    const std::vector<Weight>& weights =
        link.kind == EagerLink::Kind::head ? inventory_.head : inventory_.layer(link.layer);
    std::int64_t elements = 0;
    for (const Weight& weight : weights) {
      if (weight.columns > 1) elements += weight.elements();
    }
    return Bytes{2 * elements};
  }

  // Autocast's cache holds them to the end of the forward pass, and linears save them.
  void before_forward() override { w_.put(cast_weights, copies(link_)); }

  void after_forward() override {
    if (!place_.last || p_.layout.recompute == Recompute::none) return;
    for (std::int64_t i = 0; i < p_.model.layers; ++i) {
      w_.take(cast_weights, copies({EagerLink::Kind::layer, kind_of(p_.model, i)}));
    }
  }

  void before_backward() override {
    const bool again = link_.checkpoint != Checkpoint::none;
    if (again) w_.put(cast_weights, copies(link_));
  }
  void after_backward() override { w_.take(cast_weights, copies(link_)); }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{fp32 * elements};
    // Out of the 16-bit product comes an fp32 gradient; a later one is added to it in place.
    const Tensor narrow = w_.temporary(weight, full_precision() ? Bytes{} : Bytes{2 * elements});
    if (place_.micro_batch == MicroBatch::first && !views()) {
      w_.put(gradient, bytes);
    } else {
      w_.free(w_.temporary(weight, bytes));
    }
    w_.free(narrow);
  }

  EagerPlace place_;
};

}  // namespace

std::vector<Call> ddp_update_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   const Stage& stage) {
  ReplicaRecipe recipe = zero_recipe(problem);
  recipe.reduce_bucket = ddp_bucket / recipe.gradient_bytes;
  return replica_calls(problem, inventory, stage, recipe);
}

StageProgram ddp_stage(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  const bool autocast = problem.training.precision != Precision::fp32;
  const EagerCode code = huggingface_code(problem, autocast);
  const bool full = problem.layout.recompute == Recompute::full;
  StageProgram program;
  program.chunks.push_back(eager_chain(
      problem, full ? Checkpoint::layer : Checkpoint::none,
      [&](const EagerPlace& place) { return DdpWriter(problem, inventory, code, place).write(); }));
  BlockWriter step;
  write_calls(step, ddp_update_calls(problem, inventory, stage), During::step);
  take_all(step, program.chunks.front(), gradient);
  program.step = step.finish();
  const ModelStates states = model_states(problem, inventory, stage);
  add_resident(program, "parameters", states.parameters, Category::parameters);
  if (is_wrapped(problem)) {
    add_resident(program, "buckets of gradients", states.gradients,
                 problem.runtime.ddp.gradient_as_bucket_view ? Category::gradients
                                                             : Category::communication_buffers);
  }
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  add_plain_buffers(program, problem, inventory, stage);
  return program;
}

}  // namespace zeroplan
