// Which bytes move the kernels that PyTorch runs between the products of Transformer Engine's
// grouped experts? Front doors: clamp_traffic, add_expert_biases.
#include "cost_model/kernel/expert_traffic.hpp"

#include "cost_model/rank/token_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// The grouped linear hands back the bias of the experts' last product. PyTorch weights it by the
// probabilities, in fp32, and adds it expert by expert. `elements`: of all their outputs.
void add_last_bias(std::vector<Traffic>& out, std::int64_t experts, std::int64_t elements) {
  const auto add = [&](std::int64_t forward, std::int64_t backward, std::int64_t parts) {
    const Bytes part{elements / parts};
    out.push_back({Module::expert_bias, Access::streaming, forward * part, backward * part, parts});
  };
  constexpr std::int64_t weighted = 4, sum = 2 + 4 + 4, joined = 4 + 4, narrowed = 4 + 2;
  add(weighted, narrowed, experts);
  add(sum, 0, experts);
  add(joined, 2 + 4, 1);
  add(narrowed, 2 + 2, 1);
  // Backward has widened the whole, narrows each expert's tokens, and joins them; the gradients of
  // the bias and of the probabilities are a product and its sum each.
  for (int gradient = 0; gradient < 2; ++gradient) {
    add(0, 4 + 4, experts);
    add(0, 4, experts);
  }
}

// The gradient of that bias is narrowed, and, as that of the first product's bias, which the weight
// gradient's kernel makes, added to its main gradient.
void add_bias_gradients(std::vector<Traffic>& out, const Problem& problem, std::int64_t experts) {
  const MoeSpec& moe = *problem.model.moe;
  const TokenShape token = token_shape(problem);
  const std::int64_t first = moe.intermediate_size * (moe.gated ? 2 : 1);
  const std::int64_t added = token.element + 2 * reduced_gradient_bytes(problem);
  const auto add = [&](std::int64_t bytes) {
    out.push_back({Module::expert_bias, Access::streaming, {}, Bytes{bytes}, experts});
  };
  add((4 + token.element) * token.hidden);
  add(added * token.hidden);
  add(added * first);
}

}  // namespace

// Backward PyTorch 2.14 compares what was bounded with each bound, which makes bytes, one of the
// gate's branch and two of the other's, puts the two together, and chooses gradients by them.
Traffic clamp_traffic(Bytes branch) {
  constexpr std::int64_t bounded = 2 * 2, together = 2 * 2;
  constexpr std::int64_t element = 2, compared = element + 1, both = 3, chosen = 1 + 2 * element;
  constexpr std::int64_t unbounded = 3 * compared + both + 2 * chosen;
  return {Module::expert_activation, Access::streaming, branch * (bounded + together),
          branch * (together + unbounded / element)};
}

void add_expert_biases(std::vector<Traffic>& out, const Problem& problem) {
  const std::int64_t experts = ceil_div(problem.model.moe->experts, problem.layout.ep);
  add_last_bias(out, experts, token_shape(problem).hidden * routed_tokens(problem).received);
  add_bias_gradients(out, problem, experts);
}

}  // namespace zeroplan
