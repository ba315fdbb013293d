// How much of the host's memory does a rank take? Front door: host_memory.
#include "cost_model/answer/host_memory.hpp"

#include "cost_model/states/host_tensors.hpp"

namespace zeroplan {
HostMemory host_memory(const Problem& p,
                       const WeightInventory& inventory,
                       const Stage& stage,
                       std::int64_t index) {
  HostMemory host{.activations = code_of(p).activations_on_host(p, stage, index)};
  const bool parameters = p.layout.offload == Offload::parameters;
  if (!parameters && p.layout.offload != Offload::optimizer) return host;

  Problem on_gpu = p;
  on_gpu.layout.offload = Offload::none;
  const ModelStates states = model_states(on_gpu, inventory, stage);
  const StateRecipe recipe = state_recipe(p);
  const StageElements e = stage_elements(p, inventory, stage, recipe.padding);
  const std::int64_t updated = updated_elements(e, recipe).all;
  host.master_parameters = states.master_parameters;
  host.optimizer_states = states.optimizer_states;
  if (parameters) host.parameters = states.parameters;
  const HostTensors beside = code_of(p).on_host(p, inventory, stage, updated);
  host.gradients = beside.gradients;
  host.staging = beside.staging;
  return host;
}

}  // namespace zeroplan
