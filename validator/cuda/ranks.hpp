#pragma once
// A rank of a layout on a GPU: where it stands, with whom it talks, and its steps.

#include "validator/cuda/closing.hpp"
#include "validator/run.hpp"

namespace zeroplan::engine {

/// The communicators of one rank.
struct Groups {
  Communicator& tp;
  Communicator& dp;
  Communicator& pp;
};

/// What a run on GPUs tells beside its ranks.
struct GpuRun {
  RunReport report;
  std::vector<Closing> closings;  // by GPU
};

/// tp fastest, then dp, then pp; and back.
Place place_of(const Layout& layout, std::int64_t rank);
std::int64_t rank_of(const Layout& layout, const Place& place);

/// All steps of a rank on any device.
RankReport run_steps(const Problem& problem,
                     const Place& place,
                     Device& device,
                     const Groups& groups,
                     const RunOptions& options);

/// The options with samples, where none were given.
RunOptions with_samples(const Problem& problem, const RunOptions& options);

}  // namespace zeroplan::engine
