// How much of the host's memory does a rank take? Front door: host_memory.
#include "cost_model/answer/host_memory.hpp"

#include "cost_model/program/layer_shape.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/states/host_tensors.hpp"

namespace zeroplan {
namespace {

// ZeRO-R's checkpoints of Megatron-DeepSpeed's layers: one a layer and micro-batch in flight.
Bytes checkpoints(const Problem& p, const Stage& stage, std::int64_t index) {
  const bool kept =
      p.layout.recompute == Recompute::full && runs_megatron_layers(p) && checkpoints_on_host(p);
  if (!kept) return {};
  const std::int64_t parts = p.runtime.deepspeed.partition_activations ? p.layout.tp : 1;
  return layer_count(stage) * chunks_in_flight(p, index) *
         Bytes{ceil_div(layer_shape(p).residual().count(), parts)};
}

}  // namespace

HostMemory host_memory(const Problem& p,
                       const WeightInventory& inventory,
                       const Stage& stage,
                       std::int64_t index) {
  HostMemory host{.activations = checkpoints(p, stage, index)};
  const bool parameters = p.layout.offload == Offload::parameters;
  if (!parameters && p.layout.offload != Offload::optimizer) return host;

  Problem on_gpu = p;
  on_gpu.layout.offload = Offload::none;
  const ModelStates states = model_states(on_gpu, inventory, stage);
  const StateRecipe recipe = state_recipe(p);
  const StageElements e = stage_elements(p, inventory, stage, recipe.padding);
  const std::int64_t updated = recipe.shard_optimizer ? e.shard() : e.full();
  host.master_parameters = states.master_parameters;
  host.optimizer_states = states.optimizer_states;
  if (parameters) host.parameters = states.parameters;
  const HostTensors beside = code_of(p).on_host(p, inventory, stage, updated);
  host.gradients = beside.gradients;
  host.staging = beside.staging;
  return host;
}

}  // namespace zeroplan
