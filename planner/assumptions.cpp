// What did the answer take for granted? Front door: assumptions.
#include <fmt/format.h>

#include "cost_model/answer/step_band.hpp"
#include "cost_model/explain/rank_map.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/network/fabric.hpp"
#include "cost_model/question/units.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/states/state_recipe.hpp"
#include "planner/request.hpp"

namespace zeroplan {
namespace {

void add_stage_split(std::vector<std::string>& out,
                     const Request& request,
                     const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const MegatronSettings& asked = request.runtime.megatron;
  std::string how;
  if (set.account_for_embedding_in_pipeline_split &&
      !asked.account_for_embedding_in_pipeline_split) {
    how += " account_for_embedding_in_pipeline_split";
  }
  if (set.account_for_loss_in_pipeline_split && !asked.account_for_loss_in_pipeline_split) {
    how += " account_for_loss_in_pipeline_split";
  }
  if (set.decoder_first_pipeline_num_layers != asked.decoder_first_pipeline_num_layers) {
    how += fmt::format(" decoder_first_pipeline_num_layers={} decoder_last_pipeline_num_layers={}",
                       set.decoder_first_pipeline_num_layers, set.decoder_last_pipeline_num_layers);
  }
  if (!how.empty()) {
    const std::int64_t chunks = problem.layout.pp * problem.layout.vpp;
    out.push_back(fmt::format(
        "{} layers {} over {} stages; split by{}", problem.model.layers,
        problem.model.layers % chunks == 0 ? "divide unevenly" : "do not divide", chunks, how));
  }
}

// "fp32 states", where the runtime keeps them so.
std::string states(const Problem& problem) {
  const StateRecipe recipe = state_recipe(problem);
  const auto format = [](std::int64_t bytes) { return bytes == 4 ? "fp32" : "16-bit"; };
  const std::string_view first = format(recipe.first_moment_bytes);
  const std::string_view second = format(recipe.second_moment_bytes);
  return first == second ? fmt::format("{} states", first)
                         : fmt::format("{} exp_avg and {} exp_avg_sq", first, second);
}

void add_measured_speeds(std::vector<std::string>& out, const ClusterSpec& cluster) {
  const GpuSpec& gpu = cluster.gpu;
  if (gpu.product_speed == 1 && gpu.memory_speed == 1) return;
  out.push_back(fmt::format(
      "as measured on this cluster, products run at {:.2f} and memory streams at {:.2f} "
      "of what is expected of {}",
      gpu.product_speed, gpu.memory_speed, gpu.name));
}

// Where it was asked for among several GPUs, of which none holds the same parameters as another.
void add_idle_zero(std::vector<std::string>& out, const Request& request, const Problem& problem) {
  const Layout& l = problem.layout;
  if (!request.zero || l.zero == ZeroStage::none) return;
  if (problem.cluster.gpus == 1 || l.dp * l.cp > 1) return;
  out.push_back(fmt::format(
      "ZeRO {} divides nothing: with dp 1 no two GPUs hold the same parameters", name_of(l.zero)));
}

// An allocation is rarely so.
void add_node_order(std::vector<std::string>& out, const ClusterSpec& cluster) {
  if (!cluster.fabric || cluster.gpus <= cluster.gpus_per_node) return;
  const FabricSpec& fabric = cluster.fabric->spec();
  if (!fabric.nodes.empty()) return;
  out.push_back(
      fmt::format("ranks fill one {} after the other, without a hole (\"fabric\": \"nodes\")",
                  fabric.levels.front().name));
}

void add_timing(std::vector<std::string>& out, const Problem& p) {
  const GpuSpec& gpu = p.cluster.gpu;
  if (const std::string_view other = stand_in_generation(gpu); !other.empty()) {
    out.push_back(fmt::format("{} is timed with {}'s efficiencies, no others being known for {}",
                              gpu.name, other,
                              gpu.architecture.empty() ? "its generation" : gpu.architecture));
  }
  const StepBand band = step_band(p);
  if (band.measured) return;
  out.push_back(
      fmt::format("the step may be {:.0f} % off: no measured run of {} in {} on {} {} is "
                  "known",
                  100 * band.half_width, *code_of(p).name, name_of(p.training.precision),
                  gpu.architecture.empty() ? gpu.name : gpu.architecture,
                  p.model.moe ? "with experts" : "without experts"));
}

}  // namespace

std::vector<std::string> assumptions(const Request& request, const Problem& problem) {
  const TrainingSpec& t = problem.training;
  const Layout& l = problem.layout;
  std::vector<std::string> out;
  if (!request.sequence_length)
    out.push_back(fmt::format("sequence length {} (--seq)", t.sequence_length));
  const std::int64_t longest = problem.model.max_position_embeddings;
  if (longest > 0 && t.sequence_length > longest) {
    out.push_back(fmt::format("{} tokens are more than the model's max_position_embeddings, {}",
                              t.sequence_length, longest));
  }
  if (!request.global_batch && !request.gradient_accumulation) {
    out.push_back(fmt::format("global batch {} = {:.2f} million tokens (--global-batch)",
                              t.global_batch,
                              static_cast<double>(t.global_batch * t.sequence_length) / 1e6));
  }
  if (!request.micro_batch)
    out.push_back(fmt::format("micro-batch {} (--micro-batch)", l.micro_batch));
  if (!request.precision) out.push_back(fmt::format("{} (--precision)", name_of(t.precision)));
  if (!request.optimizer) out.push_back(fmt::format("Adam with {} (--optimizer)", states(problem)));
  add_idle_zero(out, request, problem);
  const RuntimeCode& code = code_of(problem);
  if (code.counts_only) {
    for (std::string& own : code.assumptions(problem)) out.push_back(std::move(own));
    return out;
  }
  if (!request.attention) {
    out.push_back(fmt::format("{} attention (--attention), dropout 0", name_of(t.attention)));
  }
  if (!request.sequence_parallel && l.sequence_parallel) {
    out.emplace_back("sequence parallelism with tensor parallelism (--sequence-parallel)");
  }
  for (std::string& own : code.assumptions(problem)) out.push_back(std::move(own));
  for (std::string& far : far_groups(problem)) out.push_back(std::move(far));
  add_node_order(out, problem.cluster);
  add_stage_split(out, request, problem);
  if (problem.model.norms_after && !code.transformers_layers(problem)) {
    out.push_back(fmt::format("norms stand before attention and MLP, not after them as {}'s do",
                              problem.model.family));
  }
  if (problem.model.moe) out.emplace_back("experts receive equal numbers of tokens");
  if (problem.model.mtp_layers > 0 && trained_mtp_modules(problem) == 0) {
    out.push_back(fmt::format("the multi-token-prediction module is not trained{}",
                              (*code.choices).trains_mtp ? " (--set mtp_num_layers=1)" : ""));
  }
  add_timing(out, problem);
  add_measured_speeds(out, problem.cluster);
  const MeasuredOverheads& seen = problem.cluster.overheads;
  out.push_back(fmt::format(
      "allocated bytes are summed tensor by tensor and the allocator is replayed; communicators "
      "and context are {}",
      seen.context == Bytes{}      ? "estimates"
      : seen.communicators.empty() ? "an estimate and what was measured on this cluster"
                                   : "what was measured on this cluster, where it was"));
  return out;
}

std::vector<std::string> assumptions_beside_choice(const Request& request, const Problem& problem) {
  Request chosen = request;
  chosen.micro_batch = problem.layout.micro_batch;
  chosen.sequence_parallel = problem.layout.sequence_parallel;
  return assumptions(chosen, problem);
}

}  // namespace zeroplan
