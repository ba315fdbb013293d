#pragma once
// How many FLOPs a training step is: those the model needs, and those the hardware executes.

#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// FLOPs of one forward pass of one sample of `sequence` tokens. Linears are 2 x tokens x the
/// matrix elements a token uses: grouped-query and latent attention, gated MLPs, the router and the
/// experts_per_token experts count as they are. Norms, activations and softmax count nothing.
double layer_linear_flops(const ModelSpec& model, LayerKind kind, std::int64_t sequence);

/// Queries times keys and scores times values, 2 s^2 (query width + output width), or half, of
/// which windowed layers need what their window leaves: the mean layer's.
double layer_score_flops(const ModelSpec& model, std::int64_t sequence, ScoreCount count);

/// FLOPs of one sample's forward pass in a layer of this kind beside its linears: scores, or those
/// of linear attention (delta_rule_flops) or a state space (state_space_flops).
double layer_mixing_flops(const ModelSpec& model,
                          LayerKind kind,
                          std::int64_t sequence,
                          ScoreCount count);

/// The output head: 2 s h V, with the vocabulary as it is, not padded.
double head_flops(const ModelSpec& model, std::int64_t sequence);

/// The projection of a multi-token-prediction module: 2 s 2h h.
double mtp_projection_flops(const ModelSpec& model, std::int64_t sequence);

/// A part of the model that multiplies matrices, `count` times alike; for one sample.
struct FlopTerm {
  std::string_view what;
  std::int64_t count = 1;
  double forward = 0;
  double repeated = 0;  // of all, what recompute runs again
};

/// Linears and scores of each kind of layer, and the head; then those of trained
/// multi-token-prediction modules.
std::vector<FlopTerm> flop_terms(const Problem& problem, ScoreCount count);

/// FLOPs of one optimizer step over all GPUs: samples x the sum over flop_terms of
/// 3 x count x forward, and of the hardware also repeated.
struct StepFlops {
  double model = 0;     // forward and twice that backward, whatever is recomputed: for MFU
  double hardware = 0;  // model, and what recompute repeats: for HFU
};

/// For a GPT, with whole score matrices, model FLOPs are 72 B L s h^2 (1 + s/6h + V/12hL) and
/// hardware FLOPs with full recompute 96 B s L h^2 (1 + s/6h + V/16Lh) (Narayanan et al. 2021, eq.
/// 3). With selective recompute hardware FLOPs are 72 B L s h^2 (1 + s/6h + s/18h + V/12hL): the
/// scores once more. Korthikanti et al. 2022 print s/3h there, which is the scores three times
/// more. What a flash kernel repeats by itself is in neither number, as in those papers.
/// Multi-token-prediction modules that are trained are in both.
StepFlops step_flops(const Problem& problem, ScoreCount count);

/// FLOPs of one optimizer step, with scores as the question counts them.
inline StepFlops step_flops(const Problem& problem) {
  return step_flops(problem, problem.training.scores);
}

}  // namespace zeroplan
