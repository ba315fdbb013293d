// What does a rank of zeroplan's own engine hold and run? Front door: zeroplan_stage.
#include "cost_model/runtime/zeroplan/stage.hpp"

#include <algorithm>

#include "cost_model/program/schedule.hpp"
#include "cost_model/runtime/zeroplan/unit.hpp"
#include "cost_model/states/buffers.hpp"

namespace zeroplan {
namespace {

class Builder {
 public:
  Builder(const Problem& problem, const WeightInventory& inventory, const Stage& stage)
      : p_(problem), inventory_(inventory), stage_(stage), s_(layer_shape(problem)) {}

  StageProgram build() const {
    StageProgram program{.boundary = Bytes{round_up(s_.residual().count(), allocation_unit)},
                         .borders_resident = true};
    program.chunks.push_back(
        {.runs = runs(), .receives = !stage_.embedding, .sends = !stage_.head});
    program.step = step();
    add_resident(program);
    return program;
  }

 private:
  // The end of a step, in which all is updated in place.
  Block step() const {
    BlockWriter w;
    if (stage_.embedding) {
      unit({words_bytes(), {}, {}}).end_step(w, 1);
      unit({positions_bytes(), {}, {}}).end_step(w, 1);
    }
    unit({layer_bytes(), {}, {}}).end_step(w, layer_count(stage_));
    unit({head_bytes(), {}, {}}).end_step(w, 1);
    if (holds_copy()) unit({words_bytes(), {}, {}}).end_step(w, 1);
    if (p_.model.tied_embeddings && stage_.embedding != stage_.head) {
      unit({words_bytes(), {}, {}}).add_ends(w);
    }
    return w.finish();
  }

  Runs runs() const {
    Runs list;
    const std::int64_t rows = local_weight(inventory_.embedding.front(), p_).rows;
    const std::int64_t layers = layer_count(stage_);
    const bool shared = p_.model.tied_embeddings && stage_.embedding && stage_.head;
    const Bytes embedding = last_embedding_bytes();
    const Bytes layer = layer_bytes();
    const Bytes head = head_bytes();
    if (stage_.embedding) {
      const Bytes after = layers > 0 ? layer : head;
      const Bytes words = words_bytes();
      const Bytes positions = positions_bytes();
      const ZeroplanUnit first = unit({words, {}, positions > Bytes{} ? positions : after, shared});
      list.push_back(
          {folded(zeroplan_embedding(s_, rows, first, unit({positions, words, after})))});
    }
    const auto add_layers = [&](std::int64_t count, Bytes before, Bytes after) {
      if (count <= 0) return;
      list.push_back({folded(zeroplan_layer(s_, unit({layer, before, after}))), count});
    };
    const ZeroplanSettings& set = p_.runtime.zeroplan;
    if (!set.prefetch && !set.overlap_comm) {
      add_layers(layers, {}, {});  // neighbours do not matter
    } else if (layers == 1) {
      add_layers(1, embedding, head);
    } else {
      add_layers(std::min<std::int64_t>(layers, 1), embedding, layer);
      add_layers(layers - 2, layer, layer);
      add_layers(std::min<std::int64_t>(layers, 1), layer, head);
    }
    if (stage_.head) {
      const Bytes before = layers > 0 ? layer : embedding;
      const ZeroplanUnit table = unit({words_bytes(), {}, {}, shared});
      list.push_back({folded(zeroplan_head(s_, rows, unit({head, before, {}}), table), true)});
    }
    return list;
  }

  ZeroplanUnit unit(const ZeroplanPlace& place) const { return {p_, place}; }

  bool holds_copy() const { return p_.model.tied_embeddings && stage_.head && !stage_.embedding; }
  Bytes words_bytes() const { return unit_bytes(inventory_.embedding.front()); }
  Bytes positions_bytes() const {
    return p_.model.learned_positions > 0 ? unit_bytes(inventory_.embedding.back()) : Bytes{};
  }
  // The parameters of that unit of the embedding which is the layers' neighbour.
  Bytes last_embedding_bytes() const {
    if (!stage_.embedding) return {};
    return p_.model.learned_positions > 0 ? positions_bytes() : words_bytes();
  }
  Bytes layer_bytes() const { return bytes({.chunks = {{0, 1}}}); }
  Bytes head_bytes() const {
    return stage_.head ? bytes({.embedding = true, .head = true}) - bytes({.embedding = true})
                       : Bytes{};
  }

