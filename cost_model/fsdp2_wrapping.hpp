#pragma once
// Which parameters FSDP2 gathers together, and which of them stay gathered.

#include "cost_model/problem.hpp"

namespace zeroplan {

/// Whether embedding, final norm and head are one unit, the root's, which is never resharded: where
/// they are tied, in torchtitan before 83e694105, and in Hugging Face's layers. Else the embedding
/// is a unit, and norm and head are another.
bool joins_ends(const Problem& problem);

/// Whether the last layer stays gathered from forward to backward pass unless all are resharded: in
/// torchtitan before 83e694105, and in Hugging Face's layers.
bool keeps_last_layer(const Problem& problem);

}  // namespace zeroplan
