#pragma once
// The blocks of a model on a rank of Megatron-Core, folded.

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "cost_model/program/footprint.hpp"
#include "cost_model/question/inputs.hpp"
#include "cost_model/rank/weights.hpp"
#include "cost_model/runtime/megatron/shape.hpp"

namespace zeroplan {

/// Ranks that divide the experts, as far as a block reads how many they are: what it sends, or the
/// gradients of all experts here; else one, some, or as many as there are experts.
inline std::int64_t counted_expert_ranks(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t ep = problem.layout.ep;
  const bool makes = handed_by_linears(set) == HandedGradient::tensor;
  if (counts_expert_ranks(set) || makes || !problem.model.moe) return ep;
  constexpr std::int64_t some = 2;
  return problem.model.moe->experts > ep ? std::min(ep, some) : ep;
}

/// A layer as its policy leaves it, with all of it running again, and with what it saves on the
/// host; each where any layer is so.
struct MegatronLayer {
  std::shared_ptr<const FoldedBlock> kept, recomputed, offloaded;
};

/// The blocks of a model on one rank, made once for all stages and for every layout that differs
/// only in what they do not depend on: pp, dp, ep, ZeRO.
struct MegatronBlocks {
  ByKind<MegatronLayer> layers;
  std::shared_ptr<const FoldedBlock> embedding, head;
  std::shared_ptr<const FoldedBlock> mtp_head;  // where such modules are trained
  /// By what becomes of its gradient of the table (table_gradient_of_module).
  std::array<std::shared_ptr<const FoldedBlock>, 3> mtp_inputs;
  std::shared_ptr<const FoldedBlock>
      passed_on;  // of a chunk that holds nothing, where there may be
};
MegatronBlocks megatron_blocks(const Problem& problem);

/// What one of them sends, of which recompute runs so much again.
Block megatron_block(const Problem& problem,
                     const WeightInventory& inventory,
                     BlockKind block,
                     LayerKind layer,
                     RepeatSet repeated);

/// Makes them, each once for all recompute policies that it does not tell apart: embedding and head
/// none, a layer those that drop the same of its modules. Not for use by several threads at once.
class MegatronBlockCache {
 public:
  /// The problems of one cache are alike but for their inputs, and for settings that no block
  /// reads.
  MegatronBlocks find_or_make(const Problem& problem);
  /// Its layers alone.
  ByKind<MegatronLayer> layers(const Problem& problem);

 private:
  class Of;
  std::shared_ptr<OnlyFor> only_;  // the blocks' too, which may outlive the cache
  LayerKinds kinds_;               // that the model has
  std::unordered_map<Numbers<11>, std::shared_ptr<const FoldedBlock>, NumbersHash> known_;
};

/// The blocks of problems that were asked about before.
class MegatronBlockSource {
 public:
  virtual ~MegatronBlockSource() = default;
  /// Valid until they are forgotten.
  virtual const MegatronBlocks& find_or_make(const Problem& problem) const = 0;
};

}  // namespace zeroplan
