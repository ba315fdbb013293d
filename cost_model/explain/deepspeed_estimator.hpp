#pragma once
// What DeepSpeed's own estimator answers, for whoever wonders why zeroplan says otherwise.

#include <optional>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// The question as DeepSpeed's estimate_zero2/3_model_states_mem_needs take it. Stage 2 offloads at
/// most the optimizer.
struct EstimatorQuestion {
  ZeroStage zero = ZeroStage::gradients;  // or parameters
  Offload offload = Offload::none;        // parameters: with the optimizer
  bool zero_init = true;                  // the model is divided while it is made; stage 3 alone
  std::int64_t parameters = 0;
  std::int64_t largest_layer = 0;  // its parameters
  std::int64_t gpus_a_node = 1;
  std::int64_t nodes = 1;
  double buffer_factor = 1.5;  // of host memory
};

struct EstimatorAnswer {
  Bytes gpu;          // of each GPU
  Bytes host_a_node;  // of each node
};

/// Model states alone: no activations, no buckets, nothing gathered but the largest layer. Source:
/// deepspeedai/DeepSpeed docs/code-docs/source/memory.rst @edaa72212; its code counts 2 P + 18 P /
/// N for stage 2 where the document has 4 P + 16 P / N.
EstimatorAnswer deepspeed_estimator(const EstimatorQuestion& question);

/// The estimator's answer to a problem of DeepSpeed's: ZeRO 2 or 3 without a pipeline or tensor
/// parallelism; else nothing.
std::optional<EstimatorAnswer> deepspeed_estimator(const Problem& problem);

}  // namespace zeroplan
