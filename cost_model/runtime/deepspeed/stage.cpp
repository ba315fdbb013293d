// What does a rank of DeepSpeed hold and run? Front door: deepspeed_stage.
#include "cost_model/runtime/deepspeed/stage.hpp"

#include <optional>
#include <utility>

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
    if (!place_.first) return;
    release_gathered(w_, plan_);
    gathered_ = w_.temporary("gathered embedding", plan_.live_at_end);
  }

  // The first of a pass is the output layer's. One larger than a bucket waits by itself until the
  // next gradient comes.
  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{shape_.token.element * elements};
    if (plan_.widening) return widen(weight, elements, bytes);
    const bool halves = shape_.problem.model.tied_embeddings;
    if (halves && place_.last && !std::exchange(halved_, true)) {
      return w_.put(deepspeed_half_gradient, bytes);
    }
    const bool first = place_.last && !std::exchange(first_made_, true);
    const bool kept = plan_.keeps_gradients() && first_micro_batch();
    if (halves && place_.first) {
      w_.free(w_.temporary(weight, bytes));  // added to the other
      if (!kept) copy_beside_last();
      w_.take(deepspeed_half_gradient, bytes);
      if (kept) w_.put(deepspeed_gradient, bytes);
      return;
    }
    if (kept) {
      w_.put(deepspeed_gradient, bytes);
      return;
    }
    const Tensor gradient = w_.temporary(weight, bytes);
    if (place_.first) copy_beside_last();
    if (!place_.first && !place_.last && !place_.late && elements == plan_.chosen.elements &&
        alike_++ == plan_.chosen.before) {
      reduced_ = true;
      reduce_in_layers();
    }
    const bool waits = first && elements > shape_.problem.runtime.deepspeed.reduce_bucket_size;
    if (waits) waiting_ = gradient;
    if (!waits) w_.free(gradient);
  }

  // The hook makes its fp32 form, of a tied one once both parts are there (stage_1_and_2.py
  // process_gradients), and of the output layer's when that of the logits has gone.
  void widen(std::string_view weight, std::int64_t elements, Bytes bytes) {
    const bool halves = shape_.problem.model.tied_embeddings;
    const bool first = place_.last && !std::exchange(first_made_, true);
    if (halves && first) return w_.put(deepspeed_half_gradient, bytes);
    const Tensor gradient = w_.temporary(weight, bytes);
    if (first) {
      waiting_ = gradient;
      waiting_elements_ = elements;
    } else if (halves && place_.first) {
      w_.free(gradient);
      add_up(elements);
      w_.take(deepspeed_half_gradient, bytes);
    } else {
      add_up(elements);
      w_.free(gradient);
    }
  }

  void add_up(std::int64_t elements) {
    const Bytes bytes{Widening::element * elements};
    if (first_micro_batch()) return w_.put(deepspeed_gradient, bytes);
    w_.free(w_.temporary("gradient in fp32", bytes));
  }

  // Where the hook of the first gradient runs: a tied one is none before the embedding's is added
  // to it, so that the first is then the norm's (stage_1_and_2.py setup_buckets).
  void after_output_layer_backward() override {
    if (shape_.problem.model.tied_embeddings) return;
    open_once();
    if (!plan_.widening) return;
    add_up(waiting_elements_);
    w_.free(std::exchange(waiting_, BlockWriter::none));
  }

  void open_once() {
    if (!std::exchange(opened_, true)) open_backward(w_, plan_, first_micro_batch());
  }

  // Blocks of layers are alike: each does what the one does in which most is needed.
  void reduce_in_layers() {
    w_.take(deepspeed_live, plan_.gone);
    const Tensor ahead = w_.temporary("parameters gathered ahead", plan_.more);
    reduce_gradients(w_, plan_, plan_.copy_in_layers);
    w_.free(ahead);
    w_.put(deepspeed_live, plan_.gone);
  }

  void copy_beside_last() { w_.free(w_.temporary("copy of the bucket", plan_.copy_beside_last)); }

  void after_backward() override {
    if (place_.last) {
      open_once();
      // A part in fp32 is made for the first bucket, other rooms once it has been reduced.
      if (plan_.owns_part) own_gradients(w_, plan_, first_micro_batch());
      reduce_gradients(w_, plan_, plan_.copy_in_head);
      if (!plan_.owns_part) own_gradients(w_, plan_, first_micro_batch());
      w_.free(waiting_);
    }
    if (place_.first) own_late_gradients(w_, plan_, first_micro_batch());
    // While the gradient that found no room is there, where the block makes one of its size.
    if (place_.late) reduce_gradients(w_, plan_, Bytes{});
    if (!place_.first && !place_.last && !place_.late && !reduced_) reduce_in_layers();
    if (!place_.first) return;
    reduce_gradients(w_, plan_, plan_.copy_at_end);
    close_backward(w_, plan_, first_micro_batch());
    w_.free(gathered_);
  }

  const DeepspeedPlan& plan_;
  EagerPlace place_;
  bool first_made_ = false;  // whether a gradient has been
  bool halved_ = false;      // whether the output layer's part of a tied one has
  bool opened_ = false;      // whether buckets are there
  std::int64_t alike_ = 0;   // gradients as large as that which finds no room
  bool reduced_ = false;     // whether what comes before it has been reduced
  Tensor waiting_ = BlockWriter::none;
  std::int64_t waiting_elements_ = 0;
  Tensor gathered_ = BlockWriter::none;
};

EagerCode code_of_layers(const Problem& problem) {
  EagerCode code = huggingface_code(problem);
  code.style.exchanges_heads = true;
  if (problem.runtime.deepspeed.logits == Logits::dropped) code.loss = LossCode::plain;
  return code;
}

// Of layers that reduce nothing, one of a kind.
template <class Write>
void choose(DeepspeedPlan& plan, const Problem& p, Checkpoint checkpoint, const Write& write) {
  if (plan.reductions.empty()) return;
  std::optional<LayerLevels> kinds[2];
  std::vector<const LayerLevels*> levels;
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    const LayerKind kind = kind_of(p.model, i);
    auto& of_kind = kinds[static_cast<std::size_t>(kind)];
    if (!of_kind) {
      of_kind = levels_of(write({.link = {BlockKind::layer, kind, checkpoint}, .late = true}));
    }
    levels.push_back(&*of_kind);
  }
  choose_reduction(plan, levels, state_recipe(p).parameter_bytes);
}

}  // namespace

StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const EagerCode code = code_of_layers(problem);
  DeepspeedPlan plan = deepspeed_plan(problem, inventory, stage);
  const bool full = problem.layout.recompute == Recompute::full;
  const Checkpoint checkpoint = full ? Checkpoint::layer : Checkpoint::none;
  const auto write = [&](const EagerPlace& place) {
    return DeepspeedWriter(problem, inventory, code, plan, place).write();
  };
  choose(plan, problem, checkpoint, write);
  StageProgram program;
  program.chunks.push_back(eager_chain(problem, checkpoint, write, plan.layers_before));
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
