// What does FSDP2 wrap, and how is it gathered? Front door: joins_ends.
#include "cost_model/states/fsdp2_wrapping.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// How many of the head's weights come before the output layer's.
std::size_t output_starts(const WeightInventory& inventory) {
  const auto found = std::ranges::find(inventory.head, "output", &Weight::module);
  return static_cast<std::size_t>(found - inventory.head.begin());
}

}  // namespace

bool keeps_last_layer(const Problem& problem) {
  constexpr std::int64_t split_root = 20250728;  // torchtitan 83e694105
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan && set.recipe_date < split_root;
}

bool joins_ends(const Problem& problem) {
  // torchtitan ties the weights of Qwen3 alone, in whose attention alone queries have a norm. Of
  // others that one would write there, plainly tied, both ends are one unit.
  const bool apart = problem.runtime.fsdp2.layers == LayerCode::torchtitan &&
                     problem.model.attention.qk_norm && !unties_ends(problem);
  const bool tied = problem.model.tied_embeddings && !apart;
  return tied || keeps_last_layer(problem) || leaves_ends_to_root(problem);
}

bool shares_ends(const Problem& problem) {
  return problem.runtime.kind == Runtime::fsdp2 && problem.model.tied_embeddings &&
         !joins_ends(problem);
}

bool unties_ends(const Problem& problem) {
  constexpr std::int64_t spmd_types = 20260818;  // torchtitan 5ab3a0fd1
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return problem.runtime.kind == Runtime::fsdp2 && problem.model.tied_embeddings &&
         set.layers == LayerCode::torchtitan && set.recipe_date >= spmd_types;
}

bool leaves_ends_to_root(const Problem& problem) {
  constexpr std::int64_t ends_are_units = 114;  // accelerate 60b5c258
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::huggingface && set.accelerate_version < ends_are_units;
}

bool gathers_in_8_bits(const Problem& problem) {
  return problem.runtime.fsdp2.float8_all_gather && problem.training.precision == Precision::fp8;
}

std::int64_t reduced_bytes(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  switch (set.reduce_format) {
    case ReduceFormat::fp32:
      return 4;
    case ReduceFormat::bf16:
      return 2;
    case ReduceFormat::recipe:
      break;
  }
  return set.layers == LayerCode::torchtitan ? 4 : set.mixed_precision_bytes;
}

bool defers_reduction(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::huggingface && !set.sync_each_batch && problem.layout.pp == 1 &&
         micro_batches(problem) > 1;
}

// torchtitan 18a46d427: a mesh for each parameter, and experts always cut by rows.
constexpr std::int64_t mesh_a_parameter = 20260326;

bool cuts_expert_rows(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan &&
         (set.recipe_date >= mesh_a_parameter || problem.layout.ep > 1);
}

bool wraps_experts_apart(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan && set.recipe_date < mesh_a_parameter &&
         problem.layout.ep > 1;
}

std::span<const Weight> output_weights(const WeightInventory& inventory) {
  const std::span<const Weight> own = std::span(inventory.head).subspan(output_starts(inventory));
  return own.empty() ? std::span(inventory.embedding).first(1) : own;
}

std::span<const Weight> weights_before_output(const WeightInventory& inventory) {
  return std::span(inventory.head).first(output_starts(inventory));
}

}  // namespace zeroplan
