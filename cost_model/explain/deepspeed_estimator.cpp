// What would DeepSpeed's documentation answer? Front door: deepspeed_estimator.
#include "cost_model/explain/deepspeed_estimator.hpp"

#include <algorithm>

#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// Bytes of a parameter.
constexpr std::int64_t half = 2;
constexpr std::int64_t fp32 = 4;
constexpr std::int64_t master_and_moments = 16;  // gradients in fp32 among them

EstimatorAnswer stage_2(const EstimatorQuestion& q, std::int64_t gpus) {
  const std::int64_t p = q.parameters;
  // Each process of a node makes the whole model in fp32 first.
  const std::int64_t made = fp32 * q.gpus_a_node * p;
  if (q.offload == Offload::none) {
    return {Bytes{fp32 * p + master_and_moments * p / gpus}, Bytes{made}};
  }
  return {Bytes{half * p}, Bytes{std::max(fp32 * gpus, master_and_moments) * p}};
}

EstimatorAnswer stage_3(const EstimatorQuestion& q, std::int64_t gpus) {
  const std::int64_t p = q.parameters;
  const Bytes gathered{fp32 * q.largest_layer};
  const Bytes made = q.zero_init ? q.gpus_a_node * gathered : Bytes{fp32 * q.gpus_a_node * p};
  const std::int64_t share = half + master_and_moments;
  switch (q.offload) {
    case Offload::optimizer: {
      const Bytes kept{master_and_moments * p / q.nodes};
      return {gathered + Bytes{half * p / gpus}, q.zero_init ? kept : std::max(kept, made)};
    }
    case Offload::parameters: {
      const Bytes kept{share * p / q.nodes};
      return {gathered, q.zero_init ? kept : std::max(kept, made)};
    }
    default:
      return {gathered + Bytes{share * p / gpus}, made};
  }
}

}  // namespace

EstimatorAnswer deepspeed_estimator(const EstimatorQuestion& question) {
  const std::int64_t gpus = question.gpus_a_node * question.nodes;
  EstimatorAnswer answer =
      question.zero == ZeroStage::parameters ? stage_3(question, gpus) : stage_2(question, gpus);
  answer.host_a_node = Bytes{static_cast<std::int64_t>(
      question.buffer_factor * static_cast<double>(answer.host_a_node.count()))};
  return answer;
}

std::optional<EstimatorAnswer> deepspeed_estimator(const Problem& problem) {
  const Layout& l = problem.layout;
  const bool asked = problem.runtime.kind == Runtime::deepspeed && l.tp == 1 && l.pp == 1 &&
                     l.zero >= ZeroStage::gradients && l.offload != Offload::activations;
  if (!asked) return std::nullopt;
  EstimatorQuestion q{.zero = l.zero,
                      .offload = l.offload,
                      .parameters = parameter_count(problem.model),
                      .gpus_a_node = std::min(problem.cluster.gpus_per_node, problem.cluster.gpus)};
  q.nodes = ceil_div(problem.cluster.gpus, q.gpus_a_node);
  const WeightInventory all = weight_inventory(problem.model);
  const auto compare = [&](const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) {
      q.largest_layer = std::max(q.largest_layer, weight.rows * weight.columns);
    }
  };
  compare(all.embedding);
  std::ranges::for_each(all.layers, compare);
  compare(all.head);
  return deepspeed_estimator(q);
}

}  // namespace zeroplan
