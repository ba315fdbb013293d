#pragma once
// From a plan to a run that this machine can do.

#include <string>
#include <vector>

#include "cost_model/question/problem.hpp"

namespace zeroplan::engine {

/// A smaller problem, and each change that led to it: "layers 80 -> 4".
struct Shrunk {
  Problem problem;
  std::vector<std::string> changes;
};

/// The plan as the engine executes it, at full size: what the engine does not have is left out, and
/// said. Whether the rest is legal is for first_violation to say.
Shrunk for_engine(const Problem& plan);

struct Room {
  std::int64_t ranks = 8;
  Bytes memory = 2_GiB;     // of all ranks together, under any ZeRO stage
  double step_flops = 2e9;  // of all ranks together
};

/// Shrinks the problem to the room. First fewer ranks: tensor parallelism (where 2 divides the
/// model) and pipeline parallelism of 2 at most, data parallelism of what is left. Then fewer
/// micro-batches, as many as fill the pipeline twice; then fewer layers, two a stage, of the same
/// shapes. Then, until a step has room, half the sequence (not below 64 tokens) and half of every
/// width (heads where they divide, else their width) in turn.
Shrunk shrunk(const Problem& problem, const Room& room);

}  // namespace zeroplan::engine