  // The parameters of a weight that is a unit by itself, padding included.
  Bytes unit_bytes(const Weight& weight) const {
    const StateRecipe recipe = state_recipe(p_);
    return Bytes{recipe.parameter_bytes * padded_unit(p_, local_weight(weight, p_).elements())};
  }
  // The parameters of a part of the model.
  Bytes bytes(const Stage& part) const {
    const StateRecipe recipe = state_recipe(p_);
    return Bytes{recipe.parameter_bytes *
                 stage_elements(p_, inventory_, part, recipe.padding).full()};
  }

  void add_resident(StageProgram& program) const {
    const auto add = [&](std::string_view name, Bytes bytes, Category category) {
      if (bytes == Bytes{}) return;
      program.resident.push_back({name, Bytes{round_up(bytes.count(), allocation_unit)}, category});
    };
    const ModelStates states = model_states(p_, inventory_, stage_);
    add("parameters", states.parameters, Category::parameters);
    add("gradients", states.gradients, Category::gradients);
    add("master parameters", states.master_parameters, Category::master_parameters);
    add("optimizer states", states.optimizer_states, Category::optimizer_states);
    add("workspace", workspace(p_, inventory_, stage_), Category::workspace);
    add_constant_buffers(add);
    const bool copied = copies_checkpoints(p_) && layer_count(stage_) > 0;
    const std::int64_t in_flight = copied ? 1 : chunks_in_flight(p_, rank());
    const std::int64_t inputs = stage_.embedding ? 0 : in_flight;
    add("received inputs", inputs * program.boundary, Category::communication_buffers);
    add("received gradient", stage_.head ? Bytes{} : program.boundary,
        Category::communication_buffers);
  }

  // Buffers that settings ask for: checkpoints (MD), and a bucket of gradients (MD, CB).
  template <class Add>
  void add_constant_buffers(const Add& add) const {
    const ZeroplanSettings& set = p_.runtime.zeroplan;
    if (set.contiguous_memory_optimization && copies_checkpoints(p_)) {
      const Bytes each{round_up(checkpoint_copy(s_).count(), allocation_unit)};
      add("contiguous checkpoints", layer_count(stage_) * chunks_in_flight(p_, rank()) * each,
          Category::activations);
    }
    if (p_.layout.zero < ZeroStage::gradients) return;
    Bytes bucket;
    if (set.constant_buffers()) {
      bucket = Bytes{state_recipe(p_).gradient_bytes * constant_bucket(p_)};
    } else if (set.contiguous_memory_optimization) {
      bucket = head_bytes();
      if (stage_.embedding || holds_copy()) bucket = std::max(bucket, words_bytes());
      if (stage_.embedding) bucket = std::max(bucket, positions_bytes());
      if (layer_count(stage_) > 0) bucket = std::max(bucket, layer_bytes());
    }
    add("bucket of gradients", bucket, Category::communication_buffers);
  }

  // The rank of this stage in the pipeline.
  std::int64_t rank() const {
    const std::vector<Stage> all = stages(p_);
    return std::find(all.begin(), all.end(), stage_) - all.begin();
  }

  const Problem& p_;
  const WeightInventory& inventory_;
  const Stage& stage_;
  LayerShape s_;
};

}  // namespace

bool copies_checkpoints(const Problem& problem) {
  const ZeroplanSettings& set = problem.runtime.zeroplan;
  const bool divides = set.partition_activations && problem.layout.tp > 1;
  return problem.layout.recompute == Recompute::full &&
         (divides || set.contiguous_memory_optimization);
}

Bytes checkpoint_copy(const LayerShape& shape) {
  const bool divides = shape.problem.runtime.zeroplan.partition_activations;
  return Bytes{shape.residual().count() / (divides ? shape.problem.layout.tp : 1)};
}

Block zeroplan_block(const Problem& problem,
                     const WeightInventory& inventory,
                     BlockKind block,
                     LayerKind,
                     RepeatSet policy) {
  Problem recomputing = problem;
  recomputing.layout.recompute = policy == 0 ? Recompute::none : Recompute::full;
  const LayerShape shape = layer_shape(recomputing);
  const std::int64_t rows = local_weight(inventory.embedding.front(), problem).rows;
  const ZeroplanUnit unit(recomputing, {});
  switch (block) {
    case BlockKind::embedding:
      return zeroplan_embedding(shape, rows, unit, unit);
    case BlockKind::layer:
      return zeroplan_layer(shape, unit);
    case BlockKind::head:
    case BlockKind::mtp_input:  // the engine trains none
      break;
  }
  return zeroplan_head(shape, rows, unit, unit);
}

StageProgram zeroplan_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  return Builder(problem, inventory, stage).build();
}

}  // namespace zeroplan
