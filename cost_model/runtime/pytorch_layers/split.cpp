// How does torchtitan split layers into chunks? Front door: torchtitan_split.
#include "cost_model/runtime/pytorch_layers/split.hpp"

#include "cost_model/rank/stages.hpp"

namespace zeroplan {

std::vector<std::int64_t> torchtitan_split(const Problem& problem) {
  const std::int64_t chunks = problem.layout.pp * problem.layout.vpp;
  if (chunks == 1) return {problem.model.layers};
  if (problem.model.layers + 2 < chunks) return {};
  std::vector<std::int64_t> sizes = front_loaded(problem.model.layers + 2, chunks);
  --sizes.front();
  --sizes.back();
  return sizes;
}

}  // namespace zeroplan
