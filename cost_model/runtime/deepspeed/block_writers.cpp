// What does DeepSpeed do around a block's computation, and with its gradients? Front door:
// write_deepspeed_block.
#include "cost_model/runtime/deepspeed/block_writers.hpp"

#include <utility>

#include "cost_model/runtime/deepspeed/step.hpp"

namespace zeroplan {
namespace {

// What all optimizers do.
class DeepspeedWriter : public EagerBlockWriter {
 public:
  DeepspeedWriter(const Problem& problem,
                  const WeightInventory& inventory,
                  const EagerCode& code,
                  const DeepspeedPlan& plan,
                  const EagerPlace& place)
      : EagerBlockWriter(problem, inventory, code, place.link), plan_(plan), place_(place) {}

 protected:
  bool first_micro_batch() const { return place_.micro_batch == MicroBatch::first; }
  bool tied() const { return p_.model.tied_embeddings; }
  Bytes narrow(std::int64_t elements) const { return Bytes{shape_.token.element * elements}; }

  // The first of a pass is the output layer's.
  bool is_first_of_pass() { return place_.last && !std::exchange(made_, true); }

  void before_forward() override {
    if (place_.first) open_forward(w_, plan_);
    if (place_.last) open_head(w_, plan_);
    const bool layer = !place_.first && !place_.last;
    if (layer && LayerSort::at(place_).gathers_ahead) {
      ahead_ = w_.temporary("parameters gathered ahead", plan_.ahead_in_layers);
    }
  }

  void after_forward() override { w_.free(ahead_); }

  void before_backward() override {
    if (!place_.first) return;
    release_gathered(w_, plan_);
    gathered_ = w_.temporary("gathered embedding", plan_.live_at_end);
  }

  // Where the hook of the first gradient runs: a tied one is none before the embedding's is added
  // to it, so that the first is then the norm's (stage_1_and_2.py setup_buckets).
  void after_output_layer_backward() override {
    if (!tied()) open_once();
  }

  void after_backward() override {
    if (place_.last) open_once();
    end_block();
    if (!place_.first) return;
    reduce_gradients(w_, plan_, plan_.copy_at_end);
    close_backward(w_, plan_, first_micro_batch());
    w_.free(gathered_);
  }

  virtual void end_block() { reduce_gradients(w_, plan_, Bytes{}); }

  void open_once() {
    if (!std::exchange(opened_, true)) open_backward(w_, plan_, first_micro_batch());
  }

  const DeepspeedPlan& plan_;
  EagerPlace place_;

 private:
  bool made_ = false;    // whether a gradient has been
  bool opened_ = false;  // whether buckets are there
  Tensor gathered_ = BlockWriter::none, ahead_ = BlockWriter::none;
};

// Stages 0 and 1 keep gradients as autograd makes them, those of later micro-batches added.
class KeptGradients final : public DeepspeedWriter {
 public:
  using DeepspeedWriter::DeepspeedWriter;

 private:
  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes = narrow(elements);
    if (is_first_of_pass() && tied()) return w_.put(deepspeed_half_gradient, bytes);
    const bool halves = tied() && place_.first;
    if (halves) {
      w_.free(w_.temporary(weight, bytes));  // added to the other
      w_.take(deepspeed_half_gradient, bytes);
    }
    if (first_micro_batch()) return w_.put(deepspeed_gradient, bytes);
    if (!halves) w_.free(w_.temporary(weight, bytes));
  }
};

// The hook makes the fp32 form, of a tied one once both parts are there (stage_1_and_2.py
// process_gradients), and of the output layer's when that of the logits has gone.
class WidenedGradients final : public DeepspeedWriter {
 public:
  using DeepspeedWriter::DeepspeedWriter;

 private:
  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes = narrow(elements);
    const bool first = is_first_of_pass();
    if (first && tied()) return w_.put(deepspeed_half_gradient, bytes);
    const Tensor gradient = w_.temporary(weight, bytes);
    if (first) {
      of_output_layer_ = gradient;
      elements_ = elements;
    } else if (tied() && place_.first) {
      w_.free(gradient);
      add_up(elements);
      w_.take(deepspeed_half_gradient, bytes);
    } else {
      add_up(elements);
      w_.free(gradient);
    }
  }

  void after_output_layer_backward() override {
    DeepspeedWriter::after_output_layer_backward();
    if (tied()) return;
    add_up(elements_);
    w_.free(of_output_layer_);
  }

  void add_up(std::int64_t elements) {
    const Bytes bytes{Widening::element * elements};
    if (first_micro_batch()) return w_.put(deepspeed_gradient, bytes);
    w_.free(w_.temporary("gradient in fp32", bytes));
  }

  Tensor of_output_layer_ = BlockWriter::none;
  std::int64_t elements_ = 0;
};

