// What does a rank of zeroplan's own engine hold and run? Front door: zeroplan_stage.
#include "cost_model/program/zeroplan/stage.hpp"

#include <algorithm>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/program/zeroplan/unit.hpp"

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
    add_resident(program);
    return program;
  }

 private:
  std::vector<Run> runs() const {
    std::vector<Run> list;
    if (stage_.embedding) {
      list.push_back({folded(zeroplan_embedding(s_, unit({.embedding = true})))});
    }
    if (const std::int64_t layers = layer_count(stage_); layers > 0) {
      list.push_back({folded(zeroplan_layer(s_, unit({.chunks = {{0, 1}}}))), layers});
    }
    if (stage_.head) {
      const std::int64_t rows = local_weight(inventory_.head.back(), p_).rows;
      list.push_back({folded(zeroplan_head(s_, rows, unit({.head = true})), true)});
    }
    return list;
  }

  // Buffers that hold the parameters of what this part of the model is.
  ZeroplanUnit unit(const Stage& part) const {
    const StateRecipe recipe = state_recipe(p_);
    const StageElements elements = stage_elements(p_, inventory_, part, recipe.padding);
    return {p_, Bytes{recipe.parameter_bytes * elements.full()}};
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
    const std::int64_t inputs = stage_.embedding ? 0 : chunks_in_flight(p_, rank());
    add("received inputs", inputs * program.boundary, Category::communication_buffers);
    add("received gradient", stage_.head ? Bytes{} : program.boundary,
        Category::communication_buffers);
  }

  // Of the pipeline.
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

StageProgram zeroplan_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  return Builder(problem, inventory, stage).build();
}

}  // namespace zeroplan
