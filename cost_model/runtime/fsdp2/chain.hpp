#pragma once
// The blocks of a model chunk, each wrapped in what FSDP2 does around it.

#include <tuple>

#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "cost_model/runtime/fsdp2/unit.hpp"

namespace zeroplan {

/// Equal blocks in a row, and the unit that holds the parameters of each.
struct Fsdp2Link : EagerLink {
  const Fsdp2Unit* unit = nullptr;  // gathered together; null: in the root unit
  bool kept = false;                // stays unsharded from forward to backward
  std::int64_t count = 1;
  // Where the loss runs the output layer in parts: what it reduces itself.
  const Fsdp2Unit* output = nullptr;
  const Fsdp2Unit* reduced = unit;  // after the backward pass

  /// The input of the last reduction, which is held until the next one.
  Bytes held_reduce() const { return reduced != nullptr ? reduced->held_input : Bytes{}; }

  bool has_like(const Fsdp2Link& other) const {
    return kind == other.kind && layer == other.layer && checkpoint == other.checkpoint &&
           windowed == other.windowed && unit == other.unit && kept == other.kept;
  }
};

/// What stands around a block: sizes that are freed in it, and the unit it gathers ahead.
struct Fsdp2Surroundings {
  bool first = false, last = false;
  bool ends_model = false;           // the row ends with the output layer
  Bytes held_gather;                 // of the unit before, until this one is copied out
  Bytes held_reduce;                 // of the unit after
  const Fsdp2Unit* ahead = nullptr;  // of the backward pass
  // Whose reductions left the sum of replicas to the end of the row's backward pass, and how many.
  std::vector<std::pair<const Fsdp2Unit*, std::int64_t>> summed = {};
};

/// Blocks that stand alike, in a row.
struct Fsdp2Place {
  const Fsdp2Link& link;
  Fsdp2Surroundings around;
  std::int64_t count = 1;

  /// What tells blocks of a rank apart, but for the micro-batch.
  auto key() const {
    return std::tuple(link.kind, link.layer, link.checkpoint, link.windowed, link.keeps_mask,
                      link.unit, link.kept, around.first, around.last, around.ends_model,
                      around.held_gather, around.held_reduce, around.ahead, around.summed);
  }
};

/// Chains of one rank.
class Fsdp2Chain {
 public:
  /// `root`: the unit of what no other unit holds; null where there is nothing.
  Fsdp2Chain(const Problem& problem,
             const WeightInventory& inventory,
             const Fsdp2Recipe& recipe,
             const Fsdp2Unit* root)
      : problem_(problem), inventory_(inventory), recipe_(recipe), root_(root) {}

  /// Where the blocks of these links stand, in forward order. The links must outlive them.
  std::vector<Fsdp2Place> places(const std::vector<Fsdp2Link>& links) const;

  /// With a pipeline every unit stays gathered through the step, and is reduced at its end; but for
  /// an output layer that the loss runs in parts, which that reshards and reduces each time.
  Block block(const Fsdp2Place& place, MicroBatch micro_batch) const;

 private:
  class Writer;

  const Problem& problem_;
  const WeightInventory& inventory_;
  const Fsdp2Recipe& recipe_;
  const Fsdp2Unit* root_;
};

}  // namespace zeroplan
