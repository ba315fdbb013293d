#pragma once
// Which matrix products one rank computes for one micro-batch.

#include <vector>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan {

/// The linear that this matrix (no norm, no bias) is, or is part of: Megatron-Core joins the
/// linears of a module (queries, keys and values; gate and up), the others run each alone.
Module linear_of(const Problem& problem, const Weight& weight);

/// The GEMMs of one layer but core attention: for each linear the forward product and those of the
/// input's and the weight's gradient, in this order. Replicated linears (router, MLA's
/// down-projections) work on the tokens that sequence parallelism leaves the rank.
std::vector<Gemm> layer_gemms(const Problem& problem,
                              LayerKind kind,
                              LayerPart part = LayerPart::whole);

/// The GEMMs of the projection of one multi-token-prediction module, in the order of layer_gemms.
std::vector<Gemm> mtp_projection_gemms(const Problem& problem);

/// The GEMMs of the output head, tied or not, and of the projection before it if any, in the order
/// of layer_gemms: of one part of the tokens, where the loss runs them part by part
/// (loss_parts.hpp).
std::vector<Gemm> head_gemms(const Problem& problem);

}  // namespace zeroplan
