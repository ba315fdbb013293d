// How long do copies around sharded collectives take? Front door: sharding_copies_seconds.
#include "cost_model/pipeline/sharding_copies.hpp"

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

double sharding_copies_seconds(const Problem& problem, std::int64_t elements, During during) {
  const Layout& l = problem.layout;
  if (problem.runtime.kind != Runtime::fsdp2 || l.dp * l.cp == 1 || l.pp > 1) return 0;
  const std::int64_t gathered = problem.runtime.fsdp2.mixed_precision_bytes;
  const std::int64_t reduced = reduced_bytes(problem);
  const bool gathers = during == During::forward || l.zero == ZeroStage::parameters;
  const std::int64_t bytes =
      (gathers ? 2 * gathered : 0) + (during == During::backward ? gathered + reduced : 0);
  return memory_bound_seconds(Bytes{bytes * elements}, Access::streaming, problem.cluster.gpu);
}

}  // namespace zeroplan
