// What does a rank of FSDP2 hold and run? Front door: fsdp2_stage.
#include "cost_model/program/fsdp2/stage.hpp"

#include <algorithm>

#include "cost_model/program/eager/chain.hpp"
#include "cost_model/program/fsdp2/chain.hpp"

namespace zeroplan {
namespace {

// The units of a rank. Layers of a kind are alike.
struct Units {
  Fsdp2Unit embedding, dense, moe, head;
  Fsdp2Unit root;  // what is in no other unit

  const Fsdp2Unit& of(LayerKind kind) const { return kind == LayerKind::moe ? moe : dense; }
};

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

Units units_of(const Problem& p,
               const WeightInventory& inventory,
               const Fsdp2Recipe& recipe,
               const Stage& stage) {
  const bool narrow = p.training.precision == Precision::fp8 && p.runtime.fsdp2.float8_all_gather;
  Units units{.embedding = fsdp2_unit(p, inventory.embedding, false),
              .dense = fsdp2_unit(p, inventory.dense_layer, narrow),
              .moe = fsdp2_unit(p, inventory.moe_layer, narrow),
              .head = fsdp2_unit(p, inventory.head, false)};
  if (recipe.whole_root && !pipelined(p) && stage.head) {
    units.root = merged(units.embedding, units.head);
  }
  return units;
}

// Where every Nth layer is recomputed, torchtitan wraps the Nth, the 2Nth, ...
Checkpoint checkpoint_of(const Problem& p, const Fsdp2Recipe& recipe, std::int64_t layer) {
  const std::int64_t every = p.runtime.fsdp2.selective_ac_layers;
  const bool all = p.layout.recompute != Recompute::selective || every == 0;
  return all || (layer + 1) % every == 0 ? recipe.code.style.checkpoint : Checkpoint::none;
}

std::vector<Fsdp2Link> links_of(const Problem& p,
                                const Fsdp2Recipe& recipe,
                                const Units& units,
                                const Stage& stage,
                                std::size_t chunk) {
  using Kind = EagerLink::Kind;
  const bool whole_root = !units.root.parameters.empty();
  const bool always = p.runtime.fsdp2.reshard_after_forward == Reshard::always;
  const bool never = p.layout.zero == ZeroStage::gradients || pipelined(p);
  std::vector<Fsdp2Link> links;
  if (begins_model(stage, chunk)) {
    links.push_back({{Kind::embedding}, whole_root ? nullptr : &units.embedding, never});
  }
  const LayerRange range = stage.chunks[chunk];
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const LayerKind kind = kind_of(p.model, i);
    const bool kept = never || (recipe.keeps_last_layer && !always && i + 1 == p.model.layers);
    links.push_back({{Kind::layer, kind, checkpoint_of(p, recipe, i)}, &units.of(kind), kept});
  }
  if (ends_model(stage, chunk)) {
    // A loss that runs the output layer part by part reshards it when it is done.
    const bool resharded = recipe.code.loss_parts.of_hidden() && !pipelined(p);
    const bool kept = !resharded && (never || !always);
    links.push_back({{Kind::head}, whole_root ? nullptr : &units.head, kept});
  }
  return links;
}

// What ends a step: with a pipeline all reductions, then the optimizer, then the gradients go.
Block end_of_step(const Problem& p,
                  const Fsdp2Recipe& recipe,
                  const Units& units,
                  const std::vector<std::vector<Fsdp2Link>>& chunks,
                  Bytes parameters) {
  BlockWriter w;
  const bool moved = p.layout.offload == Offload::parameters;
  std::vector<const Fsdp2Unit*> all;
  for (const std::vector<Fsdp2Link>& links : chunks) {
    for (const Fsdp2Link& link : links) {
      if (link.unit != nullptr) all.push_back(link.unit);
    }
  }
  if (pipelined(p)) {
    Bytes held;
    for (const Fsdp2Unit* unit : all) {
      for (const TensorSpec& spec : unit->parameters) w.take(fsdp2_parameter, spec.bytes);
      const GradientShard shard = moved ? GradientShard::is_added : GradientShard::is_new;
      write_reduce(w, *unit, held, shard, recipe.reduces_on_own_stream,
                   [&] { w.take(fsdp2_accumulated, unit->accumulated); });
      held = unit->reduce_input;
    }
    if (!recipe.reduces_on_own_stream) w.take(fsdp2_reduce_input, held);
  }
  if (recipe.foreach_optimizer && !moved) w.free(w.temporary("updates of all shards", parameters));
  if (!moved) {
    for (const Fsdp2Unit* unit : all) w.take(fsdp2_shard_gradient, unit->gradient);
    w.take(fsdp2_shard_gradient, units.root.gradient);
  }
  return w.finish();
}

// A checkpoint of whole parameters gathers one after the other, the largest among them.
Block full_checkpoint(const Problem& p, const Units& units, const Stage& stage) {
  BlockWriter w;
  Bytes largest = std::max(units.dense.largest, units.moe.largest);
  if (stage.embedding) largest = std::max(largest, units.embedding.largest);
  if (stage.head) largest = std::max(largest, units.head.largest);
  w.free(w.temporary("gathered parameter", p.runtime.fsdp2.full_state_dict ? largest : Bytes{}));
  return w.finish();
}

// torch pipelining makes a receive buffer for every micro-batch of the step.
Bytes receive_buffers(const Problem& p, const std::vector<ChunkProgram>& chunks, Bytes boundary) {
  std::int64_t count = 0;
  for (const ChunkProgram& chunk : chunks) count += chunk.receives + chunk.sends;
  return count * micro_batches(p) * boundary;
}

}  // namespace

StageProgram fsdp2_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  const LayerShape s = layer_shape(problem);
  const Fsdp2Recipe recipe = fsdp2_recipe(problem);
  const Units units = units_of(problem, inventory, recipe, stage);
  const ModelStates states = model_states(problem, inventory, stage);
  StageProgram program{.boundary = Bytes{round_up(s.residual().count(), allocation_unit)},
                       .borders_resident = true};

  Fsdp2Chain chain(problem, inventory, recipe, units.root);
  std::vector<std::vector<Fsdp2Link>> links;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    links.push_back(links_of(problem, recipe, units, stage, i));
    ChunkProgram chunk{.runs = chain.runs(links.back(), MicroBatch::later),
                       .first_runs = chain.runs(links.back(), MicroBatch::first)};
    chunk.receives = !begins_model(stage, i);
    chunk.sends = chunk.keeps_output = !ends_model(stage, i);
    program.chunks.push_back(std::move(chunk));
  }
  program.step = end_of_step(problem, recipe, units, links, states.parameters);

  program.checkpoint = full_checkpoint(problem, units, stage);

  add_resident(program, "sharded parameters", states.parameters, Category::parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  add_plain_buffers(program, problem, inventory, stage);
  if (recipe.casts_rotary) {
    // Cosine and sine stand there for each feature, not for each pair.
    add_resident(program, "rest of the rotary table",
                 Bytes{4 * problem.training.sequence_length * problem.model.attention.head_dim},
                 Category::workspace);
  }
  add_resident(program, "receive buffers",
               receive_buffers(problem, program.chunks, program.boundary),
               Category::communication_buffers);
  return program;
}

}  // namespace zeroplan
