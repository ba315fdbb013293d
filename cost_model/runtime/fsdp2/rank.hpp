#pragma once
// What the program of a rank of FSDP2 is made of, whether it is to be played or only to be weighed.

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/fsdp2/chain.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

/// What of the step's end is written together.
struct Fsdp2StepPart {
  enum class What { reduction, last_input, replica_sum, updates, gradient };
  What what = What::reduction;
  const Fsdp2Unit* unit = nullptr;  // of the reduction, what is resharded then
  const Fsdp2Unit* reduced = nullptr;
  Bytes bytes;  // of the reduction before; of all updates
  auto key() const { return std::tuple(what, unit, reduced, bytes); }
};

class Fsdp2Rank {
 public:
  /// Problem, inventory and units must outlive the rank.
  Fsdp2Rank(const Problem& problem, const WeightInventory& inventory, const Fsdp2Units& units)
      : p_(problem),
        inventory_(inventory),
        recipe_(fsdp2_recipe(problem)),
        units_(units),
        root_(joins_ends(problem) && !is_pipelined(problem) ? &units.ends : nullptr) {}

  Fsdp2Chain chain() const { return {p_, inventory_, recipe_, root_}; }

  /// The blocks of a chunk.
  std::vector<Fsdp2Link> links(const LayerRange& range, bool begins_model, bool ends_model) const;

  /// A rank's border tensors, and where its chunks stand.
  StageProgram places(const Stage& stage) const;
  void add_resident_to(StageProgram& program, const Stage& stage, const ModelStates& states) const;
  /// Whether shards of gradients are among what is resident.
  bool holds_gradients() const { return recipe_.keeps_gradients && !moved(); }

  /// What ends a step: with a pipeline all reductions, then the optimizer, then the gradients go.
  /// `chunks`: pointers to the links of each. Calls add(part, times, write) part after part, where
  /// `write` writes it once.
  template <class Chunks, class Add>
  void end_of_step(const Chunks& chunks, Bytes parameters, Add&& add) const;
  /// The reductions alone of what ends a step.
  template <class Chunks, class Add>
  void reductions(const Chunks& chunks, Add&& add) const;

  /// A checkpoint of whole parameters gathers one after the other, the largest among them.
  Block checkpoint(const Stage& stage) const;

 private:
  template <class Chunks, class Visit>
  static void each_link(const Chunks& chunks, Visit&& visit);
  // Whether the end of a step adds gradients to shards that live, or makes new ones.
  GradientShard gradient_shard() const {
    const bool lives = moved() || recipe_.keeps_gradients;
    return lives ? GradientShard::is_added : GradientShard::is_new;
  }
  bool moved() const { return p_.layout.offload == Offload::parameters; }
  void write_reduction(BlockWriter& w, const Fsdp2StepPart& part) const;

  const Problem& p_;
  const WeightInventory& inventory_;
  Fsdp2Recipe recipe_;
  const Fsdp2Units& units_;
  const Fsdp2Unit* root_;  // what is in no other unit
};

template <class Chunks, class Visit>
void Fsdp2Rank::each_link(const Chunks& chunks, Visit&& visit) {
  for (const std::vector<Fsdp2Link>* links : chunks) {
    for (const Fsdp2Link& link : *links) visit(link);
  }
}

template <class Chunks, class Add>
void Fsdp2Rank::reductions(const Chunks& chunks, Add&& add) const {
  using What = Fsdp2StepPart::What;
  if (!is_pipelined(p_)) return;
  Bytes held;  // at first: of the last loss in parts
  each_link(chunks, [&](const Fsdp2Link& link) {
    if (link.output != nullptr) held = link.output->held_input;
  });
  each_link(chunks, [&](const Fsdp2Link& link) {
    const auto reduce = [&](std::int64_t times) {
      const Fsdp2StepPart part{What::reduction, link.unit, link.reduced, held};
      if (times > 0) add(part, times, [&](BlockWriter& w) { write_reduction(w, part); });
      held = link.reduced->held_input;
    };
    if (link.reduced == nullptr) return;
    reduce(1);
    reduce(link.count - 1);
  });
  if (recipe_.reduces_on_own_stream) return;
  add(Fsdp2StepPart{What::last_input, nullptr, nullptr, held}, 1,
      [&](BlockWriter& w) { w.take(fsdp2_reduce_input, held); });
  if (!recipe_.holds_replica_sum) return;
  const auto drop_sum = [&](const Fsdp2Unit* reduced, std::int64_t count) {
    if (reduced == nullptr) return;
    const Bytes sum = held_replica_sum(*reduced, gradient_shard(), recipe_);
    add(Fsdp2StepPart{What::replica_sum, nullptr, reduced, sum}, count,
        [&](BlockWriter& w) { w.take(fsdp2_replica_sum, sum); });
  };
  each_link(chunks, [&](const Fsdp2Link& link) { drop_sum(link.reduced, link.count); });
  drop_sum(root_, 1);
}

template <class Chunks, class Add>
void Fsdp2Rank::end_of_step(const Chunks& chunks, Bytes parameters, Add&& add) const {
  using What = Fsdp2StepPart::What;
  reductions(chunks, add);
  if (moved()) return;
  if (recipe_.optimizer == OptimizerCode::foreach) {
    add(Fsdp2StepPart{What::updates, nullptr, nullptr, parameters}, 1,
        [&](BlockWriter& w) { w.free(w.temporary("updates of all shards", parameters)); });
  }
  if (recipe_.keeps_gradients) return;
  const auto drop_gradient = [&](const Fsdp2Unit* reduced, std::int64_t count) {
    if (reduced == nullptr) return;
    add(Fsdp2StepPart{What::gradient, nullptr, reduced, {}}, count,
        [&](BlockWriter& w) { w.take(fsdp2_shard_gradient, reduced->gradient); });
  };
  each_link(chunks, [&](const Fsdp2Link& link) {
    const bool shared = link.kind == EagerLink::Kind::embedding && shares_ends(p_);
    if (!shared) drop_gradient(link.reduced, link.count);
    drop_gradient(link.output, 1);
  });
  drop_gradient(root_, 1);
}

}  // namespace zeroplan
