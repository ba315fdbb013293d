#pragma once
// A played step through the caching allocator: what a run reserves.

#include "cost_model/memory/allocator.hpp"
#include "cost_model/program/play.hpp"

namespace zeroplan {

struct Replay {
  Bytes peak_allocated;  // sum of live blocks, as torch.cuda.max_memory_allocated counts
  Bytes peak_reserved;   // torch.cuda.max_memory_reserved
  bool out_of_memory = false;
};

/// Construction, a first step at whose end the optimizer makes its moments, and two steady steps,
/// on one stream. `states` stand for the master parameters and optimizer states of
/// `program.resident`.
Replay replay(const StageProgram& program,
              const StateTensors& states,
              const std::vector<Pass>& order,
              const AllocatorConfig& config);

}  // namespace zeroplan
