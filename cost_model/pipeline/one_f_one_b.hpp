#pragma once
// When the ranks of 1F1B finish, in closed form.

#include <cstdint>
#include <span>
#include <vector>

#include "cost_model/pipeline/lanes.hpp"

namespace zeroplan {

/// Neighbouring ranks of a pipeline that take the same for the one chunk that each of them holds.
template <class Seconds>
struct AlikeRanks {
  std::int64_t ranks = 1;
  Seconds forward = 0;   // of one micro-batch
  Seconds backward = 0;  // of one micro-batch
};

/// Appends to `ends` the seconds until the last pass has ended of the first of ranks[some[0]],
/// ranks[some[1]] and so on, under 1F1B whose messages take no time of their own: where sends
/// block, they are part of the passes.
/// `ranks`: all, with all their micro-batches; equal neighbours need not be given together.
void finish_one_f_one_b(std::span<const AlikeRanks<double>> ranks,
                        std::int64_t micro_batches,
                        std::span<const std::size_t> some,
                        std::vector<double>& ends);
void finish_one_f_one_b(std::span<const AlikeRanks<Lanes>> ranks,
                        std::int64_t micro_batches,
                        std::span<const std::size_t> some,
                        std::vector<Lanes>& ends);

}  // namespace zeroplan
