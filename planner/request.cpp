// What is left to choose, and what follows? Front door: complete.
#include "planner/request.hpp"

#include <algorithm>

#include "cost_model/question/units.hpp"
#include "cost_model/rank/stages.hpp"

namespace zeroplan {

std::vector<std::int64_t> divisors_up_to(std::int64_t value, std::int64_t limit) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d * d <= value && d <= limit; ++d) {
    if (value % d == 0) result.push_back(d);
  }
  // Each has its counterpart, the other way round.
  for (std::size_t i = result.size(); i-- > 0;) {
    const std::int64_t d = value / result[i];
    if (d > result.back() && d <= limit) result.push_back(d);
  }
  return result;
}

std::vector<std::int64_t> powers_of_two_up_to(std::int64_t limit) {
  std::vector<std::int64_t> result;
  for (std::int64_t p = 1; p <= limit; p *= 2) result.push_back(p);
  return result;
}

namespace {

template <class T>
std::vector<T> given_or(const std::optional<T>& given, std::vector<T> choices) {
  if (given) return {*given};
  return choices;
}

}  // namespace

const Choices& choices_of(const Request& request) {
  return *code_of(request.runtime).choices;
}

namespace {

// The longest context one rank is given before the planner thinks of context parallelism.
constexpr std::int64_t shortest_context_part = 4096;
constexpr std::int64_t widest_context = 64;

std::vector<std::int64_t> context_choices(const Request& request, std::int64_t sequence) {
  if (!choices_of(request).cuts_context) return {1};
  return powers_of_two_up_to(
      std::clamp<std::int64_t>(sequence / shortest_context_part, 1, widest_context));
}

std::vector<ZeroStage> stage_choices(const Request& request) {
  const std::span<const ZeroStage> stages = choices_of(request).stages;
  return {stages.begin(), stages.end()};
}

}  // namespace

std::vector<Recompute> recompute_choices(const Request& request) {
  using enum Recompute;
  const SelectiveRecompute drops = choices_of(request).selective;
  const bool useful = drops == SelectiveRecompute::always ||
                      (drops == SelectiveRecompute::with_unfused_attention &&
                       open_problem(request).training.attention == AttentionKernel::unfused);
  if (useful) return {none, selective, full};
  return {none, full};
}

std::optional<std::int64_t> chunks_of_layout(const Request& request, std::int64_t pp) {
  const PipelineLayout& layout = request.runtime.megatron.pipeline_model_parallel_layout;
  if (!layout.given()) return std::nullopt;
  return std::max<std::int64_t>(1, std::ssize(layout.layers) / pp);
}

namespace {

std::int64_t sequence_length(const Request& request) {
  constexpr std::int64_t usual = 4096;
  if (request.sequence_length) return *request.sequence_length;
  const std::int64_t longest = request.model.max_position_embeddings;
  return longest > 0 ? std::min(usual, longest) : usual;
}

// Chunks a rank where only the schedule was given: the fewest that divide the layers.
std::int64_t default_chunks(const Request& request, std::int64_t pp) {
  if (const auto chunks = chunks_of_layout(request, pp)) return *chunks;
  if (request.schedule == Schedule::zb_v) return 2;
  if (request.schedule != Schedule::interleaved) return 1;
  for (std::int64_t vpp = 2; vpp * pp <= request.model.layers; ++vpp) {
    if (request.model.layers % (vpp * pp) == 0) return vpp;
  }
  return 2;
}

// The multiple of `unit` nearest to so many tokens.
std::int64_t nearest_global_batch(std::int64_t tokens, std::int64_t sequence, std::int64_t unit) {
  const std::int64_t step = unit * sequence;
  return std::max<std::int64_t>(1, (tokens + step / 2) / step) * unit;
}

// Megatron-Core's even split asks for divisibility; its uneven forms cover the rest. Tries the
// embedding and the loss as a layer each, then other numbers of layers on the first and last stage.
void choose_stage_split(Problem& problem) {
  MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t pp = problem.layout.pp;
  const std::int64_t layers = problem.model.layers;
  if (pp == 1 || has_stages(problem)) return;
  for (const auto& [embedding, loss] : {std::pair{true, true}, {false, true}, {true, false}}) {
    set.account_for_embedding_in_pipeline_split = embedding;
    set.account_for_loss_in_pipeline_split = loss;
    if (has_stages(problem)) return;
  }
  set.account_for_embedding_in_pipeline_split = set.account_for_loss_in_pipeline_split = false;
  if (problem.layout.vpp > 1 || layers < pp) return;
  const std::int64_t middle = pp == 2 ? 0 : std::min(ceil_div(layers, pp), (layers - 2) / (pp - 2));
  const std::int64_t ends = layers - middle * (pp - 2);
  set.decoder_first_pipeline_num_layers = ends / 2;
  set.decoder_last_pipeline_num_layers = ends - ends / 2;
}

}  // namespace

bool has_own_split(const Request& request) {
  const MegatronSettings& set = request.runtime.megatron;
  return set.account_for_embedding_in_pipeline_split || set.account_for_loss_in_pipeline_split ||
         set.decoder_first_pipeline_num_layers > 0 || set.decoder_last_pipeline_num_layers > 0 ||
         set.pipeline_model_parallel_layout.given() ||
         request.gives("account_for_embedding_in_pipeline_split") ||
         request.gives("account_for_loss_in_pipeline_split") ||
         request.gives("decoder_first_pipeline_num_layers") ||
         request.gives("decoder_last_pipeline_num_layers");
}

