// What does the step program say to published activation memory? Front door: activation_answer.
#include <algorithm>
#include <cmath>
#include <map>

#include "cost_model/program/layer_shape.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/runtime/megatron/ends.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/schedule/order.hpp"
#include "presets/catalog.hpp"
#include "tests/papers/inputs.hpp"

namespace zeroplan::papers {
namespace {

// The runs of Korthikanti et al.: local layers, unfused attention, dropout; `technique` is one of
// none, tp, tp_sp, tp_sel, tp_sp_sel, full.
Problem korthikanti(const Json& in, const std::string& technique) {
  Problem p = problem(Runtime::megatron, gpt(in));
  MegatronSettings& set = p.runtime.megatron;
  set.transformer_engine_version = MegatronSettings::no_engine;
  set.megatron_core = 1;
  set.hidden_dropout = set.attention_dropout = 0.1;
  p.training.attention = AttentionKernel::unfused;
  p.training.sequence_length = whole(in, "seq");
  p.layout.micro_batch = whole_or(in, "micro_batch", 1);
  p.layout.tp = technique == "none" ? 1 : whole_or(in, "tp", 1);
  p.layout.sequence_parallel = technique.find("sp") != std::string::npos;
  const bool selective = technique.ends_with("sel");
  p.layout.recompute = technique == "full" ? Recompute::full
                       : selective         ? Recompute::selective
                                           : Recompute::none;
  return p;
}

// Bytes a block keeps for its backward pass, of the tensors that `wanted` takes.
template <class Wanted>
std::int64_t kept(const Block& block, Wanted wanted) {
  std::vector<bool> live(block.tensors.size());
  for (const Event& event : block.forward) {
    if (event.is_of_tensor()) live[static_cast<std::size_t>(event.index)] = event.allocates();
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i] && wanted(block.tensors[i].name)) sum += block.tensors[i].bytes.count();
  }
  return sum;
}

// The paper leaves out what is small: statistics of norms.
bool counted(std::string_view name) {
  return name != "norm statistics";
}
bool is_score(std::string_view name) {
  return name == "softmax" || name == "attention dropout mask" || name == "dropped softmax";
}

double layer_bytes(const Json& in, const std::string& technique) {
  const Problem p = korthikanti(in, technique);
  const Block block = technique == "full" ? megatron_recomputed_layers(p, {LayerKind::dense})
                                          : megatron_layer(p, LayerKind::dense);
  return static_cast<double>(kept(block, counted));
}

// What a pass in flight holds: until its input gradient, and from there to its weight gradient.
struct Units {
  double until_input = 1;
  double until_weights = 1;
};

// The most that a rank holds, by counting through the schedule.
double most_held(const Pipeline& pipeline, std::int64_t rank, const Units& units) {
  double now = 0;
  double most = 0;
  for (const Pass& pass : passes(pipeline, rank)) {
    if (makes_input_gradient(pass)) now -= units.until_input;
    if (pass.kind == PassKind::input_gradient) now += units.until_weights;
    if (pass.kind == PassKind::weight_gradient) now -= units.until_weights;
    if (pass.kind == PassKind::forward) now += units.until_input;
    most = std::max(most, now);
  }
  return most;
}

Pipeline pipeline(Schedule schedule, std::int64_t pp, std::int64_t chunks) {
  return {.schedule = schedule,
          .ranks = pp,
          .chunks = chunks,
          .micro_batches = 4 * pp,
          .interleaving = {.group = pp}};
}

// Chunks in flight at most on a rank.
std::int64_t most_in_flight(std::int64_t pp, std::int64_t vpp, std::int64_t rank) {
  const Schedule schedule = vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  return std::llround(most_held(pipeline(schedule, pp, vpp), rank, {}));
}

Answer per_layer(const Json& row) {
  const Json& in = row.at("inputs");
  return layer_bytes(in, in.at("technique"));
}

Answer first_stage(const Json& row) {
  const Json& in = row.at("inputs");
  const std::int64_t pp = whole(in, "pp");
  const std::int64_t vpp = whole(in, "vpp");
  const double layers = static_cast<double>(whole(in, "layers") * most_in_flight(pp, vpp, 0)) /
                        static_cast<double>(pp * vpp);
  return in_unit(layers * layer_bytes(in, in.at("technique")), row);
}

