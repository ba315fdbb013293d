// What does a rank of DistributedDataParallel hold and run? Front door: ddp_stage.
#include "cost_model/runtime/ddp/stage.hpp"

#include <algorithm>

#include "cost_model/kernel/kernel_habits.hpp"
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
      : EagerBlockWriter(problem, inventory, code, place.link),
        place_(place),
        wide_experts_(kernel_habits(problem).wide_experts) {}

 private:
  bool full_precision() const { return p_.training.precision == Precision::fp32; }
  // Under no_sync gradients are tensors of their own all the same: the reducer makes them views
  // when it has copied them into a bucket.
  bool views() const {
    return is_wrapped(p_) && p_.runtime.ddp.gradient_as_bucket_view && micro_batches(p_) == 1;
  }

  // Whether its product is in the weight's own format.
  bool stays_wide(const Weight& weight) const { return weight.expert && wide_experts_; }
  bool stays_wide(std::string_view name) const {
    if (link_.kind != EagerLink::Kind::layer) return false;
    return std::ranges::any_of(inventory_.layer(link_.layer), [&](const Weight& weight) {
      return weight.name == name && stays_wide(weight);
    });
  }

  // Bytes of the 16-bit copies of a block's matrices, each. The output layer's weight has one where
  // it is the embedding's too.
  std::vector<Bytes> copies(const EagerLink& link) const {
    if (full_precision() || link.kind == EagerLink::Kind::embedding) return {};
    if (link.kind == EagerLink::Kind::head) return {Bytes{2 * word_elements()}};
    std::vector<Bytes> each;
    for (const Weight& weight : inventory_.layer(link.layer)) {
      if (weight.columns > 1 && !stays_wide(weight)) each.push_back(Bytes{2 * weight.elements()});
    }
    return each;
  }
  void put_copies() {
    copies_ = copies(link_);
    for (const Bytes copy : copies_) w_.put(cast_weights, copy);
  }

  // Autocast's cache holds them to the end of the forward pass, the loss included, and linears save
  // them.
  void before_forward() override { put_copies(); }

  void after_loss() override {
    if (!place_.last || p_.layout.recompute == Recompute::none) return;
    for (std::int64_t i = 0; i < p_.model.layers; ++i) {
      for (const Bytes copy : copies({EagerLink::Kind::layer, kind_of(p_.model, i)})) {
        w_.take(cast_weights, copy);
      }
    }
  }

  void before_backward() override {
    if (link_.checkpoint != Checkpoint::none) put_copies();
  }
  void after_backward() override {
    for (const Bytes copy : copies_) w_.take(cast_weights, copy);
    if (link_.kind != EagerLink::Kind::embedding) return;
    for (const Weight& weight : inventory_.embedding) {
      if (&weight != &inventory_.embedding.front()) add(weight.name, weight.elements());
    }
  }

  // Out of a 16-bit product comes an fp32 gradient, once the product's operands have gone.
  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const bool is_product =
        weight != "norm" && link_.kind != EagerLink::Kind::embedding && !stays_wide(weight);
    if (full_precision() || !is_product) return add(weight, elements);
    narrow_ = w_.temporary(weight, Bytes{2 * elements});
    if (link_.kind == EagerLink::Kind::head) return;
    release(elements);
    add(weight, elements);
    w_.free(narrow_);
  }
  void after_output_layer_backward() override {
    if (full_precision()) return;
    release(word_elements());
    add("lm_head", word_elements());
    w_.free(narrow_);
  }

  void release(std::int64_t elements) {
    const auto copy = std::ranges::find(copies_, Bytes{2 * elements});
    if (copy == copies_.end()) return;
    w_.take(cast_weights, *copy);
    copies_.erase(copy);
  }

  // A later micro-batch's is added in place; so is the embedding's, where the output layer has made
  // one.
  void add(std::string_view weight, std::int64_t elements) {
    const Bytes bytes{fp32 * elements};
    const bool is_second = p_.model.tied_embeddings && weight == "embed_tokens";
    if (place_.micro_batch == MicroBatch::first && !views() && !is_second) {
      w_.put(gradient, bytes);
    } else {
      w_.free(w_.temporary(weight, bytes));
    }
  }

  EagerPlace place_;
  bool wide_experts_;  // whose products are in the format of their weights
  Tensor narrow_ = BlockWriter::none;
  std::vector<Bytes> copies_;  // that linears have not released yet
};

EagerCode code_under_autocast(const Problem& p) {
  return huggingface_code(p, kernel_habits(p).autocast);
}

}  // namespace

Block ddp_block(const Problem& problem,
                const WeightInventory& inventory,
                BlockKind block,
                LayerKind layer,
                RepeatSet policy) {
  return eager_block(problem, inventory, code_under_autocast(problem), block, layer, policy);
}

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
  const EagerCode code = code_under_autocast(problem);
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
