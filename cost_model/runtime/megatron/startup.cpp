// Which single tensors make up what is resident, and in which order? Front door: megatron_startup.
#include <algorithm>
#include <utility>

#include "cost_model/program/moments.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {
namespace {

// One parameter as Megatron-Core holds it: fused projections are one.
struct Parameter {
  std::string_view name;
  std::int64_t elements;
  bool expert;
  std::int64_t built_bytes;  // an element, in its module
  bool hidden_matrix;        // of a layer, not of embedding or head
};

template <class Visit>
void visit_parameters(const std::vector<Weight>& weights,
                      const Problem& p,
                      const WeightInventory& inventory,
                      Visit&& visit) {
  const std::int64_t wide = state_recipe(p).parameter_bytes;
  const bool hidden = of_hidden_layer(inventory, weights);
  const bool narrows = hidden && keeps_8_bit_matrices(p);
  const std::int64_t of_matrix = narrows ? copies_of_matrix(p) : wide;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Weight& w = weights[i];
    const bool matrix = w.columns > 1;
    Parameter parameter{.name = w.module,
                        .elements = local_weight(w, p).elements(),
                        .expert = w.expert,
                        .built_bytes = matrix && !w.wide && w.module != "router" ? of_matrix : wide,
                        .hidden_matrix = hidden && matrix};
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
    visit_parameters(weights, p, inventory,
                     [&](const Parameter& parameter) { list.push_back(parameter); });
  });
  return list;
}

// What modules hold while they are built.
struct Built {
  Bytes dense, expert;

  void add(const Parameter& p) {
    (p.expert ? expert : dense) += Bytes{round_up(p.built_bytes * p.elements, allocation_unit)};
  }
  Built& operator+=(const Built& other) {
    dense += other.dense;
    expert += other.expert;
    return *this;
  }
};

Built built(const std::vector<Weight>& weights,
            const Problem& p,
            const WeightInventory& inventory) {
  Built sum;
  visit_parameters(weights, p, inventory, [&](const Parameter& parameter) { sum.add(parameter); });
  return sum;
}

// Experts have buffers of their own where other ranks divide them, which are made after those of
// the rest: modules that these took over are gone. Gradients are as large as twice the weights, so
// that is the highest, unless there are few experts; then all modules are taken to be there.
bool drops_dense_first(const Problem& p, const Built& modules) {
  const bool of_ddp = p.layout.zero <= ZeroStage::optimizer;
  return of_ddp && has_expert_buffers(p) && 3 * modules.expert >= modules.dense;
}

// Megatron-FSDP takes a model that holds no data, and makes one module at a time: less than it
// gathers in a step (core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py
// @d98e8a64dd). Without it such a model is made whole all the same (training/training.py
// to_empty_if_meta_device).
bool builds_whole(const Problem& p) {
  const bool sharded = p.layout.zero >= ZeroStage::gradients;
  return !(sharded && p.runtime.megatron.init_model_with_meta_device);
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
  std::vector<Tensor> modules[2];  // dense, expert
  Built whole;
  std::int64_t all[2] = {0, 0};  // dense, expert
  for (const Parameter& p : list) {
    all[p.expert] += p.elements;
    if (!builds_whole(problem)) continue;
    whole.add(p);
    modules[p.expert].push_back(
        w.allocate(p.name, Bytes{p.built_bytes * p.elements}, Category::parameters));
  }
  // Buffers that take the weights over are made while the modules still hold theirs.
  // Megatron-FSDP takes weights over bucket by bucket, and returns what the allocator caches then
  // (_init_each_parameter_group_buffers).
  const auto drop = [&](bool expert) {
    for (const Tensor module : std::exchange(modules[expert], {})) w.free(module);
  };
  if (is_megatron_fsdp(problem)) {
    const Bytes first = fsdp_first_bucket(problem, inventory, stage);
    w.free(w.allocate("first bucket", first, Category::parameters));
    drop(false);
    drop(true);
    startup.empties_cache = true;
  }
  if (drops_dense_first(problem, whole)) drop(false);
  for (const TensorSpec& spec : program.resident) {
    if (is_buffer(spec.category)) w.allocate(spec.name, spec.bytes, spec.category);
  }
  drop(false);
  drop(true);
  // The buffer holds the parameters in reverse; rank 0 updates its first part, whole parameters but
  // the last. Offloaded, master parameters and moments are the host's.
  const bool offloaded = problem.layout.offload == Offload::optimizer;
  std::int64_t left[2] = {ceil_div(all[0], widths.dense), ceil_div(all[1], widths.expert)};
  if (is_megatron_fsdp(problem)) {  // the first rank's parts of buckets hold no padding
    const StageElements divided = stage_elements(problem, inventory, stage, recipe.padding);
    left[0] = ceil_div(divided.dense.shard, recipe.outer_ranks);
    left[1] = ceil_div(divided.expert.shard, recipe.outer_ranks);
  }
  const auto add_states = [&](const Parameter& p, std::int64_t own) {
    left[p.expert] -= own;
    w.allocate(p.name, Bytes{recipe.master_bytes * own}, Category::master_parameters);
    add_moments(startup, problem, p.name, own, p.hidden_matrix);
  };
  for (auto p = list.rbegin(); p != list.rend() && !offloaded; ++p) {
    add_states(*p, std::min(left[p->expert], p->elements));
  }
  for (const bool expert : {false, true}) {
    const auto some = std::ranges::find(list, expert, &Parameter::expert);
    if (left[expert] > 0 && some != list.end() && !offloaded) add_states(*some, left[expert]);
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
  const std::vector<Weight>* before = nullptr;  // layers of a kind are alike
  Built of_before, modules;
  visit_weights(problem, inventory, stage, [&](const std::vector<Weight>& weights) {
    if (!builds_whole(problem)) return;
    if (&weights != before) of_before = built(weights, problem, inventory);
    before = &weights;
    modules += of_before;
  });
  if (is_megatron_fsdp(problem)) {
    Moment moment{.phase = Phase::init, .tensor = "first bucket"};
    moment.live[Category::parameters] =
        modules.dense + modules.expert + fsdp_first_bucket(problem, inventory, stage);
    return moment;
  }
  Moment moment{.phase = Phase::init, .tensor = "gradient buffer"};
  const Bytes there =
      modules.expert + (drops_dense_first(problem, modules) ? Bytes{} : modules.dense);
  moment.live[Category::parameters] = there + resident[Category::parameters];
  moment.live[Category::gradients] = resident[Category::gradients];
  return moment;
}

}  // namespace zeroplan
