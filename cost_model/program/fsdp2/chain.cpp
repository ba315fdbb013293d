// What does FSDP2 do around each block? Front door: Fsdp2Chain.
#include "cost_model/program/fsdp2/chain.hpp"

namespace zeroplan {

// Writes one block with what surrounds it.
class Fsdp2Chain::Writer final : public EagerBlockWriter {
 public:
  Writer(const Fsdp2Chain& chain, const Fsdp2Link& link, const Surroundings& around, MicroBatch mb)
      : EagerBlockWriter(chain.problem_, chain.inventory_, chain.recipe_.code, link),
        chain_(chain),
        own_(link),
        around_(around),
        micro_batch_(mb),
        pipelined_(p_.layout.pp > 1) {}

 private:
  bool gathers() const { return !pipelined_ || micro_batch_ == MicroBatch::first; }
  bool has_root() const { return !chain_.root_.parameters.empty(); }

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
    if (around_.first && has_root()) {
      write_unshard(w_, chain_.root_);
      put_parameters(chain_.root_);
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
    if (has_root()) {
      take_parameters(chain_.root_);
      reduce(chain_.root_, last);
      last = chain_.root_.reduce_input;
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
      const bool root = &unit == &chain_.root_;
      if (root || link_.kind == EagerLink::Kind::head) take_head_gradient(root);
    });
  }

  void free_gradients() {
    for (const Tensor tensor : gradients_) w_.free(tensor);
    gradients_.clear();
  }

  // The head's gradient waits for the embedding's where both are in the root unit, and for the last
  // part where the head works in parts.
  void take_head_gradient(bool root) {
    if (in_parts()) {
      w_.take(fsdp2_accumulated, Bytes{4 * word_elements()});
    } else if (root) {
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
  const Surroundings& around_;
  MicroBatch micro_batch_;
  bool pipelined_;
  bool first_part_ = true;
  Tensor rotary_ = BlockWriter::none;  // cast for this layer
  std::vector<Tensor> parameters_;     // unsharded, of this block
  std::vector<Tensor> gradients_;      // unsharded
};

Fsdp2Chain::Surroundings Fsdp2Chain::surroundings(const std::vector<Fsdp2Link>& links,
                                                  std::size_t index) const {
  Surroundings around{.first = index == 0, .last = index + 1 == links.size()};
  around.held_gather = root_.parameters.empty() ? Bytes{} : root_.gathered;
  for (std::size_t i = 0; i < index; ++i) {
    if (links[i].unit != nullptr) around.held_gather = links[i].unit->gathered;
  }
  for (std::size_t i = links.size() - 1; i > index; --i) {
    if (links[i].unit != nullptr) around.held_reduce = links[i].unit->reduce_input;
  }
  if (index > 0 && !links[index - 1].kept) around.ahead = links[index - 1].unit;
  return around;
}

std::shared_ptr<const FoldedBlock> Fsdp2Chain::block(const Fsdp2Link& link,
                                                     const Surroundings& around,
                                                     MicroBatch micro_batch) {
  const Key key{link.kind,          link.layer,   link.checkpoint, link.unit,
                link.kept,          around.first, around.last,     around.held_gather,
                around.held_reduce, around.ahead, micro_batch};
  const auto [found, added] = made_.try_emplace(key);
  if (added) {
    found->second = folded(Writer(*this, link, around, micro_batch).write(),
                           link.kind == EagerLink::Kind::head);
  }
  return found->second;
}

std::vector<Run> Fsdp2Chain::runs(const std::vector<Fsdp2Link>& links, MicroBatch micro_batch) {
  std::vector<Run> list;
  for (std::size_t i = 0; i < links.size(); ++i) {
    append(list, block(links[i], surroundings(links, i), micro_batch));
  }
  return list;
}

}  // namespace zeroplan
