// How large are the model states of a rank? Front door: model_states.
#include "cost_model/states/model_states.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/states/divided_buckets.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

// Megatron-Core core/optimizer/param_layout.py: tensors start at multiples of 64 elements, the
// buffer ends at a multiple of lcm(N, 128). Without gradient overlap there is one bucket.
constexpr std::int64_t tensor_alignment = 64;
constexpr std::int64_t buffer_alignment = 128;
// zeroplan's engine: 512 bytes of bf16 (validator/zero/divided_unit.cpp).
constexpr std::int64_t unit_alignment = 256;

// What one tensor adds, its own padding included.
void add_tensor(const Problem& problem,
                ElementCount& count,
                const LocalWeight& w,
                std::int64_t width,
                Padding padding) {
  std::int64_t full = w.elements();
  std::int64_t shard = 0;
  switch (padding) {
    case Padding::none:
    case Padding::flat_group:
    case Padding::each_unit:
    case Padding::divided_buckets:
      break;
    case Padding::aligned_buffer:
      full = w.copies * round_up(w.rows * w.columns, tensor_alignment);
      break;
    case Padding::each_tensor:
      shard = w.copies * ceil_div(w.rows * w.columns, width);
      break;
    case Padding::first_dimension:
      shard = first_dimension_shard(problem, w, width);
      break;
  }
  count.full += full;
  count.shard += shard;
}

// The padding of the buffer as a whole; the shard where it is a plain share of that buffer.
void close_buffer(ElementCount& count, std::int64_t width, Padding padding) {
  switch (padding) {
    case Padding::each_tensor:
    case Padding::first_dimension:
      return;
    case Padding::none:
    case Padding::each_unit:  // each was closed by itself
    case Padding::divided_buckets:
      break;
    case Padding::flat_group:
      count.full = round_up(count.full, 2 * width);
      break;
    case Padding::aligned_buffer:
      count.full = round_up(count.full, std::lcm(width, buffer_alignment));
      break;
  }
  count.shard = ceil_div(count.full, width);
}

// Optimizer states of `count` elements, `matrices` of them in hidden matrices.
// adam: two moments. adam8bit: two one-byte moments and two fp32 scales a block of 256 elements
// (bitsandbytes functional.py, blockwise quantisation). sgd: momentum. muon: momentum for hidden
// matrices, Adam for embeddings, head and vectors (Jordan et al. 2024).
std::array<StateTerm, 2> moments(OptimizerKind optimizer,
                                 const StateRecipe& recipe,
                                 std::int64_t count,
                                 std::int64_t matrices) {
  constexpr Category states = Category::optimizer_states;
  const std::int64_t first = recipe.first_moment_bytes;
  const std::int64_t second = recipe.second_moment_bytes;
  switch (optimizer) {
    case OptimizerKind::adam:
      return {{{states, "first moments", first, count}, {states, "second moments", second, count}}};
    case OptimizerKind::adam8bit:
      return {{{states, "two 8-bit moments", 2, count},
               {states, "two fp32 scales for each 256 elements", 8, ceil_div(count, 256)}}};
    case OptimizerKind::sgd:
      return {{{states, "momentum", first, count}, {}}};
    case OptimizerKind::muon:
      return {{{states, "momentum", first, count},
               {states, "second moments of all but hidden matrices", second, count - matrices}}};
  }
  return {};
}

}  // namespace

Bytes rewritten_states(OptimizerKind optimizer,
                       const StateRecipe& recipe,
                       std::int64_t count,
                       std::int64_t matrices) {
  Bytes kept{recipe.master_bytes * count};
  for (const StateTerm& term : moments(optimizer, recipe, count, matrices)) kept += term.total();
  return 2 * kept;
}

std::vector<Bytes> moment_tensors(OptimizerKind optimizer,
                                  const StateRecipe& recipe,
                                  std::int64_t count,
                                  bool hidden_matrix) {
  const int tensors = optimizer == OptimizerKind::adam8bit ? 2 : 1;  // of each term
  std::vector<Bytes> sizes;
  for (const StateTerm& term : moments(optimizer, recipe, count, hidden_matrix ? count : 0)) {
    if (term.total() == Bytes{}) continue;
    sizes.insert(sizes.end(), static_cast<std::size_t>(tensors),
                 Bytes{term.total().count() / tensors});
  }
  return sizes;
}

