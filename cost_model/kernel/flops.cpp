// How many FLOPs is a step? Front door: step_flops.
#include "cost_model/kernel/flops.hpp"

#include <algorithm>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/delta_rule.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/recorded_flops.hpp"
#include "cost_model/kernel/state_space.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/rank/weights.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// What the terms of a layer are called: its linears, and what is beside them.
using TermNames = std::pair<std::string_view, std::string_view>;
constexpr TermNames state_space_terms{"linears beside a state space", "scan of the state"};
constexpr TermNames wide_state_space_terms{"linears beside a state space, in 16 bits",
                                           "scan of the state, in 16 bits"};
constexpr ByKind<TermNames> term_names{
    {{{"linears of a dense layer", "attention scores of a dense layer"},
      {"linears of an MoE layer", "attention scores of an MoE layer"},
      {"linears beside linear attention", "delta rule and convolution"},
      {"linears beside linear attention", "delta rule and convolution"},
      {"linears beside linear attention", "delta rule and convolution"},
      {"linears of an attention layer", "attention scores of an attention layer"},
      {"linears of an MLP layer", ""},
      {"linears of an experts layer", ""},
      {"linears of a dense layer in 16 bits", "attention scores of a dense layer in 16 bits"},
      {"linears of an MoE layer in 16 bits", "attention scores of an MoE layer in 16 bits"},
      {"linears beside linear attention, in 16 bits", "delta rule and convolution, in 16 bits"},
      {"linears beside linear attention, in 16 bits", "delta rule and convolution, in 16 bits"},
      {"linears beside linear attention, in 16 bits", "delta rule and convolution, in 16 bits"},
      {"linears of an attention layer in 16 bits",
       "attention scores of an attention layer in 16 bits"},
      {"linears of an MLP layer in 16 bits", ""},
      {"linears of an experts layer in 16 bits", ""}}}};

// FLOPs a token; 0 for a vector, which multiplies no matrix.
double token_flops(const Weight& w, const ModelSpec& model) {
  if (w.columns == 1) return 0;
  const std::int64_t copies = w.expert ? model.moe->experts_per_token : 1;
  return 2 * static_cast<double>(w.rows * w.columns * copies);
}

using Modules = std::vector<Module>;

bool contains(const Modules& modules, Module module) {
  return std::ranges::find(modules, module) != modules.end();
}

// What the backward pass of a layer that repeats this runs forward once more.
Modules repeated_modules(const Problem& p, LayerKind kind, RepeatSet set) {
  Modules modules;
  const Block block = code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, kind, set);
  for (const Event& event : block.backward) {
    if (event.computes() && event.kernel().product == Product::forward) {
      modules.push_back(event.kernel().module);
    }
  }
  return modules;
}

// What recompute repeats of the linears of one layer, for one sample.
double repeated_linear_flops(const Problem& p, LayerKind kind, const Modules& repeated_modules) {
  double repeated = 0;
  for (const Weight& w : layer_weights(p.model, kind)) {
    if (w.columns > 1 && contains(repeated_modules, linear_of(p, w))) {
      repeated += static_cast<double>(p.training.sequence_length) * token_flops(w, p.model);
    }
  }
  return repeated;
}

// Layers of the model to which the recompute policy applies; each sample crosses them once, though
// DualPipe's ranks hold them twice.
double repeating_layers(const Problem& p, LayerKind kind) {
  if (p.layout.recompute == Recompute::none) return 0;
  std::int64_t sum = 0;
  for (const Stage& stage : stages(p)) {
    sum += recomputed_layers(p, stage, kind);
  }
  return static_cast<double>(sum) / (p.layout.schedule == Schedule::dualpipe ? 2 : 1);
}

// What recompute repeats of all layers of a kind, for one sample.
struct RepeatedFlops {
  double linears = 0;
  double scores = 0;
};

