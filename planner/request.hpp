#pragma once
// What a person asks: some fields of a layout given, the rest left to the planner.

#include <optional>
#include <string>
#include <vector>

#include "cost_model/legality.hpp"
#include "cost_model/problem.hpp"

namespace zeroplan {

/// Empty optionals are the planner's to choose; what is given is never changed.
struct Request {
  ModelSpec model;
  ClusterSpec cluster;
  RuntimeSpec runtime;
  std::optional<std::int64_t> tp, pp, vpp, cp, ep, etp, hsdp, micro_batch, global_batch,
      sequence_length;
  std::optional<ZeroStage> zero;
  std::optional<bool> sequence_parallel;
  std::optional<Schedule> schedule;
  std::optional<Recompute> recompute;
  std::optional<Precision> precision;
  OptimizerKind optimizer = OptimizerKind::adam;
  AttentionKernel attention = AttentionKernel::flash;
  Offload offload = Offload::none;
};

/// The values the planner tries for each field that was not given; one value where it was.
struct LayoutSpace {
  std::vector<std::int64_t> tp, pp, cp, ep;
  std::vector<bool> whole_experts;  // etp 1; else etp = tp
  std::vector<ZeroStage> zero;
  std::vector<Recompute> recompute;
};

LayoutSpace layout_space(const Request& request);

/// One point of the space.
struct LayoutChoice {
  std::int64_t tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  ZeroStage zero = ZeroStage::none;
  Recompute recompute = Recompute::none;
};

/// The whole problem for one point: dp from the GPU count, defaults for what is neither given nor
/// searched, and for Megatron-Core an uneven stage split where an even one does not exist and none
/// is given.
Problem complete(const Request& request, const LayoutChoice& choice);

/// Tokens of one optimizer step that the default global batch comes nearest to.
inline constexpr std::int64_t default_batch_tokens = 4'000'000;

/// What was assumed in completing the request, for the report: one sentence each.
std::vector<std::string> assumptions(const Request& request, const Problem& problem);

/// Names of the layout fields that the planner chose.
std::vector<std::string> chosen_fields(const Request& request, const Problem& problem);

}  // namespace zeroplan
