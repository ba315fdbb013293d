// What does the runtime allocate around the layers? Front door: communication_buffers.
#include "cost_model/states/buffers.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view of_cublas = "cuBLAS";

}  // namespace

Bytes communication_buffers(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  return code_of(problem).held_buffers(problem, inventory, stage);
}

Bytes no_buffers(const Problem&, const WeightInventory&, const Stage&) {
  return {};
}

Workspace cublas_workspace(const Problem& problem) {
  const bool hopper = problem.cluster.gpu.compute_capability >= 90;
  return {of_cublas, 2 * (hopper ? 32_MiB : Bytes{8320 * 1024})};
}

std::vector<Workspace> cublas_alone(const Problem& problem, const WeightInventory&, const Stage&) {
  return {cublas_workspace(problem)};
}

std::vector<Workspace> workspaces(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage) {
  return code_of(problem).workspaces(problem, inventory, stage);
}

Bytes workspace(const Problem& problem, const WeightInventory& inventory, const Stage& stage) {
  Bytes total;
  for (const Workspace& w : workspaces(problem, inventory, stage)) total += w.bytes;
  return total;
}

Bytes unseen_workspace(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  Bytes total;
  for (const Workspace& w : workspaces(problem, inventory, stage)) {
    if (w.name == of_cublas) total += w.bytes;
  }
  return total;
}

}  // namespace zeroplan
