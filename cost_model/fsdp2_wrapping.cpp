// What does FSDP2 wrap, and how is it gathered? Front door: joins_ends.
#include "cost_model/fsdp2_wrapping.hpp"

namespace zeroplan {

bool keeps_last_layer(const Problem& problem) {
  constexpr std::int64_t split_root = 20250728;  // torchtitan 83e694105
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers != LayerCode::torchtitan || set.recipe_date < split_root;
}

bool joins_ends(const Problem& problem) {
  return problem.model.tied_embeddings || keeps_last_layer(problem);
}

bool gathers_in_8_bits(const Problem& problem) {
  return problem.runtime.kind == Runtime::fsdp2 && problem.runtime.fsdp2.float8_all_gather &&
         problem.training.precision == Precision::fp8;
}

bool cuts_expert_rows(const Problem& problem) {
  constexpr std::int64_t always_by_rows = 20260326;  // torchtitan 18a46d427
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan &&
         (set.recipe_date >= always_by_rows || problem.layout.ep > 1);
}

}  // namespace zeroplan