WeightInventory weight_inventory(const ModelSpec& model) {
  WeightInventory inventory{.embedding = embedding_weights(model), .head = head_weights(model)};
  for (const LayerKind kind : used_kinds(model)) {
    inventory.layers[kind] = layer_weights(model, kind);
  }
  if (model.tied_embeddings) {
    inventory.tied_head.push_back(inventory.embedding.front());
  } else {
    inventory.mtp_embedding = inventory.embedding;
  }
  inventory.mtp = mtp_module_weights(model);
  inventory.mtp_ends = mtp_end_weights(model);
  return inventory;
}

bool of_hidden_layer(const WeightInventory& inventory, const std::vector<Weight>& weights) {
  const auto is = [&](const std::vector<Weight>& layer) { return &layer == &weights; };
  return std::ranges::any_of(inventory.layers, is) || is(inventory.mtp);
}

LocalWeight local_weight(const Weight& weight, const Problem& problem) {
  const Layout& l = problem.layout;
  const std::int64_t split = weight.expert ? l.etp : l.tp;
  LocalWeight local{weight.rows, weight.columns, weight.copies};
  if (weight.expert) local.copies = ceil_div(weight.copies, l.ep);
  switch (weight.split) {
    case Split::replicated:
      break;
    case Split::rows:
      local.rows = ceil_div(weight.rows, split);
      break;
    case Split::columns:
      local.columns = ceil_div(weight.columns, split);
      break;
    case Split::vocabulary:
      local.rows =
          ceil_div(round_up(weight.rows, code_of(problem).vocabulary_unit(problem)), split);
      break;
  }
  return local;
}

std::int64_t first_dimension_shard(const Problem& problem,
                                   const LocalWeight& w,
                                   std::int64_t width) {
  const bool enough = w.copies >= width || !cuts_expert_rows(problem);
  return w.copies > 1 && enough ? ceil_div(w.copies, width) * w.rows * w.columns
                                : w.copies * ceil_div(w.rows, width) * w.columns;
}

std::int64_t local_elements(const std::vector<Weight>& weights, const Problem& problem) {
  std::int64_t sum = 0;
  for (const Weight& w : weights) sum += local_weight(w, problem).elements();
  return sum;
}

StageElements stage_elements(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage,
                             Padding padding) {
  const ShardWidths widths = shard_widths(problem);
  StageElements total;
  const auto add = [&](const std::vector<Weight>& weights, std::int64_t times, bool hidden) {
    if (times == 0) return;
    StageElements block;
    for (const Weight& w : weights) {
      const LocalWeight local = local_weight(w, problem);
      const std::int64_t width = w.expert ? widths.expert : widths.dense;
      ElementCount& count = w.expert ? block.expert : block.dense;
      add_tensor(problem, count, local, width, padding);
      if (hidden && w.columns > 1) {
        count.hidden_full += local.elements();
        count.hidden_shard += ceil_div(local.elements(), width);
        count.narrow_full += w.wide ? 0 : local.elements();
        count.narrow_shard += w.wide ? 0 : ceil_div(local.elements(), width);
      }
    }
    if (padding == Padding::each_unit) {
      block.dense.full = padded_unit(problem, block.dense.full);
    }
    if (padding == Padding::divided_buckets) {
      const auto [dense, expert] = bucket_elements(problem, weights);
      block.dense.full = dense;
      block.expert.full = expert;
    }
    for (auto [to, from] :
         {std::pair{&total.dense, &block.dense}, {&total.expert, &block.expert}}) {
      to->full += times * from->full;
      to->shard += times * from->shard;
      to->hidden_full += times * from->hidden_full;
      to->hidden_shard += times * from->hidden_shard;
      to->narrow_full += times * from->narrow_full;
      to->narrow_shard += times * from->narrow_shard;
    }
  };
  const ByKind<std::int64_t> counts = layers_by_kind(problem.model, stage);
  for (const LayerKind kind : all_layer_kinds) add(inventory.layer(kind), counts[kind], true);
  // DualPipe ranks at the two ends hold embedding and head; on one rank a tied head is the
  // embedding.
  if (padding == Padding::divided_buckets) {
    for (const std::vector<Weight>& bucket : buckets_of_ends(problem, inventory, stage)) {
      add(bucket, 1, false);
    }
  } else if (stage.embedding && padding == Padding::each_unit) {
    for (const Weight& w : inventory.embedding) add({w}, 1, false);
  } else if (stage.embedding) {
    add(inventory.embedding, 1, false);
  }
  if (stage.head && padding != Padding::divided_buckets) add(inventory.head, 1, false);
  if (const std::int64_t modules = held_mtp_modules(problem); stage.head && modules > 0) {
    if (padding == Padding::divided_buckets) {
      for (const LayerKind kind : kinds_of_mtp_module(problem.model)) {
        add(inventory.layer(kind), modules, true);
      }
    } else {
      add(inventory.mtp, modules, true);
    }
    if (!stage.embedding) add(inventory.mtp_embedding, 1, false);
  }
  if (stage.head && !stage.embedding && holds_tied_copy(problem))
    add(inventory.tied_head, 1, false);
  close_buffer(total.dense, widths.dense, padding);
  close_buffer(total.expert, widths.expert, padding);
  return total;
}

