// What does zeroplan say to a published case? Front door: answer.
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "cost_model/explain/deepspeed_estimator.hpp"
#include "cost_model/legality/legality.hpp"
#include "cost_model/rank/weights.hpp"
#include "cost_model/states/model_states.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"
#include "tests/papers/inputs.hpp"

namespace zeroplan::papers {
namespace {

// Llama, Qwen2, Mixtral: RMSNorm, gated MLP, grouped queries, no biases but Qwen2's.
ModelSpec llama(const Json& in) {
  const std::int64_t h = whole(in, "hidden");
  const std::int64_t heads = whole(in, "heads");
  ModelSpec model{.name = "llama",
                  .layers = whole(in, "layers"),
                  .hidden_size = h,
                  .vocab_size = whole(in, "vocab")};
  model.attention = {
      .heads = heads, .kv_heads = whole_or(in, "kv_heads", heads), .head_dim = h / heads};
  model.attention.qkv_bias = in.value("qkv_bias", false);
  model.mlp = {.intermediate_size = whole(in, "ffn"), .gated = true};
  if (in.contains("experts")) {
    model.moe = MoeSpec{.experts = whole(in, "experts"),
                        .experts_per_token = whole(in, "topk"),
                        .intermediate_size = whole(in, "ffn")};
  }
  return model;
}

ModelSpec deepseek(const Json& in) {
  ModelSpec model{.name = "deepseek",
                  .layers = whole(in, "layers"),
                  .hidden_size = whole(in, "hidden"),
                  .vocab_size = whole(in, "vocab")};
  const std::int64_t heads = whole(in, "heads");
  model.attention = {.heads = heads, .kv_heads = heads};
  model.attention.mla = MlaSpec{.q_lora_rank = whole(in, "q_lora"),
                                .kv_lora_rank = whole(in, "kv_lora"),
                                .qk_nope_head_dim = whole(in, "qk_nope"),
                                .qk_rope_head_dim = whole(in, "qk_rope"),
                                .v_head_dim = whole(in, "v_head")};
  model.mlp = {.intermediate_size = whole(in, "ffn"), .gated = true};
  model.moe = MoeSpec{.experts = whole(in, "routed"),
                      .experts_per_token = whole(in, "topk"),
                      .intermediate_size = whole(in, "moe_ffn"),
                      .shared_intermediate_size = whole(in, "shared") * whole(in, "moe_ffn"),
                      .router_bias = true};
  model.layer_kinds.assign(static_cast<std::size_t>(model.layers), LayerKind::moe);
  std::fill_n(model.layer_kinds.begin(), whole(in, "dense_layers"), LayerKind::dense);
  return model;
}

ModelSpec model_of(const Json& in) {
  if (in.contains("kv_lora")) return deepseek(in);
  return in.contains("ffn") ? llama(in) : gpt(in);
}

Stage whole_model(const ModelSpec& model) {
  return {.chunks = {{0, model.layers}}, .embedding = true, .head = true};
}

ModelStates states_of(const Problem& p) {
  return model_states(p, weight_inventory(p.model), whole_model(p.model));
}

double paper_states(
    double parameters, std::int64_t dp, std::int64_t mp, std::int64_t stage, std::int64_t k) {
  Problem p = problem(Runtime::zero_paper, of_size(parameters));
  p.layout.dp = dp;
  p.layout.tp = mp;
  p.layout.zero = static_cast<ZeroStage>(stage);
  p.runtime.zero_paper.optimizer_bytes = k;
  return static_cast<double>(states_of(p).total().count());
}

Answer model_state_bytes_per_gpu(const Json& row) {
  const Json& in = row.at("inputs");
  return in_unit(
      paper_states(in.at("params"), whole(in, "dp"), 1, whole(in, "zero_stage"), whole(in, "K")),
      row);
}

Answer model_state_bytes(const Json& row) {
  const Json& in = row.at("inputs");
  if (in.contains("K")) return in_unit(paper_states(in.at("params"), 1, 1, 0, whole(in, "K")), row);
  // 20 bytes: Megatron-Core in fp16, with the fp32 gradients of the optimizer step.
  Problem p = problem(Runtime::megatron, of_size(in.at("params")));
  p.runtime.megatron.make_vocab_size_divisible_by = 1;
  p.training.precision = Precision::fp16;
  const ModelStates states = states_of(p);
  return in_unit(static_cast<double>((states.total() + states.step_gradients).count()), row);
}

// The largest model whose states stay within memory, by bisection.
Answer max_model_params(const Json& row) {
  const Json& in = row.at("inputs");
  const auto memory = in.at("gpu_mem_bytes").get<double>();
  double low = 1;
  double high = 1e15;
  while (high / low > 1 + 1e-9) {
    const double middle = std::sqrt(low * high);
    const double bytes = paper_states(middle, whole(in, "dp"), whole_or(in, "mp", 1),
                                      whole(in, "zero_stage"), whole_or(in, "K", 12));
    (bytes <= memory ? low : high) = middle;
  }
  return low;
}

Answer model_state_reduction_factor(const Json& row) {
  const Json& in = row.at("inputs");
  constexpr double large = 1e14;  // so that the shards of 1e9 ranks are whole
  return paper_states(large, 1, 1, 0, whole(in, "K")) /
         paper_states(large, whole(in, "dp"), 1, whole(in, "zero_stage"), whole(in, "K"));
}

// The matrices of the decoder layers: 12 L h^2 for GPT.
std::int64_t layer_matrices(const ModelSpec& model) {
  std::int64_t sum = 0;
  for (const Weight& w : layer_weights(model, LayerKind::dense))
    sum += w.columns > 1 ? w.elements() : 0;
  return sum * model.layers;
}

Answer params_from_layers(const Json& row) {
  return static_cast<double>(layer_matrices(gpt(row.at("inputs"))));
}

Answer params(const Json& row) {
  const Json& in = row.at("inputs");
  // ZeRO-Infinity counts the matrices alone.
  if (!in.contains("vocab")) return params_from_layers(row);
  return static_cast<double>(parameter_count(model_of(in)));
}

Answer params_grads_optimizer(const Json& row) {
  const Json& in = row.at("inputs");
  const StateRecipe r = state_recipe(problem(Runtime::megatron, gpt(in)));
  const std::int64_t bytes = r.parameter_bytes + r.gradient_bytes + r.master_bytes +
                             r.first_moment_bytes + r.second_moment_bytes;
  return in_unit(static_cast<double>(bytes) * static_cast<double>(layer_matrices(gpt(in))) /
                     static_cast<double>(whole(in, "tp") * whole(in, "pp")),
                 row);
}

Answer bytes_per_param(const Json& row) {
  const Json& in = row.at("inputs");
  constexpr double size = 1 << 30;  // divides over every dp in the table
  Problem p = problem(Runtime::megatron, of_size(size));
  p.runtime.megatron.make_vocab_size_divisible_by = 1;
  p.layout.dp = whole_or(in, "dp", 1);
  p.layout.zero = in.value("distributed_optimizer", true) ? ZeroStage::optimizer : ZeroStage::none;
  const std::string dtype = in.value("dtype", "bf16p_fp32g");
  p.training.precision = dtype.starts_with("fp16")   ? Precision::fp16
                         : dtype.starts_with("fp32") ? Precision::fp32
                                                     : Precision::bf16;
  if (!in.contains("dtype")) {
    p.runtime.megatron.exp_avg_bytes = p.runtime.megatron.exp_avg_sq_bytes = 2;
    p.runtime.megatron.store_param_remainders = false;
  }
  const ModelStates states = states_of(p);
  return static_cast<double>((states.total() + states.step_gradients).count()) / size;
}

Answer gpu_bytes_per_param(const Json& row) {
  const auto placement = row.at("inputs").at("placement").get<std::string>();
  const bool none = placement == "all on gpu";
  if (!none && !placement.starts_with("p32")) return Skip{"no runtime offers this placement"};
  constexpr double size = 1e9;
  Problem p = problem(Runtime::zero_paper, of_size(size));
  if (!none) p.layout.offload = Offload::optimizer;
  return static_cast<double>(states_of(p).total().count()) / size;
}

// DeepSpeed's memory.rst, whose options say which argument is given.
EstimatorAnswer documented(const Json& in) {
  EstimatorQuestion q{.parameters = whole(in, "params"),
                      .largest_layer = whole(in, "largest_layer_params"),
                      .gpus_a_node = whole_or(in, "gpus_per_node", whole_or(in, "gpus", 1)),
                      .nodes = whole_or(in, "nodes", 1)};
  const auto options = in.value("options", in.value("case", ""));
  const auto has = [&](std::string_view text) { return options.find(text) != std::string::npos; };
  q.zero = whole_or(in, "zero_stage", 3) == 3 ? ZeroStage::parameters : ZeroStage::gradients;
  if (has("opt=cpu") || has("offload_optimizer=cpu") || has("case3"))
    q.offload = Offload::optimizer;
  if (has("param=cpu") || has("largest")) q.offload = Offload::parameters;
  q.zero_init = !has("zero_init=0");
  q.buffer_factor = in.value("additional_buffer_factor", q.buffer_factor);
  return deepspeed_estimator(q);
}

Answer estimator_gpu(const Json& row) {
  return in_unit(static_cast<double>(documented(row.at("inputs")).gpu.count()), row);
}

Answer estimator_host(const Json& row) {
  return in_unit(static_cast<double>(documented(row.at("inputs")).host_a_node.count()), row);
}

// ZeRO-Infinity: 16-bit weights and gradients of a layer's largest operator.
Answer largest_operator(const Json& row) {
  const std::int64_t h = whole(row.at("inputs"), "hidden");
  ModelSpec model{.name = "layer", .layers = 1, .hidden_size = h};
  model.attention = {.heads = 1, .kv_heads = 1, .head_dim = h};
  model.mlp = {.intermediate_size = 4 * h};
  const Problem p = problem(Runtime::zero_paper, model);
  const StateRecipe recipe = state_recipe(p);
  std::int64_t largest = 0;
  for (const Weight& w : layer_weights(p.model, LayerKind::dense)) {
    largest = std::max(largest, local_weight(w, p).elements());
  }
  return static_cast<double>((recipe.parameter_bytes + recipe.gradient_bytes) * largest);
}

// All gradients widened at once: what a step in fp16 does without ZeRO.
Answer fused_buffer(const Json& row) {
  const Json& in = row.at("inputs");
  Problem p = problem(Runtime::megatron, of_size(in.at("params").get<double>()));
  p.runtime.megatron.make_vocab_size_divisible_by = 1;
  p.training.precision = Precision::fp16;
  return in_unit(static_cast<double>(states_of(p).step_gradients.count()), row);
}

Answer active_params(const Json& row) {
  return static_cast<double>(active_parameter_count(model_of(row.at("inputs"))));
}

Answer attention_params(const Json& row) {
  const ModelSpec model = model_of(row.at("inputs"));
  std::int64_t sum = 0;
  for (const Weight& w : layer_weights(model, LayerKind::moe)) {
    const bool mlp = w.name == "norm" || w.name == "bias" || w.module.ends_with("fc1") ||
                     w.module.ends_with("fc2") || w.module == "router";
    if (!mlp) sum += w.elements();
  }
  return static_cast<double>(sum);
}

Answer routed_experts(const Json& row) {
  const Json& in = row.at("inputs");
  Problem p = problem(Runtime::megatron, ModelSpec{});
  p.layout.ep = whole(in, "ep");
  return static_cast<double>(
      local_weight({.rows = 1, .copies = whole(in, "routed"), .expert = true}, p).copies);
}

Answer world(const Json& row) {
  const Json& in = row.at("inputs");
  const Layout layout{.dp = whole(in, "dp"),
                      .tp = whole(in, "tp"),
                      .pp = whole(in, "pp"),
                      .cp = whole_or(in, "cp", 1)};
  return static_cast<double>(world_size(layout));
}

// DeepSeek-V3 on 256 GPUs: one stage of 16 MoE layers, neither embedding nor head on it.
ModelStates expert_stage(const Json& in) {
  Problem p = problem(Runtime::megatron, find_model("deepseek-v3").spec);
  p.layout = {.dp = whole(in, "dp_dense"),
              .pp = whole(in, "pp"),
              .ep = whole(in, "ep"),
              .zero = ZeroStage::optimizer};
  constexpr std::int64_t layers = 16;
  return model_states(p, weight_inventory(p.model),
                      {.chunks = {{p.model.layers - layers, p.model.layers}}});
}

Answer weights_and_grads(const Json& row) {
  const ModelStates s = expert_stage(row.at("inputs"));
  return in_unit(static_cast<double>((s.parameters + s.gradients).count()), row);
}

Answer main_weights_and_optimizer(const Json& row) {
  const ModelStates s = expert_stage(row.at("inputs"));
  return in_unit(static_cast<double>((s.master_parameters + s.optimizer_states).count()), row);
}

Answer parameter_copies(const Json& row) {
  const Json& in = row.at("inputs");
  const auto schedule = in.at("schedule").get<std::string>();
  Problem p = problem(Runtime::zero_paper,
                      ModelSpec{.name = "even", .layers = whole(in, "pp"), .hidden_size = 1});
  p.layout.pp = whole(in, "pp");
  if (schedule == "dualpipe") p.layout.schedule = Schedule::dualpipe;
  std::int64_t held = 0;
  for (const Stage& stage : stages(p)) held += layer_count(stage);
  return static_cast<double>(held) / static_cast<double>(p.model.layers);
}

const std::map<std::string, Answer (*)(const Json&)>& answers() {
  static const std::map<std::string, Answer (*)(const Json&)> table{
      {"model_state_bytes_per_gpu", model_state_bytes_per_gpu},
      {"model_state_bytes", model_state_bytes},
      {"max_model_params", max_model_params},
      {"model_state_reduction_factor", model_state_reduction_factor},
      {"params_from_12Lh2", params_from_layers},
      {"params", params},
      {"params_grads_optimizer_bytes_per_gpu", params_grads_optimizer},
      {"bytes_per_param", bytes_per_param},
      {"gpu_bytes_per_param", gpu_bytes_per_param},
      {"gpu_bytes", estimator_gpu},
      {"cpu_bytes", estimator_host},
      {"fused_buffer_bytes", fused_buffer},
      {"model_state_working_memory_bytes", largest_operator},
      {"active_params", active_params},
      {"attention_params_per_layer", attention_params},
      {"routed_experts_per_gpu", routed_experts},
      {"world_size", world},
      {"weights_and_grads_bytes_per_gpu", weights_and_grads},
      {"main_weights_and_optimizer_bytes_per_gpu", main_weights_and_optimizer},
      {"parameter_copies", parameter_copies}};
  return table;
}

}  // namespace

Answer answer(const Json& row) {
  const auto kind = row.value("kind", "");
  if (kind == "measured") return Skip{"measured, not computed"};
  if (kind == "recalled") return Skip{"recalled from memory, not read"};
  const auto quantity = row.at("expect").at("quantity").get<std::string>();
  const auto found = answers().find(quantity);
  if (found != answers().end()) return found->second(row);
  if (const auto answer = activation_answer(quantity, row)) return *answer;
  if (const auto answer = traffic_answer(quantity, row)) return *answer;
  if (const auto answer = time_answer(quantity, row)) return *answer;
  return Skip{"not modelled yet: " + quantity};
}

}  // namespace zeroplan::papers
