// What do kernels of the residual stream move? Front doors: traffic_sizes, add_norm, sum_traffic.
#include "cost_model/kernel/residual_traffic.hpp"

#include "cost_model/kernel/spelt_traffic.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

TrafficSizes traffic_sizes(const Problem& p) {
  const TokenShape token = token_shape(p);
  const std::int64_t tokens = local_tokens(p);
  return {p, kernel_habits(p), token, tokens, ceil_div(tokens, token.norm_rows)};
}

// Forward reads the input and writes the output; backward reads input and gradient and writes one.
void add_norm(std::vector<Traffic>& out, const TrafficSizes& s, Module module, Bytes normed) {
  const bool of_heads = module == Module::query_key_norm;  // which reads a linear's 16 bits
  const bool wide = s.habits.autocast && !of_heads;
  const bool spelt = s.habits.spells_out_layers ||
                     (s.habits.spells_out_input_norm && module == Module::input_norm);
  if (spelt && !has_norm_bias(s.problem.model)) {
    return add_spelt(out, module, SpeltPart::norm, normed, wide);
  }
  const std::int64_t passes = wide ? 2 : 1;
  out.push_back({module, Access::streaming, normed * (2 * passes), normed * (3 * passes)});
}

void add_norm(std::vector<Traffic>& out, const TrafficSizes& s, Module module) {
  add_norm(out, s, module, s.residual(1));
}

// Forward adds two tensors; backward adds the gradients of the two paths that start here. Dropout
// is fused into the forward sum, with a mask of one byte; its backward is a kernel of its own.
Traffic sum_traffic(const TrafficSizes& s, Module module) {
  // Under autocast a linear's 16 bits are added to fp32, and gradients are fp32.
  const bool wide = s.habits.autocast;
  Traffic sum{module, Access::streaming, s.residual(wide ? 1 + 2 + 2 : 3),
              s.residual(wide ? 3 * 2 : 3)};
  if (drops_residuals(s.problem)) {
    const Bytes mask{s.token.hidden * s.norm_tokens};
    sum.forward += mask;
    sum.backward += s.residual(2) + mask;
  }
  return sum;
}

void add_rank_order(std::vector<Traffic>& out, const TrafficSizes& s, std::int64_t times) {
  if (!s.habits.orders_ranks || s.token.norm_rows == 1) return;
  const Bytes copied = s.features(2 * times, s.token.hidden);
  out.push_back({Module::rank_order, Access::streaming, copied, copied});
}

}  // namespace zeroplan