Answer percent_of_baseline(const Json& row) {
  const Json& in = row.at("inputs");
  return 100 * layer_bytes(in, in.at("technique")) / layer_bytes(in, "tp");
}

// Section 4.3: dropout mask of the embedding for each micro-batch in flight; without a pipeline
// also the final norm's input and output and the fp32 logits.
Answer embedding_and_output(const Json& row) {
  const Json& in = row.at("inputs");
  const Problem p = korthikanti(in, "tp_sp");
  const std::int64_t pp = whole(in, "pp");
  const auto named = [](std::string_view name) {
    return [name](std::string_view other) { return other == name; };
  };
  std::int64_t bytes =
      most_in_flight(pp, 1, 0) * kept(megatron_embedding(p), named("embedding dropout mask"));
  if (pp == 1) {
    const Block head = megatron_head(p);
    bytes += kept(megatron_layer(p, LayerKind::dense), named("output"));
    bytes += kept(head, named("norm output")) + kept(head, named("fp32 softmax"));
  }
  return static_cast<double>(bytes);
}

Json with_one_layer(const Json& in) {
  Json copy = in;
  copy["layers"] = 1;
  return copy;
}

Answer scores_per_residual(const Json& row) {
  const Json in = with_one_layer(row.at("inputs"));
  const Block layer = megatron_layer(korthikanti(in, "none"), LayerKind::dense);
  const double residual =
      static_cast<double>(kept(layer, [](std::string_view n) { return n == "output"; })) / 2;
  return static_cast<double>(kept(layer, is_score)) / residual;
}

Answer selective_saving(const Json& row) {
  const Json in = with_one_layer(row.at("inputs"));
  const Block layer = megatron_layer(korthikanti(in, "none"), LayerKind::dense);
  return 100 * static_cast<double>(kept(layer, is_score)) /
         static_cast<double>(kept(layer, counted));
}

// What the outputs of the micro-batches in flight would hold if they were not freed when sent.
Answer freed_outputs(const Json& row) {
  Json in = with_one_layer(row.at("inputs"));
  in["heads"] = 1;
  const Block layer = megatron_layer(korthikanti(in, "none"), LayerKind::dense);
  const std::int64_t output = kept(layer, [](std::string_view n) { return n == "output"; });
  return in_unit(static_cast<double>(output * most_in_flight(whole(in, "pp"), 1, 0)), row);
}

Answer outstanding(const Json& row) {
  const Json& in = row.at("inputs");
  return static_cast<double>(most_in_flight(whole(in, "pp"), 1, whole(in, "stage")));
}

Answer interleave_factor(const Json& row) {
  const Json& in = row.at("inputs");
  const std::int64_t pp = whole(in, "pp");
  const std::int64_t vpp = whole(in, "vpp");
  return static_cast<double>(most_in_flight(pp, vpp, 0)) / static_cast<double>(pp * vpp);
}

Answer peak_units(const Json& row) {
  const Json& in = row.at("inputs");
  const std::optional<Schedule> schedule = schedule_of(in.at("schedule"));
  if (!schedule) return Skip{"no such schedule here"};
  return most_held(pipeline(*schedule, whole(in, "pp"), 1), whole(in, "worker") - 1,
                   {in.at("M_B"), in.at("M_W")});
}

Answer stage_units(const Json& row) {
  const Json& in = row.at("inputs");
  const std::optional<Schedule> schedule = schedule_of(in.at("schedule"));
  if (!schedule) return Skip{"no such schedule here"};
  const std::int64_t chunks = *schedule == Schedule::dualpipe ? 2 : 1;
  return most_held(pipeline(*schedule, whole(in, "pp"), chunks), 0, {});
}

// DeepSeek-V3 on 256 GPUs, PP 4, VPP 4: what the chunks in flight of rank 0 hold, 4 MoE layers
// each.
double expert_stage(const Json& in, unsigned recompute_modules) {
  Problem p = problem(Runtime::megatron, find_model("deepseek-v3").spec);
  p.training.sequence_length = whole(in, "seq");
  p.layout.ep = whole(in, "ep");
  p.layout.recompute = recompute_modules != 0 ? Recompute::selective : Recompute::none;
  p.runtime.megatron.recompute_modules = recompute_modules;
  const std::int64_t layer =
      kept(megatron_layer(p, LayerKind::moe), [](std::string_view) { return true; });
  constexpr std::int64_t layers_of_chunk = 4;  // 61 layers over 16 chunks
  return static_cast<double>(layer * layers_of_chunk *
                             most_in_flight(whole(in, "pp"), whole(in, "vpp"), 0));
}

