// What do a rank's passes keep alive together? Front door: InFlightCache::find_or_make.
#include "cost_model/program/in_flight_cache.hpp"

#include <algorithm>

#include "cost_model/program/fold.hpp"
#include "cost_model/program/schedule.hpp"

namespace zeroplan {

std::optional<PassBytes> RankInFlight::passes(std::span<const ChunkBytes> sizes,
                                              Bytes boundary) const {
  const std::optional<Bytes> highest = profile.highest(sizes, boundary);
  if (!highest) return std::nullopt;
  PassBytes passes;
  passes.left = profile.left(sizes, boundary);
  passes.peak = *highest;
  return passes;
}

std::optional<PassBytes> RankInFlight::passes(const StageProgram& program) const {
  std::vector<ChunkBytes> sizes;
  const auto add = [&](const Runs ChunkProgram::*runs) {
    for (const std::size_t first : firsts) {
      const ChunkProgram& chunk = program.chunks[first];
      sizes.push_back(chunk_bytes(chunk, chunk.*runs));
    }
  };
  add(&ChunkProgram::runs);
  if (!program.chunks.front().first_runs.empty()) add(&ChunkProgram::first_runs);
  return passes(sizes, program.boundary);
}

const RankInFlight& InFlightCache::find_or_make(const Problem& problem,
                                                const Stage& stage,
                                                std::int64_t rank,
                                                const StageProgram& places,
                                                FirstMicroBatch first) {
  const Pipeline p = pipeline_of(problem, representative_micro_batches(problem, rank));
  Numbers<7> key{};
  std::ranges::copy(numbers_of(p), key.begin());
  key.back() = rank;
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;

  std::vector<std::int32_t> kinds;
  std::vector<std::size_t> firsts;
  const std::vector<Stage> chunks = chunks_of(stage);
  for (const Stage& chunk : chunks) {
    const auto alike_to = std::find_if(firsts.begin(), firsts.end(), [&](std::size_t known) {
      return alike(problem.model, chunks[known], chunk);
    });
    kinds.push_back(static_cast<std::int32_t>(alike_to - firsts.begin()));
    if (alike_to == firsts.end()) firsts.push_back(kinds.size() - 1);
  }
  InFlightCounts profile(places, kinds, passes(p, rank), first);
  RankInFlight made{std::move(kinds), std::move(firsts), std::move(profile)};
  return made_.try_emplace(key, std::move(made)).first->second;
}

}  // namespace zeroplan
