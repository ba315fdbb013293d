#pragma once
// A question around one that was run.

#include "cost_model/question/problem.hpp"
#include "planner/request.hpp"

namespace zeroplan::accuracy {

/// Asks for any layout of the same model, GPUs and runtime, trained alike.
inline Request request_around(const Problem& p) {
  Request request{.model = p.model, .cluster = p.cluster, .runtime = p.runtime};
  request.global_batch = p.training.global_batch;
  request.sequence_length = p.training.sequence_length;
  request.precision = p.training.precision;
  request.optimizer = p.training.optimizer;
  request.attention = p.training.attention;
  return request;
}

}  // namespace zeroplan::accuracy
