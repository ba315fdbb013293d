// How much do activations need? Front door: layer_activations.
#include "cost_model/memory/activations.hpp"

#include <algorithm>

#include "cost_model/token_shape.hpp"

namespace zeroplan {
namespace {

bool textbook(const Problem& p) {
  return p.runtime.kind == Runtime::zero_paper;
}

// Bytes a token of the two norms, both of their inputs kept too.
std::int64_t norm_bytes(const Problem& p, const TokenShape& s) {
  const std::int64_t statistics = p.model.norm == Norm::layer ? 8 : 4;
  const bool eager = p.runtime.kind != Runtime::fsdp2;
  // Eager RMSNorm widens its input and keeps that and the normalised copy beside the output.
  const std::int64_t copies = eager && p.model.norm == Norm::rms ? 4 : 2;
  const std::int64_t norms = p.model.norms_per_layer;
  return norms * (copies * s.element * s.hidden + statistics) / s.norm_rows;
}

std::int64_t attention_bytes(const Problem& p, const TokenShape& s) {
  std::int64_t bytes = s.element * (s.query + s.output);
  if (const auto& mla = p.model.attention.mla) {
    // Both latents, before and after their norm, and full-width keys; values are as wide as the
    // output.
    bytes += s.element * (2 * (mla->q_lora_rank + mla->kv_lora_rank) + s.key_value + s.output) + 8;
  } else {
    bytes += s.element * 2 * s.key_value;
  }
  const std::int64_t keys = p.training.sequence_length;
  if (p.training.attention == AttentionKernel::flash) return bytes + 4 * s.heads;  // log-sum-exp
  return bytes + s.element * s.heads * keys;
}

// An MLP of `width` intermediate features. Eager code keeps the gate, its activation, the other
// branch and their product.
std::int64_t mlp_bytes(const TokenShape& s, std::int64_t width, bool gated) {
  return s.element * width * (gated ? 4 : 2);
}

std::int64_t moe_bytes(const Problem& p, const TokenShape& s) {
  const MoeSpec& moe = *p.model.moe;
  const Layout& l = p.layout;
  // Router scores in fp32 with their softmax, gradient and top-k; the permutation's row map.
  const std::int64_t router =
      10 * moe.experts + 8 * moe.experts_per_token + 4 * (2 * moe.experts + 1);
  // Balanced routing: each token is received experts_per_token times by the ranks of an expert.
  const std::int64_t expert =
      s.element * s.hidden + 2 + mlp_bytes(s, ceil_div(moe.intermediate_size, l.etp), moe.gated);
  const std::int64_t received = moe.experts_per_token * l.etp * expert;
  const std::int64_t shared = mlp_bytes(s, ceil_div(moe.shared_intermediate_size, l.tp), moe.gated);
  return (router + received) / s.norm_rows + shared;
}

std::int64_t token_bytes(const Problem& p, LayerKind kind) {
  const TokenShape s = token_shape(p);
  if (textbook(p)) return 12 * s.element * ceil_div(s.hidden, p.layout.tp);
  const std::int64_t width = s.mlp;
  if (p.runtime.kind == Runtime::fsdp2 && p.layout.recompute == Recompute::selective &&
      kind == LayerKind::dense) {
    // Per-operator policy: every second matmul is recomputed; wq, wv, attention, w1, w2 are kept.
    return s.element * (s.query + s.key_value + s.output + width + 2 * s.hidden / s.norm_rows) +
           4 * s.heads;
  }
  const std::int64_t mlp =
      kind == LayerKind::moe ? moe_bytes(p, s) : mlp_bytes(s, width, p.model.mlp.gated);
  return norm_bytes(p, s) + attention_bytes(p, s) + mlp;
}

// Warm-up micro-batches of Megatron's interleaved schedule, in chunks; groups of pp micro-batches.
std::int64_t interleaved_in_flight(std::int64_t pp,
                                   std::int64_t vpp,
                                   std::int64_t rank,
                                   std::int64_t m) {
  const std::int64_t warm_up = 2 * (pp - rank - 1) + (vpp - 1) * pp;
  return std::min(warm_up + 1, m * vpp);
}

}  // namespace

Bytes layer_activations(const Problem& problem, LayerKind kind) {
  return Bytes{token_bytes(problem, kind) * local_tokens(problem)};
}

Bytes layer_input(const Problem& problem) {
  const TokenShape s = token_shape(problem);
  return Bytes{s.element * ceil_div(s.hidden, s.norm_rows) * local_tokens(problem)};
}

Bytes backward_temporaries(const Problem& problem, LayerKind kind) {
  if (textbook(problem)) return {};
  const TokenShape s = token_shape(problem);
  const bool moe = kind == LayerKind::moe;
  const bool gated = moe ? problem.model.moe->gated : problem.model.mlp.gated;
  // The gradient of the first linear's output beside the layer's own gradient; with sequence
  // parallelism the gathered output gradient beside the activation's, if larger.
  std::int64_t per_token = 0;
  if (moe) {
    // Permuted and received copies of each token, before and after the experts.
    per_token = 4 * problem.model.moe->experts_per_token * s.element * s.hidden / s.norm_rows;
  } else {
    const std::int64_t width = s.mlp;
    const std::int64_t gathered = problem.layout.sequence_parallel ? s.element * s.hidden : 0;
    per_token = std::max((gated ? 2 : 1) * s.element * width, s.element * width + gathered);
  }
  return Bytes{per_token * local_tokens(problem)} + layer_input(problem);
}

LossMemory loss_memory(const Problem& problem) {
  if (textbook(problem)) return {};
  const std::int64_t tokens = local_tokens(problem);
  const std::int64_t logits = tokens * ceil_div(problem.model.vocab_size, problem.layout.tp);
  const Bytes norm = 2 * layer_input(problem);
  if (problem.runtime.kind == Runtime::fsdp2) return {norm, norm + Bytes{12 * logits}};
  return {norm + Bytes{4 * logits}, norm + Bytes{14 * logits}};
}

std::int64_t chunks_in_flight(const Problem& problem, std::int64_t rank) {
  const std::int64_t pp = problem.layout.pp;
  const std::int64_t m = std::max<std::int64_t>(1, micro_batches(problem));
  if (pp == 1) return problem.layout.vpp;
  switch (problem.layout.schedule) {
    case Schedule::gpipe:
      return m;
    case Schedule::one_f_one_b:
      return std::min(pp - rank, m);
    case Schedule::interleaved:
      return interleaved_in_flight(pp, problem.layout.vpp, rank, m);
    // The weight-gradient half is put off, so what 1F1B frees early stays: every rank reaches stage
    // 0's peak.
    case Schedule::zb_h1:
      return std::min(pp, m);
    case Schedule::zb_h2:
      return std::min(2 * pp - 1, m);
    case Schedule::zb_v:
      return 2 * std::min(pp, m);
    case Schedule::dualpipe:
      return std::min(pp + 1, 2 * m);
  }
  return m;
}

}  // namespace zeroplan