// The report prints GiB as GB, as its tables of model states show.
constexpr double report_unit = static_cast<double>(gibi);

Answer saved_by_recompute(const Json& row) {
  const Json& in = row.at("inputs");
  // It says 30.4, 3.8 and 42.4 of the up-projections, SwiGLU and all three, where the tensors that
  // these modules make hold 39.2, 9.5 and 57.0.
  if (in.value("recompute", "") != "layernorm")
    return Skip{"the report saves less than these modules hold, and does not say why"};
  const unsigned norms = 1U << static_cast<unsigned>(RecomputeModule::layernorm);
  return (expert_stage(in, 0) - expert_stage(in, norms)) / report_unit;
}

// What is left of the checkpoints on each rank of a tensor-parallel group, as DeepSpeed divides
// them.
Answer partitioned(const Json& row) {
  const Json& in = row.at("inputs");
  Problem p = problem(Runtime::deepspeed, gpt(in));
  p.training.sequence_length = whole(in, "seq");
  p.layout.micro_batch = whole(in, "batch");
  p.layout.tp = whole(in, "mp");
  p.layout.recompute = Recompute::full;
  p.runtime.deepspeed.partition_activations = true;
  Bytes sum;
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  for (const Run& run : program.chunks.front().runs) {
    for (const TensorSpec& tensor : run.block->block().tensors) {
      if (tensor.name == "part of the checkpoint") sum += run.count * tensor.bytes;
    }
  }
  return in_unit(static_cast<double>(sum.count()), row);
}

// ZeRO sections 3.2 and 6.1, of a GPT without attention scores.
Answer textbook(const Json& row) {
  const Json& in = row.at("inputs");
  if (!in.contains("batch")) return expert_stage(in, 0) / report_unit;
  if (in.contains("Pa")) return partitioned(row);
  Problem p = problem(Runtime::zero_paper, gpt(in));
  p.training.sequence_length = whole(in, "seq");
  p.layout.micro_batch = whole(in, "batch");
  const bool none = in.at("checkpoint") == "none";
  p.layout.recompute = none ? Recompute::none : Recompute::full;
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  Bytes left;
  for (const Run& run : program.chunks.front().runs) {
    left += run.count * run.block->forward.left.allocated();
  }
  return in_unit(static_cast<double>(left.count()), row);
}

// Ring Attention's Table 1: with attention and MLP computed in blocks only a layer's input is as
// long as the sequence. The ring's own six blocks are buffers of an implementation not modelled.
Answer most_of_layer(const Json& row) {
  const Json& in = row.at("inputs");
  if (in.at("method") != "memeff_attn_ffn")
    return Skip{"no runtime computes in blocks of this size"};
  Problem p = problem(Runtime::zero_paper, {.name = "layer", .hidden_size = whole(in, "hidden")});
  p.training.sequence_length = whole(in, "seq");
  p.layout.micro_batch = whole(in, "batch");
  return static_cast<double>(layer_shape(p).residual().count());
}

}  // namespace

std::optional<Answer> activation_answer(const std::string& quantity, const Json& row) {
  static const std::map<std::string, Answer (*)(const Json&)> table{
      {"activation_bytes_per_layer_per_microbatch", per_layer},
      {"activation_bytes_first_stage", first_stage},
      {"activation_pct_of_tp_baseline", percent_of_baseline},
      {"embedding_output_activation_bytes_first_stage", embedding_and_output},
      {"5as/h", scores_per_residual},
      {"selective_activation_saving", selective_saving},
      {"output_tensor_dealloc_saving_stage0", freed_outputs},
      {"outstanding_backprop_steps", outstanding},
      {"interleave_memory_factor", interleave_factor},
      {"peak_activation_units", peak_units},
      {"activation_units", stage_units},
      {"activation_bytes", textbook},
      {"max_activation_bytes_per_layer", most_of_layer},
      {"activation_bytes_per_gpu", textbook},
      {"activation_bytes_saved_per_gpu", saved_by_recompute}};
  const auto found = table.find(quantity);
  if (found == table.end()) return std::nullopt;
  return found->second(row);
}

}  // namespace zeroplan::papers
