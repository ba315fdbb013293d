#pragma once
// The blocks of a model chunk, each wrapped in what FSDP2 does around it.

#include <map>
#include <tuple>

#include "cost_model/program/fsdp2/recipe.hpp"
#include "cost_model/program/fsdp2/unit.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// One block of the chain, and the unit that holds its parameters.
struct Fsdp2Link : EagerLink {
  const Fsdp2Unit* unit = nullptr;  // null: in the root unit
  bool kept = false;                // stays unsharded from forward to backward
};

/// Writes chains of one rank; equal blocks are made once.
class Fsdp2Chain {
 public:
  /// `root`: the unit of what no other unit holds; without parameters where there is nothing.
  Fsdp2Chain(const Problem& problem,
             const WeightInventory& inventory,
             const Fsdp2Recipe& recipe,
             const Fsdp2Unit& root)
      : problem_(problem), inventory_(inventory), recipe_(recipe), root_(root) {}

  /// With a pipeline every unit stays gathered through the step, and is reduced at its end.
  std::vector<Run> runs(const std::vector<Fsdp2Link>& links, MicroBatch micro_batch);

 private:
  // What stands around a link: sizes that are freed in it, and the unit it gathers ahead.
  struct Surroundings {
    bool first = false, last = false;
    Bytes held_gather;                 // of the unit before, until this one is copied out
    Bytes held_reduce;                 // of the unit after
    const Fsdp2Unit* ahead = nullptr;  // of the backward pass
  };
  class Writer;

  Surroundings surroundings(const std::vector<Fsdp2Link>& links, std::size_t index) const;
  std::shared_ptr<const FoldedBlock> block(const Fsdp2Link&, const Surroundings&, MicroBatch);

  using Key = std::tuple<EagerLink::Kind,
                         LayerKind,
                         Checkpoint,
                         const Fsdp2Unit*,
                         bool,
                         bool,
                         bool,
                         Bytes,
                         Bytes,
                         const Fsdp2Unit*,
                         MicroBatch>;
  const Problem& problem_;
  const WeightInventory& inventory_;
  const Fsdp2Recipe& recipe_;
  const Fsdp2Unit& root_;
  std::map<Key, std::shared_ptr<const FoldedBlock>> made_;
};

}  // namespace zeroplan
