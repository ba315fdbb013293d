#pragma once
// Bytes of parameters, gradients and optimizer states on the ranks of one pipeline stage.

#include <array>

#include "cost_model/question/units.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/rank/weights.hpp"
#include "cost_model/states/breakdown.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

/// A model's weights by where they stand, made once and used for every layout.
struct WeightInventory {
  std::vector<Weight> embedding;
  ByKind<std::vector<Weight>> layers;  // of one of each kind; none of a kind that there is not
  std::vector<Weight> head;
  std::vector<Weight> tied_head;  // the last stage's own copy of a tied embedding
  std::vector<Weight> mtp;        // of one multi-token-prediction module
  std::vector<Weight> mtp_ends;   // of these what is in none of its layers
  std::vector<Weight>
      mtp_embedding;  // the last stage's own copy of an untied embedding, for MTP modules

  const std::vector<Weight>& layer(LayerKind kind) const { return layers[kind]; }
  bool has(LayerKind kind) const { return !layers[kind].empty(); }
};

WeightInventory weight_inventory(const ModelSpec& model);

/// Whether `weights`, one of the lists of the inventory itself, are those of a hidden layer.
bool of_hidden_layer(const WeightInventory& inventory, const std::vector<Weight>& weights);

/// Elements of one rank: `full` before ZeRO divides them, `shard` after, both with the runtime's
/// padding.
struct ElementCount {
  std::int64_t full = 0;
  std::int64_t shard = 0;
  // Elements in matrices of hidden layers alone: Muon keeps one state for them, two for the rest.
  std::int64_t hidden_full = 0;
  std::int64_t hidden_shard = 0;
  // Of these, those of layers that are not in 16 bits whatever the others are.
  std::int64_t narrow_full = 0;
  std::int64_t narrow_shard = 0;
};

/// Shape of a weight on one rank, after tensor and expert parallelism.
struct LocalWeight {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t copies = 0;
  constexpr std::int64_t elements() const { return rows * columns * copies; }
};

/// The part of `weight` that one rank holds. The vocabulary is padded as the runtime does it
/// (Megatron-Core training/vocab_utils.py); other divisions round up where they do not divide.
LocalWeight local_weight(const Weight& weight, const Problem& problem);

/// Elements of what FSDP2 leaves the first of `width` ranks, to which it pads every rank's part:
/// Shard(0) of the weight, so whole rows. The experts of a layer are one tensor [experts, rows,
/// columns]: it is cut between experts, or along their rows where cuts_expert_rows says so.
std::int64_t first_dimension_shard(const Problem& problem,
                                   const LocalWeight& weight,
                                   std::int64_t width);

/// Elements of all `weights` on one rank.
std::int64_t local_elements(const std::vector<Weight>& weights, const Problem& problem);

/// Calls `visit` with the weights of embedding, each layer and head that `stage` holds, in model
/// order; a tied head is visited where the stage holds its own copy.
template <class Visit>
void visit_weights(const Problem& problem,
                   const WeightInventory& inventory,
                   const Stage& stage,
                   Visit&& visit) {
  if (stage.embedding) visit(inventory.embedding);
  for (const LayerRange& chunk : stage.chunks) {
    for (std::int64_t i = chunk.first; i < chunk.last; ++i) {
      visit(inventory.layer(kind_of(problem.model, i)));
    }
  }
  if (stage.head) {
    const std::int64_t modules = held_mtp_modules(problem);
    if (modules > 0 && !stage.embedding) visit(inventory.mtp_embedding);
    for (std::int64_t i = 0; i < modules; ++i) visit(inventory.mtp);
    visit(inventory.head);
  }
  if (stage.head && !stage.embedding) visit(inventory.tied_head);
}

/// Elements of the dense (not expert) and of the expert weights on one rank of `stage`.
struct StageElements {
  ElementCount dense;
  ElementCount expert;
  std::int64_t full() const { return dense.full + expert.full; }
  std::int64_t shard() const { return dense.shard + expert.shard; }
  std::int64_t hidden_full() const { return dense.hidden_full + expert.hidden_full; }
  std::int64_t hidden_shard() const { return dense.hidden_shard + expert.hidden_shard; }
  std::int64_t narrow_full() const { return dense.narrow_full + expert.narrow_full; }
  std::int64_t narrow_shard() const { return dense.narrow_shard + expert.narrow_shard; }
};
StageElements stage_elements(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage,
                             Padding padding);

/// Elements that a rank's optimizer updates, and those of them in matrices of hidden layers.
struct UpdatedElements {
  std::int64_t all = 0;
  std::int64_t hidden = 0;
};
inline UpdatedElements updated_elements(const StageElements& e, const StateRecipe& recipe) {
  if (!recipe.shard_optimizer) return {e.full(), e.hidden_full()};
  return {ceil_div(e.shard(), recipe.outer_ranks), ceil_div(e.hidden_shard(), recipe.outer_ranks)};
}

/// Whether the last stage holds a copy of a word embedding that the head shares: the ZeRO paper's
/// arithmetic counts parameters once.
inline bool holds_tied_copy(const Problem& problem) {
  return !code_of(problem).counts_only;
}

/// Elements of a unit of zeroplan's engine, and so many more that every rank's part begins aligned.
std::int64_t padded_unit(const Problem& problem, std::int64_t elements);

/// Elements of the bucket of constant size of zeroplan's engine (CB): as asked, and so many more
/// that the part of every rank begins aligned. 0: none was asked for.
std::int64_t constant_bucket(const Problem& problem);

/// A product in the sum that one model state is.
struct StateTerm {
  Category category = Category::parameters;  // temporaries: only during the optimizer step
  std::string_view what;
  std::int64_t bytes = 0;  // of one element
  std::int64_t elements = 0;
  Bytes total() const { return Bytes{bytes * elements}; }
};

/// The terms of all model states, some of no bytes where a runtime has fewer.
using StateTerms = std::array<StateTerm, 7>;

/// What each model state of one rank of `stage` is made of on the GPU.
StateTerms state_terms(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// What an update of `count` elements, `matrices` of them in hidden matrices, reads and writes of
/// what the optimizer keeps: moments and master copy, once each way.
Bytes rewritten_states(OptimizerKind optimizer,
                       const StateRecipe& recipe,
                       std::int64_t count,
                       std::int64_t matrices);

/// Sizes of the tensors that the optimizer makes for `count` elements of one weight when it first
/// steps, in that order. `hidden_matrix`: a matrix of a hidden layer, the kind that Muon tells
/// apart.
std::vector<Bytes> moment_tensors(OptimizerKind optimizer,
                                  const StateRecipe& recipe,
                                  std::int64_t count,
                                  bool hidden_matrix);

struct ModelStates {
  Bytes parameters;
  Bytes gradients;
  Bytes master_parameters;
  Bytes optimizer_states;
  Bytes step_gradients;  // only during the optimizer step

  Bytes total() const { return parameters + gradients + master_parameters + optimizer_states; }
};

/// The sums of state_terms (what is offloaded is not counted).
ModelStates model_states(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

}  // namespace zeroplan
