// How wide is a token on one rank, and how many reach its experts? Front doors: token_shape,
// local_linear_attention, routed_tokens.
#include "cost_model/rank/token_shape.hpp"

#include <algorithm>
#include <cmath>

#include "cost_model/question/runtime_code.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

TokenShape token_shape(const Problem& p) {
  const AttentionSpec& a = p.model.attention;
  const std::int64_t tp = p.layout.tp;
  // With more ranks than key-value heads each rank works on one whole head.
  const std::int64_t kv_heads = std::max<std::int64_t>(1, a.kv_heads / tp);
  return {.element = p.training.precision == Precision::fp32 ? 4 : 2,
          .norm_rows = p.layout.sequence_parallel ? tp : 1,
          .hidden = p.model.hidden_size,
          .query = ceil_div(query_width(a), tp),
          .key_value = a.mla ? ceil_div(query_width(a), tp) : kv_heads * a.head_dim,
          .output = ceil_div(attention_output_width(a), tp),
          .heads = ceil_div(a.heads, tp),
          .mlp = ceil_div(p.model.mlp.intermediate_size, tp),
          .routed = routed_width(p.model)};
}

LinearAttentionSpec local_linear_attention(const Problem& problem) {
  LinearAttentionSpec own = *problem.model.linear_attention;
  const std::int64_t ranks = problem.layout.tp * problem.layout.cp;
  own.key_heads = ceil_div(own.key_heads, ranks);
  own.value_heads = ceil_div(own.value_heads, ranks);
  return own;
}

StateSpaceSpec local_state_space(const Problem& problem) {
  StateSpaceSpec own = *problem.model.state_space;
  const std::int64_t ranks = problem.layout.tp * problem.layout.cp;
  own.heads = ceil_div(own.heads, ranks);
  own.groups = ceil_div(own.groups, ranks);
  return own;
}

bool normalises_heads(const Problem& problem) {
  const AttentionSpec& a = problem.model.attention;
  return a.qk_norm || (a.plain_qk_norm && code_of(problem).transformers_layers(problem));
}

LayerNorms layer_norms(const Problem& problem) {
  const ModelSpec& model = problem.model;
  if (model.norms_after && code_of(problem).transformers_layers(problem))
    return {false, false, true};
  return {.pre_mlp = model.norms_per_layer > 1, .after = model.norms_per_layer > 2};
}

bool repeats_tokens(const Problem& problem) {
  return problem.layout.ep == 1 && problem.model.family.starts_with("llama4") &&
         code_of(problem).transformers_layers(problem);
}

RoutedTokens routed_tokens(const Problem& problem) {
  const MoeSpec& moe = *problem.model.moe;
  const std::int64_t local = ceil_div(local_tokens(problem), token_shape(problem).norm_rows);
  std::int64_t sent = local * (repeats_tokens(problem) ? moe.experts : moe.experts_per_token);
  if (problem.runtime.megatron.moe_pad_to_capacity) sent = round_up(sent, moe.experts);
  return {local, sent, sent * problem.layout.etp};
}

double reached_places(std::int64_t places, const MoeSpec& moe) {
  const auto choices = static_cast<double>(moe.experts_per_token);
  const auto reached = [&](double n) { return n * (1 - std::pow(1 - 1 / n, choices)); };
  const auto all = static_cast<double>(places);
  // Where a place holds several groups, those of a token are spread over as many places at most.
  const double of_groups = static_cast<double>(moe.groups_per_token) *
                           std::max(1.0, all / static_cast<double>(moe.router_groups));
  return reached(std::min(all, of_groups));
}

std::int64_t received_once(const Problem& problem) {
  const double reached = reached_places(problem.layout.ep, *problem.model.moe);
  return std::llround(static_cast<double>(routed_tokens(problem).local) * reached) *
         problem.layout.etp;
}

}  // namespace zeroplan