RepeatedFlops repeated_flops(const Problem& p, LayerKind kind, double scores_of_layer) {
  RepeatedFlops sum;
  const auto add = [&](double layers, RepeatSet set) {
    if (layers == 0 || set == 0) return;
    const Modules repeated = repeated_modules(p, kind, set);
    sum.linears += layers * repeated_linear_flops(p, kind, repeated);
    const Module mixing = !is_linear(kind)      ? Module::core_attention
                          : p.model.state_space ? Module::state_scan
                                                : Module::delta_rule;
    if (contains(repeated, mixing)) sum.scores += layers * scores_of_layer;
  };
  const double again = repeating_layers(p, kind);
  const auto all = static_cast<double>(layers_of_kind(p.model, 0, p.model.layers, kind));
  add(again, repeats(p));
  add(all - again, repeated_layers(p).others);
  return sum;
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
  if (count == ScoreCount::whole) return whole;
  const AttentionSpec& a = model.attention;
  const double windowed =
      model.layers > 0 ? static_cast<double>(a.windowed_layers) / static_cast<double>(model.layers)
                       : 0;
  return whole / 2 * (1 - windowed + windowed * share_in_window(a.sliding_window, sequence));
}

double layer_mixing_flops(const ModelSpec& model,
                          LayerKind kind,
                          std::int64_t sequence,
                          ScoreCount count) {
  if (!has_mixer(kind)) return 0;
  if (!is_linear(kind)) return layer_score_flops(model, sequence, count);
  const double of_token = model.state_space ? state_space_flops(*model.state_space)
                                            : delta_rule_flops(*model.linear_attention);
  return static_cast<double>(sequence) * of_token;
}

double head_flops(const ModelSpec& model, std::int64_t sequence) {
  double sum = 0;
  for (const Weight& w : head_weights(model)) sum += token_flops(w, model);
  if (model.tied_embeddings) sum += token_flops(embedding_weights(model).front(), model);
  return sum * static_cast<double>(sequence);
}

double mtp_projection_flops(const ModelSpec& model, std::int64_t sequence) {
  const auto h = static_cast<double>(model.hidden_size);
  return 2 * static_cast<double>(sequence) * h * 2 * h;
}

std::vector<FlopTerm> flop_terms(const Problem& problem, ScoreCount count) {
  if (problem.runtime.recorded) return recorded_flop_terms(problem, count);
  const ModelSpec& model = problem.model;
  const std::int64_t s = problem.training.sequence_length;
  std::vector<FlopTerm> terms;
  for (const LayerKind kind : all_layer_kinds) {
    const std::int64_t layers = layers_of_kind(model, 0, model.layers, kind);
    if (layers == 0) continue;
    const double mixing = layer_mixing_flops(model, kind, s, count);
    const RepeatedFlops again = repeated_flops(problem, kind, mixing);
    const bool scans = is_linear(kind) && model.state_space;
    const auto& [linears, rest] = !scans          ? term_names[kind]
                                  : is_wide(kind) ? wide_state_space_terms
                                                  : state_space_terms;
    terms.push_back({linears, layers, layer_linear_flops(model, kind, s), again.linears});
    if (has_mixer(kind)) terms.push_back({rest, layers, mixing, again.scores});
  }
  terms.push_back({"output head", 1, head_flops(model, s)});
  if (const std::int64_t modules = trained_mtp_modules(problem); modules > 0) {
    // Each has layers, a projection, and passes the head once more.
    const bool full = problem.layout.recompute == Recompute::full;
    double layers = 0, again = 0;
    for (const auto& [kind, repeated] : mtp_layers(problem)) {
      const double layer =
          layer_mixing_flops(model, kind, s, count) + layer_linear_flops(model, kind, s);
      layers += layer;
      if (full && repeated) again += layer;
    }
    terms.push_back({"linears and scores of an MTP module", modules,
                     layers + mtp_projection_flops(model, s),
                     static_cast<double>(modules) * again});
    terms.push_back({"output head of an MTP module", modules, head_flops(model, s)});
  }
  return terms;
}

StepFlops step_flops(const Problem& problem, ScoreCount count) {
  double forward = 0;
  double repeated = 0;
  for (const FlopTerm& term : flop_terms(problem, count)) {
    forward += static_cast<double>(term.count) * term.forward;
    repeated += term.repeated;
  }
  const auto samples = static_cast<double>(problem.training.global_batch);
  return {.model = samples * 3 * forward, .hardware = samples * (3 * forward + repeated)};
}

}  // namespace zeroplan
