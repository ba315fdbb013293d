#pragma once
// One function a rule, which says why a problem breaks it or says nothing. What one runtime alone
// refuses stands in its own rules.cpp.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/runtime_code.hpp"

namespace zeroplan::legality {

using Reason = std::optional<std::string>;

template <class... Args>
Reason because(bool broken, fmt::format_string<Args...> text, Args&&... args) {
  if (!broken) return std::nullopt;
  return fmt::format(text, std::forward<Args>(args)...);
}

inline std::string_view runtime_name(const Problem& p) {
  return code_of(p).name;
}

/// Heads of keys, as attention sees them: latent ones are widened to as many as there are queries.
std::int64_t key_heads(const Problem& p);

// The grid of ranks.
Reason magnitude(const Problem& p);
Reason world(const Problem& p);
Reason dense_only(const Problem& p);
Reason expert_grid(const Problem& p);
Reason no_expert_tensor_parallel(const Problem& p);
Reason hybrid_shards(const Problem& p);
Reason hybrid_needs_sharding(const Problem& p);
Reason hybrid_needs_stage(const Problem& p, ZeroStage least);
Reason no_hybrid(const Problem& p);

// Widths of the model and of the sequence.
Reason heads(const Problem& p);
Reason kv_heads(const Problem& p);
Reason mlp_width(const Problem& p);
Reason hidden_width(const Problem& p);
Reason experts(const Problem& p);
Reason context_halves(const Problem& p);
Reason context_heads(const Problem& p);
Reason sequence_rows(const Problem& p);
Reason sequence_parallel_needs_tp(const Problem& p);
Reason no_sequence_parallel(const Problem& p);
Reason positions(const Problem& p);
/// Whether layers attend linearly, with which comes a gate of the other layers' attention, or are
/// state spaces.
bool is_hybrid(const ModelSpec& model);
/// Of such layers, where none and where some are described.
Reason no_linear_attention(const Problem& p);
Reason linear_attention(const Problem& p);
Reason no_expert_latents(const Problem& p);

// Stages, schedule and micro-batches.
Reason enough_layers(const Problem& p);
Reason splittable(const Problem& p);
Reason schedule_known(const Problem& p);
Reason chunks_fit_schedule(const Problem& p);
Reason schedule_needs_pipeline(const Problem& p);
Reason dualpipe_pairs(const Problem& p);
Reason batch(const Problem& p);

// Features that exclude each other.
Reason number_format(const Problem& p);
Reason no_fp8(const Problem& p);
Reason no_nvfp4(const Problem& p);
Reason full_recompute_only(const Problem& p);
Reason no_offload(const Problem& p);
Reason optimizer_offload_only(const Problem& p);
Reason no_offload_of_activations(const Problem& p);

}  // namespace zeroplan::legality