// Others reduce them as they are made. One that is larger than a bucket waits by itself until the
// next one comes.
class ReducedGradients final : public DeepspeedWriter {
 public:
  ReducedGradients(const Problem& problem,
                   const WeightInventory& inventory,
                   const EagerCode& code,
                   const DeepspeedPlan& plan,
                   const EagerPlace& place)
      : DeepspeedWriter(problem, inventory, code, plan, place) {
    if (place.first || place.last) return;
    const LayerSort sort = LayerSort::at(place);
    if (sort.reduces == LayerSort::first) pending_.push_back({*plan.first, true});
    const bool same = plan.first && plan.highest && plan.highest->layer == plan.first->layer;
    const bool reduces_highest =
        sort.reduces == LayerSort::highest || (sort.reduces == LayerSort::first && same);
    if (reduces_highest && plan.highest) pending_.push_back({*plan.highest, false});
  }

 private:
  // A reduction that the block has not come to.
  struct Pending {
    Reduction reduction;
    bool makes_room;         // for owned gradients
    std::int64_t alike = 0;  // gradients as large as that which finds no room
    bool done = false;
  };

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes = narrow(elements);
    const bool first = is_first_of_pass();
    if (first && tied()) return w_.put(deepspeed_half_gradient, bytes);
    const Tensor gradient = w_.temporary(weight, bytes);
    if (tied() && place_.first) {
      w_.free(gradient);  // added to the other
      reduce_beside_last();
      return w_.take(deepspeed_half_gradient, bytes);
    }
    if (place_.first) reduce_beside_last();
    for (Pending& pending : pending_) {
      const bool alike = pending.reduction.elements == elements;
      if (alike && pending.alike++ == pending.reduction.before) reduce(pending);
    }
    if (place_.last && !first) reduce_in_head();
    w_.free(std::exchange(waiting_, BlockWriter::none));
    const bool large = elements > p_.runtime.deepspeed.reduce_bucket_size;
    const bool keeps = place_.last ? plan_.keeps_head : plan_.keeps_large && !place_.first;
    waits_ = large && !keeps;
    if (first || waits_) {
      waiting_ = gradient;
    } else {
      w_.free(gradient);
    }
    if (large && keeps) w_.put(deepspeed_gradient, bytes);
  }

  // The first one is there when the bucket is made that takes it in.
  void after_output_layer_backward() override {
    DeepspeedWriter::after_output_layer_backward();
    if (!waits_) w_.free(std::exchange(waiting_, BlockWriter::none));
  }

  void end_block() override {
    if (place_.last) reduce_in_head();
    w_.free(waiting_);
    if (place_.first) own_late_gradients(w_, plan_, first_micro_batch());
    if (place_.first || place_.last) return;
    // Where the block makes no gradient of its size by itself.
    for (Pending& pending : pending_) reduce(pending);
    if (pending_.empty()) reduce_gradients(w_, plan_, Bytes{});
  }

  void reduce(Pending& pending) {
    if (std::exchange(pending.done, true)) return;
    const Bytes copied = narrow(pending.reduction.copied);
    if (pending.makes_room) return reduce_and_own(copied, true);
    w_.take(deepspeed_live, plan_.gone);
    const Tensor ahead = w_.temporary("parameters gathered ahead", plan_.more);
    reduce_gradients(w_, plan_, copied);
    w_.free(ahead);
    w_.put(deepspeed_live, plan_.gone);
  }

  void reduce_in_head() {
    if (std::exchange(reduced_, true)) return;
    reduce_and_own(plan_.copy_in_head, plan_.owned_from == DeepspeedPlan::Owned::in_head);
  }

  void reduce_beside_last() {
    reduce_and_own(plan_.copy_beside_last, plan_.owned_from == DeepspeedPlan::Owned::in_embedding);
  }

  // A part in fp32 is made for the first bucket, other rooms once it has been reduced.
  void reduce_and_own(Bytes copied, bool makes_room) {
    if (makes_room && plan_.owns_part) own_gradients(w_, plan_, first_micro_batch());
    reduce_gradients(w_, plan_, copied);
    if (makes_room && !plan_.owns_part) own_gradients(w_, plan_, first_micro_batch());
  }

  std::vector<Pending> pending_;
  bool waits_ = false;    // the last gradient, for the next one
  bool reduced_ = false;  // what the head makes before its last gradient
  Tensor waiting_ = BlockWriter::none;
};

}  // namespace

LayerSort LayerSort::at(const DeepspeedPlan& plan, std::int64_t layer) {
  LayerSort sort{.gathers_ahead = layer <= plan.ahead_to};
  if (plan.highest && layer <= plan.highest->layer) sort.reduces = highest;
  if (plan.first && layer == plan.first->layer) sort.reduces = first;
  return sort;
}

LayerSort LayerSort::at(const EagerPlace& place) {
  return {.reduces = static_cast<Reduces>(place.sort / 2), .gathers_ahead = place.sort % 2 != 0};
}

int LayerSort::number() const {
  return 2 * reduces + (gathers_ahead ? 1 : 0);
}

Block write_deepspeed_block(const Problem& problem,
                            const WeightInventory& inventory,
                            const EagerCode& code,
                            const DeepspeedPlan& plan,
                            const EagerPlace& place) {
  if (plan.widening) return WidenedGradients(problem, inventory, code, plan, place).write();
  if (plan.keeps_gradients()) return KeptGradients(problem, inventory, code, plan, place).write();
  return ReducedGradients(problem, inventory, code, plan, place).write();
}

}  // namespace zeroplan
