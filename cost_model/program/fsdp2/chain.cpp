// What does FSDP2 do around each block? Front door: Fsdp2Chain.
#include "cost_model/program/fsdp2/chain.hpp"

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
        pipelined_(p_.layout.pp > 1) {}

 private:
  bool gathers() const { return !pipelined_ || micro_batch_ == MicroBatch::first; }
  const Fsdp2Unit* root() const { return chain_.root_; }

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
      write_unshard(w_, *root());
      put_parameters(*root());
    }
    if (own_.unit == nullptr) return;
    write_unshard(w_, *own_.unit);
    w_.take(fsdp2_gathered, around_.held_gather);
    if (pipelined_) {
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
    if (!own_.kept && !loss_reads_head()) free_parameters();
    if (around_.last && gathers()) end_of_model();
  }

  void after_loss() override {
    if (!own_.kept && loss_reads_head()) free_parameters();
  }

  // The root's hook after the last module lets the last gather go.
  void end_of_model() {
    w_.take(fsdp2_gathered, own_.unit != nullptr ? own_.unit->gathered : around_.held_gather);
  }

  void free_parameters() {
    for (const Tensor tensor : parameters_) w_.free(tensor);
    parameters_.clear();
  }

  void before_backward() override {
    if (pipelined_) return;
    if (own_.unit != nullptr && !own_.kept) {
      if (around_.last) write_unshard(w_, *own_.unit);  // nobody gathered it ahead
      parameters_ = write_copy_out(w_, *own_.unit);
      w_.take(fsdp2_gathered, own_.unit->gathered);
    }
    if (around_.ahead != nullptr) write_unshard(w_, *around_.ahead);
  }

  void after_backward() override {
    w_.free(rotary_);
    if (pipelined_) {
      accumulate();
      return;
    }
    if (own_.unit != nullptr) reduce(*own_.unit, around_.held_reduce);
    if (!around_.first) return;
    Bytes last = own_.unit != nullptr ? own_.unit->reduce_input : around_.held_reduce;
    if (root() != nullptr) {
      take_parameters(*root());
      reduce(*root(), last);
      last = root()->reduce_input;
    }
    if (!chain_.recipe_.reduces_on_own_stream) w_.take(fsdp2_reduce_input, last);
  }

  // Without a pipeline: this unit's gradients are complete.
  void reduce(const Fsdp2Unit& unit, Bytes held) {
    free_parameters();
    const bool moved = p_.layout.offload == Offload::parameters;
    const GradientShard shard = micro_batch_ == MicroBatch::first && !moved
                                    ? GradientShard::is_new
                                    : GradientShard::is_added;
    write_reduce(w_, unit, held, shard, chain_.recipe_.reduces_on_own_stream, [&] {
      free_gradients();
      const bool of_root = &unit == root();
      if (of_root || link_.kind == EagerLink::Kind::head) take_head_gradient(of_root);
    });
  }

  void free_gradients() {
    for (const Tensor tensor : gradients_) w_.free(tensor);
    gradients_.clear();
  }

  // The head's gradient waits for the embedding's where both are in the root unit, and for the last
  // part where the head works in parts.
  void take_head_gradient(bool of_root) {
    if (in_parts()) {
      w_.take(fsdp2_accumulated, Bytes{4 * word_elements()});
    } else if (of_root) {
      w_.take(fsdp2_gradient, head_gradient());
    }
  }

  // With a pipeline: gradients are added up unsharded in the reduction's format.
  void accumulate() {
    const BlockWriter::WeightEvents of_weights(w_);
    if (micro_batch_ == MicroBatch::first) w_.put(fsdp2_accumulated, own_.unit->accumulated);
    free_gradients();
  }

  Bytes head_gradient() const {
    return Bytes{p_.runtime.fsdp2.mixed_precision_bytes * word_elements()};
  }
  bool in_parts() const { return !pipelined_ && code_.loss_parts.of_hidden(); }
  // Whatever the policy, the output layer is whole while the loss runs it part by part.
  bool loss_reads_head() const { return in_parts() && link_.kind == EagerLink::Kind::head; }

  void on_gradient(std::string_view weight, std::int64_t elements) override {
    const Bytes bytes{p_.runtime.fsdp2.mixed_precision_bytes * elements};
    if (own_.unit == nullptr && link_.kind == EagerLink::Kind::head) {
      w_.put(fsdp2_gradient, bytes);  // until the root unit is reduced
    } else {
      gradients_.push_back(w_.allocate(weight, bytes, Category::gradients));
    }
  }

  // Only the last part reduces: the ones before add up in fp32.
  void on_part_gradient(std::string_view weight, std::int64_t elements) override {
    const Tensor part = w_.temporary(weight, head_gradient());
    if (first_part_ && in_parts()) w_.put(fsdp2_accumulated, Bytes{4 * elements});
    first_part_ = false;
    w_.free(part);
  }

  const Fsdp2Chain& chain_;
  const Fsdp2Link& own_;
  const Fsdp2Surroundings& around_;
  MicroBatch micro_batch_;
  bool pipelined_;
  bool first_part_ = true;
  Tensor rotary_ = BlockWriter::none;  // cast for this layer
  std::vector<Tensor> parameters_;     // unsharded, of this block
  std::vector<Tensor> gradients_;      // unsharded
};

std::vector<Fsdp2Place> Fsdp2Chain::places(const std::vector<Fsdp2Link>& links) const {
  std::vector<Fsdp2Place> list;
  Bytes held_gather = root_ != nullptr ? root_->gathered : Bytes{};
  const Fsdp2Link* before = nullptr;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Fsdp2Link& link = links[i];
    Bytes held_after;  // of the unit after the last of the row
    for (std::size_t next = links.size() - 1; next > i; --next) {
      if (links[next].unit != nullptr) held_after = links[next].unit->reduce_input;
    }
    const auto add = [&](std::int64_t count, bool begins, bool ends) {
      if (count <= 0) return;
      Fsdp2Surroundings around{.first = begins && i == 0,
                               .last = ends && i + 1 == links.size(),
                               .held_gather = held_gather,
                               .held_reduce = held_after};
      if (!ends && link.unit != nullptr) around.held_reduce = link.unit->reduce_input;
      if (before != nullptr && !before->kept) around.ahead = before->unit;
      list.push_back({link, around, count});
      if (link.unit != nullptr) held_gather = link.unit->gathered;
      before = &link;
    };
    // The ends of a row have other neighbours than what is inside.
    add(1, true, link.count == 1);
    add(link.count - 2, false, false);
    if (link.count > 1) add(1, false, true);
  }
  return list;
}

Block Fsdp2Chain::block(const Fsdp2Place& place, MicroBatch micro_batch) const {
  return Writer(*this, place.link, place.around, micro_batch).write();
}

}  // namespace zeroplan
