// How many FLOPs is a step? Front door: step_flops.
#include "cost_model/time/flops.hpp"

#include "cost_model/time/layer_gemms.hpp"
#include "cost_model/time/recomputed.hpp"
#include "cost_model/weights.hpp"

namespace zeroplan {
namespace {

// FLOPs a token; 0 for a vector, which multiplies no matrix.
double token_flops(const Weight& w, const ModelSpec& model) {
  if (w.columns == 1) return 0;
  const std::int64_t copies = w.expert ? model.moe->experts_per_token : 1;
  return 2 * static_cast<double>(w.rows * w.columns * copies);
}

// What recompute repeats of one layer, for one sample.
double repeated_flops(const Problem& p, LayerKind kind, ScoreCount count) {
  const std::int64_t s = p.training.sequence_length;
  double repeated =
      is_recomputed(p, kind, core_attention_module) ? layer_score_flops(p.model, s, count) : 0;
  for (const Weight& w : layer_weights(p.model, kind)) {
    if (is_recomputed(p, kind, linear_of(p, w))) {
      repeated += static_cast<double>(s) * token_flops(w, p.model);
    }
  }
  return repeated;
}

}  // namespace

double layer_linear_flops(const ModelSpec& model, LayerKind kind, std::int64_t sequence) {
  double sum = 0;
  for (const Weight& w : layer_weights(model, kind)) sum += token_flops(w, model);
  return sum * static_cast<double>(sequence);
}

double layer_score_flops(const ModelSpec& model, std::int64_t sequence, ScoreCount count) {
  const std::int64_t widths =
      query_width(model.attention) + attention_output_width(model.attention);
  const double whole = 2 * static_cast<double>(sequence) * static_cast<double>(sequence) *
                       static_cast<double>(widths);
  return count == ScoreCount::causal ? whole / 2 : whole;
}

double head_flops(const ModelSpec& model, std::int64_t sequence) {
  double sum = 0;
  for (const Weight& w : head_weights(model)) sum += token_flops(w, model);
  if (model.tied_embeddings) sum += token_flops(embedding_weights(model).front(), model);
  return sum * static_cast<double>(sequence);
}

StepFlops step_flops(const Problem& problem, ScoreCount count) {
  const ModelSpec& model = problem.model;
  const std::int64_t s = problem.training.sequence_length;
  double forward = head_flops(model, s);
  double repeated = 0;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const auto layers = static_cast<double>(layers_of_kind(model, 0, model.layers, kind));
    if (layers == 0) continue;
    forward += layers * (layer_linear_flops(model, kind, s) + layer_score_flops(model, s, count));
    repeated += layers * repeated_flops(problem, kind, count);
  }
  const auto samples = static_cast<double>(problem.training.global_batch);
  return {.model = samples * 3 * forward, .hardware = samples * (3 * forward + repeated)};
}

}  // namespace zeroplan
