// How does nanotron split layers into chunks? Front door: nanotron_split.
//
// Source: models/base.py build_model: blocks go to a rank until their matrix products reach its
// part. The last rank may have the output layer alone.
#include "cost_model/runtime/nanotron/code.hpp"

#include "cost_model/rank/stages.hpp"

namespace zeroplan {

std::vector<std::int64_t> nanotron_split(const Problem& problem) {
  const ModelSpec& m = problem.model;
  const std::int64_t pp = problem.layout.pp;
  if (m.layers < pp) return {};
  const std::int64_t layer =
      4 * query_width(m.attention) * m.hidden_size + 3 * m.mlp.intermediate_size * m.hidden_size;
  const std::int64_t total = m.layers * layer + m.vocab_size * m.hidden_size;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(pp), 0);
  std::int64_t rank = 0;
  std::int64_t cost = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    cost += layer;
    ++sizes[static_cast<std::size_t>(rank)];
    if (rank + 1 < pp && cost * pp >= total * (rank + 1)) ++rank;
  }
  return rank + 1 == pp ? sizes : std::vector<std::int64_t>{};
}

}  // namespace zeroplan
