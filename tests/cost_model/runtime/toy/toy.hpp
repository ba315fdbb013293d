#pragma once
// A runtime that nobody has: what somebody writes who adds one.
//
// Each rank holds 16-bit parameters and gradients and an fp32 optimizer, which ZeRO 1 divides. A
// layer saves four residuals a token in its forward pass and frees them in its backward pass. After
// the last micro-batch gradients are reduced, one step is taken, parameters are gathered. Nothing
// overlaps, and there is no tensor parallelism.

#include "cost_model/legality/legality.hpp"

namespace zeroplan::tests {

extern const RuntimeCode toy_code;

}  // namespace zeroplan::tests
