// What does FSDP2 do around each block? Front door: Fsdp2Chain.
#include "cost_model/runtime/fsdp2/chain.hpp"

#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

// Writes one block with what surrounds it.
class Fsdp2Chain::Writer final : public EagerBlockWriter {
 public:
  Writer(const Fsdp2Chain& chain,
         const Fsdp2Link& link,
         const Fsdp2Surroundings& around,
         MicroBatch mb)
      : EagerBlockWriter(chain.problem_, chain.inventory_, chain.recipe_.code, link),
        chain_(chain),
        own_(link),
        around_(around),
        micro_batch_(mb),
        pipelined_(is_pipelined(p_)) {}

 private:
  bool is_first() const { return micro_batch_ == MicroBatch::first; }
  // Whether gradients of the micro-batches before are there, whole.
  bool adds() const { return !is_first() && leaves_whole(p_, MicroBatch::first); }
  const Fsdp2Unit* root() const { return chain_.root_; }

  // Whether the forward pass finds the block's unit sharded: at first, and always after a loss in
  // parts, unless a backward pass came between.
  bool gathers() const {
    return !pipelined_ || is_first() || (runs_in_parts() && !head_alternates(p_));
  }
  // With a pipeline: the backward pass finds sharded what the loss resharded just before.
  bool gathers_backward() const { return runs_in_parts() && (is_first() || head_alternates(p_)); }

  // Whether this is the head, and its parameters are resharded between the passes with the root's.
  bool reshards_root() const {
    return own_.kind == EagerLink::Kind::head && own_.unit == nullptr && !own_.kept &&
           !runs_in_parts();
  }

  // Whether the root's forward pass goes on to the loss.
  bool computes_loss() const {
    return chain_.recipe_.loss_in_forward && own_.kind == EagerLink::Kind::head;
  }

  // Unsharded parameters that stay longer than this block.
  void put_parameters(const Fsdp2Unit& unit) {
    for (const TensorSpec& spec : unit.parameters) w_.put(fsdp2_parameter, spec.bytes);
  }
  void take_parameters(const Fsdp2Unit& unit) {
    for (const TensorSpec& spec : unit.parameters) w_.take(fsdp2_parameter, spec.bytes);
  }

  void before_forward() override {
    cast_rotary();
    if (!gathers()) return;
    if (around_.first && root() != nullptr) {
      write_unshard(w_, *root(), During::forward);
      put_parameters(*root());
    }
    if (own_.unit == nullptr) return;
    // A pipeline gathers once a step, before its passes.
    const bool once = pipelined_ && !runs_in_parts();
    write_unshard(w_, *own_.unit, once ? During::step : During::forward);
    if (!pipelined_ || is_first()) w_.take(fsdp2_gathered, around_.held_gather);
    if (once) {
      put_parameters(*own_.unit);
    } else {
      parameters_ = write_copy_out(w_, *own_.unit);
    }
  }

  // Inputs in fp32 are cast before each layer (MixedPrecisionPolicy.cast_forward_inputs): cosine
  // and sine of every feature, which the backward pass reads again. Complex numbers are left alone.
  void cast_rotary() {
    if (!chain_.recipe_.casts_rotary || own_.kind != EagerLink::Kind::layer) return;
    const Bytes table{2 * p_.runtime.fsdp2.mixed_precision_bytes * p_.training.sequence_length *
                      p_.model.attention.head_dim};
    rotary_ = w_.allocate("rotary table in 16 bits", table, Category::activations);
  }

  void after_forward() override {
    if (runs_in_parts()) return reshard_before_loss();
    if (!own_.kept) free_parameters();
    if (!computes_loss()) end_of_model();
  }

  // The root's hook ends the forward pass of a unit of which only the norm ran (pytorch #180428,
  // _force_complete_incomplete_states), and reshards it: each loss leaves the unit with
  // set_reshard_after_forward(True), whatever the policy was. The loss gathers it again, whole and
  // at once (torchtitan 04326fc8e).
  void reshard_before_loss() {
    if (own_.unit == nullptr || !gathers()) {
      take_parameters(head_unit());
    } else {
      free_parameters();
    }
    end_of_model();
    write_unshard(w_, head_unit(), During::forward);
    parameters_ = write_copy_out(w_, head_unit());
    w_.take(fsdp2_gathered, head_unit().gathered);
  }

  void after_loss() override {
    if (runs_in_parts()) end_of_parts();
    if (computes_loss()) end_of_model();
    if (holds_output()) w_.put(fsdp2_stage_output, output());
  }

  // The schedule's variable for what the stage gave (pytorch torch/distributed/pipelining/stage.py
  // backward_one_chunk, stage_output): logits, which a loss without a pipeline lets go. A loss in
  // parts gets the hidden state, which the backward pass reads anyway.
  bool holds_output() const {
    const bool dropped = code_.loss == LossCode::plain || is_parallel(code_.loss);
    return pipelined_ && around_.ends_model && dropped && !code_.loss_parts.of_hidden();
  }
  Bytes output() const {
    const std::int64_t rows = local_weight(inventory_.embedding.front(), p_).rows;
    return shape_.features(is_parallel(code_.loss) ? rows : rows * p_.layout.tp);
  }

