// Where does a micro-batch go next? Front door: next_place.
#include "cost_model/schedule/pipeline.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// Position of a chunk in the chain, and the chunk at a position.
std::int64_t position(const Pipeline& p, const Place& place) {
  switch (p.schedule) {
    case Schedule::zb_v:
      return place.chunk == 0 ? place.rank : 2 * p.ranks - 1 - place.rank;
    case Schedule::dualpipe:
      return place.chunk == 0 ? place.rank : p.ranks - 1 - place.rank;
    default:
      return place.chunk * p.ranks + place.rank;
  }
}

// Positions of the chain that `place` is part of.
std::int64_t chain_length(const Pipeline& p) {
  return p.schedule == Schedule::dualpipe ? p.ranks : p.ranks * p.chunks;
}

Place at(const Pipeline& p, std::int64_t position, std::int32_t chunk) {
  switch (p.schedule) {
    case Schedule::zb_v:
      return position < p.ranks ? Place{position, 0} : Place{2 * p.ranks - 1 - position, 1};
    case Schedule::dualpipe:
      return {chunk == 0 ? position : p.ranks - 1 - position, chunk};
    default:
      return {position % p.ranks, static_cast<std::int32_t>(position / p.ranks)};
  }
}

}  // namespace

Interleaving even_rounds(const Problem& p) {
  const std::int64_t pp = p.layout.pp;
  const std::int64_t m = forward_passes(p);
  std::int64_t rounds = std::max<std::int64_t>(1, m / pp);
  while (m % rounds != 0) --rounds;
  return {.group = m / rounds};
}

Numbers<6> numbers_of(const Pipeline& p) {
  return {static_cast<std::int64_t>(p.schedule),
          p.ranks,
          p.chunks,
          p.micro_batches,
          p.interleaving.group,
          p.interleaving.ahead};
}

Pipeline pipeline_of(const Problem& problem, std::int64_t micro_batches) {
  const Layout& l = problem.layout;
  return {.schedule = l.schedule,
          .ranks = l.pp,
          .chunks = l.schedule == Schedule::dualpipe ? 2 : l.vpp,
          .micro_batches = micro_batches,
          .interleaving = code_of(problem).interleaving(problem)};
}

std::optional<Place> next_place(const Pipeline& pipeline, const Place& place) {
  const std::int64_t next = position(pipeline, place) + 1;
  if (next == chain_length(pipeline)) return std::nullopt;
  return at(pipeline, next, place.chunk);
}

std::optional<Place> previous_place(const Pipeline& pipeline, const Place& place) {
  const std::int64_t here = position(pipeline, place);
  if (here == 0) return std::nullopt;
  return at(pipeline, here - 1, place.chunk);
}

}  // namespace zeroplan
