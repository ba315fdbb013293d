// What does FSDP2 wrap, and how is it gathered? Front door: joins_ends.
#include "cost_model/states/fsdp2_wrapping.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// Of the head's weights, how many come before the output layer's.
std::size_t output_starts(const WeightInventory& inventory) {
  const auto found = std::ranges::find(inventory.head, "output", &Weight::module);
  return static_cast<std::size_t>(found - inventory.head.begin());
}

}  // namespace

bool keeps_last_layer(const Problem& problem) {
  constexpr std::int64_t split_root = 20250728;  // torchtitan 83e694105
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers != LayerCode::torchtitan || set.recipe_date < split_root;
}

bool joins_ends(const Problem& problem) {
  return problem.model.tied_embeddings || keeps_last_layer(problem);
}

bool gathers_in_8_bits(const Problem& problem) {
  return problem.runtime.fsdp2.float8_all_gather && problem.training.precision == Precision::fp8;
}

std::int64_t reduced_bytes(const Problem& problem) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan ? 4 : set.mixed_precision_bytes;
}

bool cuts_expert_rows(const Problem& problem) {
  constexpr std::int64_t always_by_rows = 20260326;  // torchtitan 18a46d427
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan &&
         (set.recipe_date >= always_by_rows || problem.layout.ep > 1);
}

std::span<const Weight> output_weights(const WeightInventory& inventory) {
  const std::span<const Weight> own = std::span(inventory.head).subspan(output_starts(inventory));
  return own.empty() ? std::span(inventory.embedding).first(1) : own;
}

std::span<const Weight> weights_before_output(const WeightInventory& inventory) {
  return std::span(inventory.head).first(output_starts(inventory));
}

}  // namespace zeroplan