  // The last part's backward pass is one by itself, whose end lets the reduction's input go
  // (_fsdp_state.py _root_post_backward_final_callback); in a pipeline only the last one's does.
  void end_of_parts() {
    free_parameters();
    drop_replica_sum(*own_.output, shard());
    if (pipelined_ || chain_.recipe_.reduces_on_own_stream) return;
    w_.take(fsdp2_reduce_input, own_.output->held_input);
  }

  // The root's hook after the last module lets the last gather go.
  void end_of_model() {
    if (!around_.last || !gathers()) return;
    if (reshards_root()) take_parameters(*root());
    w_.take(fsdp2_gathered, own_.unit != nullptr ? own_.unit->gathered : around_.held_gather);
  }

  void free_parameters() {
    for (const Tensor tensor : std::exchange(parameters_, {})) w_.free(tensor);
  }

  // Hooks on what the model gave: on the loss, or on the logits.
  void before_loss_backward() override {
    if (computes_loss() && reshards_root()) gather_in_backward();
  }

  void gather_in_backward() {
    write_unshard(w_, head_unit(), During::backward);
    put_parameters(head_unit());
    w_.take(fsdp2_gathered, head_unit().gathered);
    gather_ahead();
  }

  // Once: the unit that the backward pass needs next.
  void gather_ahead() {
    if (around_.ahead != nullptr && !gathered_ahead_) {
      write_unshard(w_, *around_.ahead, During::backward);
    }
    gathered_ahead_ = true;
  }

  void before_backward() override {
    if (pipelined_) {
      if (gathers_backward()) gather_in_backward();
      return;
    }
    const bool in_parts = runs_in_parts() && own_.unit == nullptr;
    if (in_parts || (reshards_root() && !computes_loss())) gather_in_backward();
    if (own_.unit != nullptr && !own_.kept) {
      if (around_.last)
        write_unshard(w_, *own_.unit, During::backward);  // nobody gathered it ahead
      parameters_ = write_copy_out(w_, *own_.unit);
      w_.take(fsdp2_gathered, own_.unit->gathered);
    }
    gather_ahead();
  }

  void after_backward() override {
    w_.free(rotary_);
    if (holds_output() && around_.first) w_.take(fsdp2_stage_output, output());
    if (leaves_whole(p_, micro_batch_)) {
      reshard();
      accumulate();
      return;
    }
    if (adds()) free_gradients();
    cut_embedding_gradient();
    const Bytes held = around_.held_reduce;
    if (own_.reduced != nullptr) reduce(*own_.reduced, held);
    if (!around_.first) return;
    Bytes last = own_.reduced != nullptr ? own_.reduced->held_input : held;
    if (root() != nullptr) {
      take_parameters(*root());
      reduce(*root(), last);
      last = root()->held_input;
    }
    if (!chain_.recipe_.reduces_on_own_stream) w_.take(fsdp2_reduce_input, last);
    for (const auto& [unit, count] : around_.summed) drop_replica_sum(*unit, shard(), count);
    if (own_.reduced != nullptr) drop_replica_sum(*own_.reduced, own_shard());
    if (root() != nullptr) drop_replica_sum(*root(), shard());
  }

  void drop_replica_sum(const Fsdp2Unit& unit, GradientShard shard, std::int64_t count = 1) {
    const Bytes sum = held_replica_sum(unit, shard, chain_.recipe_);
    for (std::int64_t i = 0; i < count; ++i) w_.take(fsdp2_replica_sum, sum);
  }

  // Without a pipeline: this unit's gradients are complete.
  void reduce(const Fsdp2Unit& unit, Bytes held) {
    free_parameters();
    write_reduce(w_, unit, held, &unit == own_.reduced ? own_shard() : shard(), chain_.recipe_,
                 gradients(unit), adds() ? During::step : During::backward);
  }

  GradientShard own_shard() const {
    const bool follows = own_.kind == EagerLink::Kind::embedding && shares_ends(p_);
    return follows ? GradientShard::is_added : shard();
  }

  Fsdp2Gradients gradients(const Fsdp2Unit& unit) {
    if (adds()) {
      return all_of(unit, [this, &unit] { w_.take(fsdp2_accumulated, unit.accumulated); });
    }
    const auto own = [this] { free_gradients(); };
    const auto head = [this] { w_.take(fsdp2_gradient, head_gradient()); };
    // The head's waits for the embedding's where both are in the root unit. The last parameter of
    // a root whose ends are tied is a norm.
    if (&unit == root()) {
      if (in_parts()) return {own, {}};
      if (!p_.model.tied_embeddings) return {own, head};
      return {[=] { own(), head(); }, {}};
    }
    return all_of(unit, own);
  }

  GradientShard shard() const {
    const bool lives = chain_.recipe_.keeps_gradients || p_.layout.offload == Offload::parameters;
    const bool reduces_first = is_first() || (adds() && !pipelined_);
    return reduces_first && !lives ? GradientShard::is_new : GradientShard::is_added;
  }

