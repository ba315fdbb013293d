#pragma once
// Which collectives one rank takes part in during one optimizer step, how often, and how large.
//
// Symbols in the formulas: Psi parameters of one rank before ZeRO divides them, N ranks that divide
// them, m micro-batches a step, t, c, e ranks of tensor, context and expert parallelism,
// T = s x b / c tokens of a micro-batch on one rank, h hidden size, v model chunks a rank.

#include <vector>

#include "cost_model/network/rank_groups.hpp"
#include "cost_model/program/call.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Calls of one kind, all with the same payload.
struct CollectiveLoad {
  RankGroup group;  // called_group, or some of its ranks
  Collective collective = Collective::all_reduce;
  During during = During::step;
  std::int64_t calls = 0;  // in one optimizer step
  Bytes payload;           // of one call, as in collective.hpp
  Beside beside = Beside::nothing;
  std::int64_t layers = 0;  // Call::layers

  /// Whether the other load is the same call, however often.
  bool is_like(const CollectiveLoad& other) const {
    return group == other.group && collective == other.collective && during == other.during &&
           payload == other.payload && beside == other.beside && layers == other.layers;
  }
  /// Whether anything is sent: to other ranks, at least once, and not empty.
  bool is_sent() const { return group.ranks > 1 && calls > 0 && payload > Bytes{}; }
};

/// Bytes this rank sends in one optimizer step.
Bytes sent_bytes_per_step(const CollectiveLoad& load);

/// The bytes that one chunk of a rank hands to the next: 2 T h of the residual, of which sequence
/// parallelism leaves each rank its rows.
Bytes pipeline_message(const Problem& problem);

/// Chunks of the stage that hand their result to the rank's next one, which sends nothing: the turn
/// of ZB-V.
std::int64_t turns(const Problem& problem, const Stage& stage);

/// Whether a rank sends only its part of a pipeline message, which the ranks of the next stage
/// gather from each other: the scatter/gather optimization (Narayanan et al. 2021, section 4.1).
bool scatters_messages(const Problem& problem);

/// The collectives of the passes of one rank of `stage`: the layers' and the pipeline's.
std::vector<CollectiveLoad> pass_collectives(const Problem& problem,
                                             const WeightInventory& inventory,
                                             const Stage& stage);

/// The collectives of gradients and parameters of one rank of `stage`.
std::vector<CollectiveLoad> update_collectives(const Problem& problem,
                                               const WeightInventory& inventory,
                                               const Stage& stage);

/// The collectives of one rank of `stage`, both kinds, for groups of more than one rank. Control
/// messages are left out: gradient norm, overflow flag, logged loss, shapes, routing counts.
/// Assumes a legal layout, balanced routing, and gradient accumulation as each runtime does it by
/// itself.
std::vector<CollectiveLoad> step_collectives(const Problem& problem,
                                             const WeightInventory& inventory,
                                             const Stage& stage);

}  // namespace zeroplan