std::int64_t padded_unit(const Problem& problem, std::int64_t elements) {
  return round_up(elements, unit_alignment * shard_widths(problem).dense);
}

std::int64_t constant_bucket(const Problem& problem) {
  return padded_unit(problem, problem.runtime.zeroplan.reduce_bucket_size);
}

StateTerms state_terms(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  const StateRecipe recipe = state_recipe(problem);
  const StageElements e = stage_elements(problem, inventory, stage, recipe.padding);
  const UpdatedElements updated = updated_elements(e, recipe);
  const auto stored = [&](Category state, std::string_view what, std::int64_t bytes, bool sharded) {
    return StateTerm{state, what, bytes, sharded ? e.shard() : e.full()};
  };
  const auto kept = [&](Category state, std::string_view what, std::int64_t bytes) {
    return StateTerm{state, what, bytes, updated.all};
  };
  StateTerms terms{};
  const Offload offload = problem.layout.offload;
  const bool offloaded = offload == Offload::optimizer || offload == Offload::parameters;
  if (offload != Offload::parameters) {
    terms[0] =
        stored(Category::parameters, "parameters", recipe.parameter_bytes, recipe.shard_parameters);
    if (keeps_8_bit_matrices(problem)) {
      // The router, which is small and stays wide, is taken for one of them.
      const std::int64_t matrices = recipe.shard_parameters ? e.narrow_shard() : e.narrow_full();
      terms[0].elements -= std::min(terms[0].elements, matrices);
      terms[6] = {Category::parameters, "8-bit matrices of the layers", 1, matrices};
    }
  }
  // Gradients follow the optimizer to the host as they appear, unless the runtime reduces them in a
  // buffer on the GPU.
  if (!offloaded || code_of(problem).keeps_gradients) {
    terms[1] =
        stored(Category::gradients, "gradients", recipe.gradient_bytes, recipe.shard_gradients);
  }
  if (offloaded) return terms;

  terms[2] = kept(Category::master_parameters, "master parameters", recipe.master_bytes);
  terms[3] = kept(Category::temporaries, "gradients of the step", recipe.step_gradient_bytes);
  if (const std::int64_t k = recipe.optimizer_bytes; k > 0) {
    terms[4] = kept(Category::optimizer_states, "K less the master copy", k - recipe.master_bytes);
  } else {
    const auto [first, second] =
        moments(problem.training.optimizer, recipe, updated.all, updated.hidden);
    terms[4] = first;
    terms[5] = second;
  }
  return terms;
}

ModelStates model_states(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  if (const auto own = code_of(problem).own_states) return own(problem);
  MemoryBreakdown sums;
  for (const StateTerm& term : state_terms(problem, inventory, stage)) {
    sums[term.category] += term.total();
  }
  return {.parameters = sums[Category::parameters],
          .gradients = sums[Category::gradients],
          .master_parameters = sums[Category::master_parameters],
          .optimizer_states = sums[Category::optimizer_states],
          .step_gradients = sums[Category::temporaries]};
}

}  // namespace zeroplan