  void free_gradients() {
    for (const Tensor tensor : std::exchange(gradients_, {})) w_.free(tensor);
  }

  // Without a pipeline: what the backward pass has read.
  void reshard() {
    free_parameters();
    if (!pipelined_ && around_.first && root() != nullptr) take_parameters(*root());
  }

  // Gradients add up unsharded in the reduction's format: the first ones, where they have it.
  void accumulate() {
    const BlockWriter::WeightEvents of_weights(w_);
    const bool as_they_are = leaves_wide() || reduced_bytes(p_) == narrow_bytes();
    if (as_they_are) free_gradients();
    if (is_first() && own_.reduced != nullptr) {
      w_.put(fsdp2_accumulated, own_.reduced->accumulated);
    } else if (is_first() && around_.first && root() != nullptr) {
      if (as_they_are) w_.take(fsdp2_gradient, head_gradient());
      w_.put(fsdp2_accumulated, root()->accumulated);
      if (!as_they_are) w_.take(fsdp2_gradient, head_gradient());
    }
    free_gradients();
  }

  // Whether what waits to be added to later gradients is widened when it is made.
  bool leaves_wide() const {
    return chain_.recipe_.widens_gradients && is_first() && leaves_whole(p_, micro_batch_);
  }
  Bytes left(std::int64_t elements) const {
    return Bytes{(leaves_wide() ? reduced_bytes(p_) : narrow_bytes()) * elements};
  }
  Bytes head_gradient() const { return left(word_elements()); }
  bool in_parts() const { return code_.loss_parts.of_hidden(); }
  // Whether this is the head, and the loss runs it part by part.
  bool runs_in_parts() const { return own_.output != nullptr; }
  const Fsdp2Unit& head_unit() const { return own_.unit != nullptr ? *own_.unit : *root(); }

  // FSDP2 takes this rank's rows of it before it reshards the parameter
  // (_fsdp_param.py _get_grad_inner_tensor).
  void cut_embedding_gradient() {
    if (own_.kind != EagerLink::Kind::embedding || !chain_.recipe_.whole_embedding_gradient) return;
    const Tensor rows =
        w_.allocate(fsdp2_embedding_rows, narrow(word_elements()), Category::gradients);
    free_gradients();
    gradients_.push_back(rows);
  }

  std::int64_t narrow_bytes() const { return p_.runtime.fsdp2.mixed_precision_bytes; }
  Bytes narrow(std::int64_t elements) const { return Bytes{narrow_bytes() * elements}; }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const bool whole =
        own_.kind == EagerLink::Kind::embedding && chain_.recipe_.whole_embedding_gradient;
    const std::int64_t count = whole ? inventory_.embedding.front().elements() : elements;
    if (adds() && chain_.recipe_.adds_at_once) {
      const Tensor added = w_.allocate(weight, narrow(count), Category::gradients);
      const bool of_linear = own_.kind != EagerLink::Kind::embedding && weight != "norm";
      return of_linear ? w_.free_with_next(added) : w_.free(added);
    }
    const Tensor made = w_.temporary(weight, leaves_wide() ? narrow(count) : Bytes{});
    if (own_.unit == nullptr && link_.kind == EagerLink::Kind::head && !adds()) {
      w_.put(fsdp2_gradient, left(count));  // until the root unit is reduced
    } else {
      gradients_.push_back(w_.allocate(weight, left(count), Category::gradients));
    }
    w_.free(made);
  }

  // Parts add up in fp32. The last one, which is the second that is written, reduces the sum
  // (torchtitan components/loss.py @b5bcd76c6: set_requires_gradient_sync): with a pipeline too,
  // where the input of the micro-batch before is held until then.
  void on_part_gradient(std::string_view weight, std::int64_t) override {
    const Tensor part = w_.temporary(weight, narrow(word_elements()));
    Tensor wide = BlockWriter::none;
    if (first_part_) {
      w_.put(fsdp2_accumulated, own_.output->accumulated);
    } else if (chain_.recipe_.widens_gradients) {
      wide = w_.temporary("gradient of a part in fp32", own_.output->accumulated);
    }
    for (const Tensor tensor : {part, wide}) w_.free(tensor);
    if (!first_part_) {
      const bool follows = pipelined_ && !is_first();
      write_reduce(w_, *own_.output, follows ? own_.output->held_input : Bytes{}, shard(),
                   chain_.recipe_,
                   {{}, [&] { w_.take(fsdp2_accumulated, own_.output->accumulated); }});
    }
    first_part_ = false;
  }

  const Fsdp2Chain& chain_;
  const Fsdp2Link& own_;
  const Fsdp2Surroundings& around_;
  MicroBatch micro_batch_;
  bool pipelined_;
  bool first_part_ = true;
  bool gathered_ahead_ = false;
  Tensor rotary_ = BlockWriter::none;  // cast for this layer
  std::vector<Tensor> parameters_;     // unsharded, of this block
  std::vector<Tensor> gradients_;      // unsharded
};

Block Fsdp2Chain::block(const Fsdp2Place& place, MicroBatch micro_batch) const {
  return Writer(*this, place.link, place.around, micro_batch).write();
}

}  // namespace zeroplan
