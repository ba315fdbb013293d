// Which single tensors make up what is resident, and in which order? Front door: megatron_startup.
#include <algorithm>

#include "cost_model/program/megatron/stage.hpp"
#include "cost_model/program/moments.hpp"

namespace zeroplan {
namespace {

// One parameter as Megatron-Core holds it: fused projections are one.
struct Parameter {
  std::string_view name;
  std::int64_t elements;
  bool expert;
  bool matrix = false;
  bool hidden = false;  // of a hidden layer
};

template <class Visit>
void visit_parameters(const std::vector<Weight>& weights, const Problem& p, Visit&& visit) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    Parameter parameter{w.module, local_weight(w, p).elements(), w.expert, w.columns > 1};
    const auto fused = [&](const Weight& next) {
      return w.columns > 1 && next.module == w.module && next.expert == w.expert;
    };
    while (i + 1 < weights.size() && fused(weights[i + 1])) {
      parameter.elements += local_weight(weights[++i], p).elements();
    }
    visit(parameter);
  }
}

std::vector<Parameter> parameters(const Problem& p,
                                  const WeightInventory& inventory,
                                  const Stage& stage) {
  std::vector<Parameter> list;
  visit_weights(p, inventory, stage, [&](const std::vector<Weight>& weights) {
    const bool hidden = of_hidden_layer(inventory, weights);
    visit_parameters(weights, p, [&](const Parameter& parameter) {
      list.push_back(parameter);
      list.back().hidden = hidden;
    });
  });
  return list;
}

Bytes module_bytes(const std::vector<Weight>& weights, const Problem& p, std::int64_t of_element) {
  Bytes sum;
  visit_parameters(weights, p, [&](const Parameter& parameter) {
    sum += Bytes{round_up(of_element * parameter.elements, allocation_unit)};
  });
  return sum;
}

bool is_buffer(Category c) {
  return c == Category::parameters || c == Category::gradients;
}
bool is_state(Category c) {
  return c == Category::master_parameters || c == Category::optimizer_states;
}

}  // namespace

Startup megatron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program) {
  const StateRecipe recipe = state_recipe(problem);
  const ShardWidths widths = recipe.shard_optimizer ? shard_widths(problem) : ShardWidths{};
  const std::vector<Parameter> list = parameters(problem, inventory, stage);
  Startup startup;
  BlockWriter w;
  std::vector<Tensor> modules;
  std::int64_t all[2] = {0, 0};  // dense, expert
  for (const Parameter& p : list) {
    modules.push_back(
        w.allocate(p.name, Bytes{recipe.parameter_bytes * p.elements}, Category::parameters));
    all[p.expert] += p.elements;
  }
  // The buffers that take the weights over are made while the modules still hold theirs.
  for (const TensorSpec& spec : program.resident) {
    if (is_buffer(spec.category)) w.allocate(spec.name, spec.bytes, spec.category);
  }
  for (const Tensor module : modules) w.free(module);
  // The buffer holds the parameters in reverse; rank 0 updates its first part, whole parameters but
  // the last. Offloaded, master parameters and moments are the host's.
  const bool offloaded = problem.layout.offload == Offload::optimizer;
  std::int64_t left[2] = {ceil_div(all[0], widths.dense), ceil_div(all[1], widths.expert)};
  for (auto p = list.rbegin(); p != list.rend() && !offloaded; ++p) {
    const std::int64_t own = std::min(left[p->expert], p->elements);
    left[p->expert] -= own;
    w.allocate(p->name, Bytes{recipe.master_bytes * own}, Category::master_parameters);
    add_moments(startup, problem, p->name, own, p->matrix && p->hidden);
  }
  for (const TensorSpec& spec : program.resident) {
    if (!is_buffer(spec.category) && !is_state(spec.category)) {
      w.allocate(spec.name, spec.bytes, spec.category);
    }
  }
  startup.construction = w.finish();
  if (problem.training.optimizer == OptimizerKind::adam) startup.loading = startup.moments;
  return startup;
}

Moment megatron_construction(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage,
                             const MemoryBreakdown& resident) {
  const std::int64_t of_element = state_recipe(problem).parameter_bytes;
  const std::vector<Weight>* before = nullptr;  // layers of a kind are alike
  Bytes of_before, modules;
  visit_weights(problem, inventory, stage, [&](const std::vector<Weight>& weights) {
    if (&weights != before) of_before = module_bytes(weights, problem, of_element);
    before = &weights;
    modules += of_before;
  });
  Moment moment{.phase = Phase::init, .tensor = "gradient buffer"};
  moment.live[Category::parameters] = modules + resident[Category::parameters];
  moment.live[Category::gradients] = resident[Category::gradients];
  return moment;
}

}  // namespace zeroplan
