#pragma once
// What a rank found, as bytes for rank 0.

#include "validator/cuda/closing.hpp"
#include "validator/rendezvous/rendezvous.hpp"
#include "validator/run.hpp"

namespace zeroplan::engine {

/// One rank's part of a run. Of parameters, only a digest of each unit travels: enough to compare.
Blob packed(const RankReport& report, const Closing& closing);

/// A rank's part of a run, read from its bytes. Throws EnvironmentError when they are cut short.
std::pair<RankReport, Closing> unpacked(const Blob& blob);

}  // namespace zeroplan::engine