std::int64_t most_chunks(const Request& request) {
  const bool counts_ends = choices_of(request).has_uneven_splits && !has_own_split(request);
  if (counts_ends) return request.model.layers + 2;
  return most_chunks(request.model, request.runtime);
}

LayoutSpace layout_space(const Request& request) {
  const std::int64_t gpus = request.cluster.gpus;
  const std::int64_t node = std::min(gpus, request.cluster.gpus_per_node);
  const Choices& tried = choices_of(request);
  const bool inside = tried.divides_model;
  const bool experts = request.model.moe && tried.divides_experts;
  const std::int64_t deepest = std::max<std::int64_t>(1, most_chunks(request));
  using List = std::vector<std::int64_t>;
  return {
      .tp = given_or(request.tp, inside ? divisors_up_to(node, node) : List{1}),
      .pp = given_or(request.pp, tried.tries_pipeline ? divisors_up_to(gpus, deepest) : List{1}),
      .cp = given_or(request.cp, context_choices(request, sequence_length(request))),
      .ep = given_or(request.ep,
                     experts ? divisors_up_to(request.model.moe->experts, gpus) : List{1}),
      .whole_experts = experts && tried.divides_inside_experts && !request.etp
                           ? std::vector<bool>{true, false}
                           : std::vector<bool>{true},
      .zero = given_or(request.zero, stage_choices(request)),
      .recompute = given_or(request.recompute, recompute_choices(request))};
}

Problem open_problem(const Request& request) {
  Problem p{.model = request.model, .cluster = request.cluster, .runtime = request.runtime};
  p.training.sequence_length = sequence_length(request);
  const bool no_bf16 = request.cluster.gpu.bf16_flops == 0;
  p.training.precision = request.precision.value_or(no_bf16 ? Precision::fp16 : Precision::bf16);
  p.training.optimizer = request.optimizer.value_or(OptimizerKind::adam);
  p.training.attention = request.attention.value_or((*code_of(p).attention)(p));
  p.training.scores = request.scores;
  return p;
}

void derive(const Request& request, Problem& p) {
  Layout& l = p.layout;
  l.dp = std::max<std::int64_t>(1, request.cluster.gpus / (l.tp * l.pp * l.cp));
  const std::int64_t unit = l.dp * l.micro_batch * (l.schedule == Schedule::interleaved ? l.pp : 1);
  const std::int64_t accumulated = request.gradient_accumulation.value_or(0) * l.dp * l.micro_batch;
  p.training.global_batch = request.global_batch.value_or(
      accumulated > 0
          ? accumulated
          : nearest_global_batch(request.batch_tokens, p.training.sequence_length, unit));
  derive_flags(request, p);
  if (!choices_of(request).has_uneven_splits || has_own_split(request)) return;
  MegatronSettings& set = p.runtime.megatron;
  set.account_for_embedding_in_pipeline_split = set.account_for_loss_in_pipeline_split = false;
  set.decoder_first_pipeline_num_layers = l.first_stage;
  set.decoder_last_pipeline_num_layers = l.last_stage;
  if (l.first_stage == 0 && l.last_stage == 0) choose_stage_split(p);
}

void derive_flags(const Request& request, Problem& p) {
  code_of(request.runtime).take_layout(request.runtime, p.layout, p.runtime);
}

Problem complete(const Request& request, const LayoutChoice& choice) {
  Problem p = open_problem(request);
  Layout& l = p.layout;
  l.tp = choice.tp;
  l.pp = choice.pp;
  l.cp = choice.cp;
  l.ep = choice.ep;
  l.etp = choice.etp;
  l.zero = choice.zero;
  l.recompute = choice.recompute;
  l.vpp = request.vpp.value_or(default_chunks(request, l.pp));
  l.hsdp = request.hsdp.value_or(request.runtime.deepspeed.mics_shard_size);
  l.micro_batch = request.micro_batch.value_or(1);
  l.offload = request.offload.value_or(Offload::none);
  l.sequence_parallel =
      request.sequence_parallel.value_or(l.tp > 1 && choices_of(request).splits_norms);
  l.schedule = request.schedule.value_or(l.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
  derive(request, p);
  return p;
}

Problem problem_of(const Request& request, const Layout& layout) {
  Problem p = open_problem(request);
  p.layout = layout;
  derive(request, p);
  return p;
}

std::vector<std::string> chosen_fields(const Request& request, const Problem& problem) {
  std::vector<std::string> chosen;
  const auto add = [&](bool given, std::string_view name) {
    if (!given) chosen.emplace_back(name);
  };
  add(!request.counts_gpus, "gpus");
  add(request.tp.has_value(), "tp");
  add(request.pp.has_value(), "pp");
  add(request.vpp.has_value(), "vpp");
  add(request.cp.has_value(), "cp");
  if (problem.model.moe) {
    add(request.ep.has_value(), "ep");
    add(request.etp.has_value(), "etp");
  }
  add(request.zero.has_value(), "zero");
  if (problem.layout.hsdp > 0) add(request.hsdp.has_value(), "hsdp");
  add(request.sequence_parallel.has_value(), "sequence_parallel");
  add(request.micro_batch.has_value(), "micro_batch");
  add(request.schedule.has_value(), "schedule");
  add(request.recompute.has_value(), "recompute");
  if (problem.layout.offload != Offload::none) add(request.offload.has_value(), "offload");
  return chosen;
}

}  // namespace zeroplan
