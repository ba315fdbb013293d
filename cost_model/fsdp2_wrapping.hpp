#pragma once
// Which parameters FSDP2 gathers together, which stay gathered, and in which format.

#include "cost_model/problem.hpp"

namespace zeroplan {

/// Whether embedding, final norm and head are one unit, the root's, which is never resharded: where
/// they are tied, in torchtitan before 83e694105, and in Hugging Face's layers. Else the embedding
/// is a unit, and norm and head are another.
bool joins_ends(const Problem& problem);

/// Whether the last layer stays gathered from forward to backward pass unless all are resharded: in
/// torchtitan before 83e694105, and in Hugging Face's layers.
bool keeps_last_layer(const Problem& problem);

/// Whether matrices of the layers are gathered in one byte an element: torchtitan has 8-bit linears
/// only where it trains in fp8 (components/quantization/float8.py, enable_fsdp_float8_all_gather).
bool gathers_in_8_bits(const Problem& problem);

}  // namespace zeroplan
