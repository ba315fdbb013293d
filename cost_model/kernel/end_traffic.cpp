// Which bytes do the memory-bound kernels at both ends of a model move? Front doors:
// embedding_traffic, head_traffic.
#include "cost_model/kernel/cast_traffic.hpp"
#include "cost_model/kernel/residual_traffic.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// What several parts move beside the loss itself.
void add_parts(std::vector<Traffic>& out,
               const TrafficSizes& s,
               const LossParts& parts,
               Bytes logits) {
  const std::int64_t element = s.token.element;
  if (parts.of_logits()) {
    // The gradients of all parts become one tensor.
    out.push_back({Module::gradient_of_parts, Access::streaming, {}, 2 * logits});
    return;
  }
  constexpr std::int64_t fp32 = 4;
  const auto add = [&](std::int64_t bytes, std::int64_t elements, std::int64_t times) {
    out.push_back(
        {Module::gradient_of_parts, Access::streaming, Bytes{bytes * elements}, {}, times});
  };
  // The weight's: the first is widened to the reduction's format, the others are added to it
  // (torch/distributed/fsdp/_fully_shard/_fsdp_param.py to_accumulated_grad_if_needed,
  // accumulate_unsharded_grad_if_needed).
  const std::int64_t words =
      local_weight(embedding_weights(s.problem.model).front(), s.problem).elements();
  if (element < fp32) add(element + fp32, words, 1);
  add(fp32 + element + fp32, words, parts.count - 1);
  // The hidden state's: widened and copied into a buffer of zeros, which is narrowed in the end
  // (torchtitan components/loss.py GradAccumulator).
  const std::int64_t features = s.token.hidden * s.tokens;
  const std::int64_t part = ceil_div(features, parts.count);
  add(fp32, features, 1);
  if (element < fp32) add(element + fp32, part, parts.count);
  add(2 * fp32, part, parts.count);
  if (element < fp32) add(fp32 + element, features, 1);
}

}  // namespace

std::vector<Traffic> embedding_traffic(const Problem& problem) {
  const TrafficSizes s = traffic_sizes(problem);
  std::int64_t table = local_weight(embedding_weights(problem.model).front(), problem).elements();
  // PyTorch writes a dense gradient of the table, zeros and all, and adds it to the sum.
  const std::int64_t own = s.habits.embedding_sum_bytes;
  const std::int64_t sum = own > 0 ? own : 3 * s.token.element;
  const Bytes gradient{(s.token.element + sum) * table};
  std::vector<Traffic> out{
      {Module::embedding, Access::streaming, s.residual(2), s.residual(2) + gradient}};
  if (problem.model.learned_positions > 0) out.push_back(sum_traffic(s, Module::embedding));
  if (problem.model.embedding_norm) add_norm(out, s, Module::embedding);
  add_rank_order(out, s, 1);
  return out;
}

std::vector<Traffic> head_traffic(const Problem& problem) {
  const TrafficSizes s = traffic_sizes(problem);
  const Weight words = embedding_weights(problem.model).front();
  const std::int64_t logits = s.tokens * local_weight(words, problem).rows;
  const LossTraffic loss = s.habits.loss;
  const LossParts parts = loss_parts(problem);
  const std::int64_t part = ceil_div(logits, parts.count);
  std::vector<Traffic> out{
      {Module::loss, Access::streaming, Bytes{loss.forward * part}, Bytes{loss.backward * part}}};
  if (parts.count > 1) add_parts(out, s, parts, Bytes{s.token.element * logits});
  if (problem.model.final_norm) add_norm(out, s, Module::final_norm);
  add_rank_order(out, s, 1);
  add_head_casts(out, problem);
  return out;
}

}  // namespace zeroplan
