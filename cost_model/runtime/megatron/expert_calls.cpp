// What do ranks send each other for their experts? Front door: ExpertCalls.
#include "cost_model/runtime/megatron/expert_calls.hpp"

#include <cmath>

#include "cost_model/network/rank_groups.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {

void ExpertCalls::dispatch() const {
  gather_map();
  exchange(probabilities());
  inside(Collective::all_gather);
}

void ExpertCalls::combine() const {
  inside(Collective::reduce_scatter);
  exchange();
}

void ExpertCalls::dispatch_gradients() const {
  exchange();
  inside(Collective::all_gather);
}

void ExpertCalls::combine_gradients() const {
  inside(Collective::reduce_scatter);
  exchange(probabilities());
}

bool ExpertCalls::is_hybrid() const {
  const MegatronSettings& set = s_.settings();
  return s_.problem.layout.ep > 1 && counts_expert_ranks(set) &&
         set.moe_flex_dispatcher_backend == FlexBackend::hybridep;
}

std::int64_t ExpertCalls::ranks_of_node() const {
  const Layout& l = s_.problem.layout;
  return ranks_on_a_node(s_.problem.cluster, {"ep", l.ep, l.etp});
}

void ExpertCalls::gather_map() const {
  if (!is_hybrid()) return;
  const std::int64_t tokens = routed_tokens(s_.problem).local * s_.problem.layout.ep;
  w_.call("ep", Collective::all_gather, Bytes{tokens * s_.problem.model.moe->experts});
}

// Bytes beside a token.
std::int64_t ExpertCalls::probabilities() const {
  constexpr std::int64_t fp32 = 4;
  if (!is_hybrid()) return 0;
  return fp32 * ceil_div(s_.problem.model.moe->experts, s_.problem.layout.ep) * ranks_of_node();
}

Bytes ExpertCalls::rows(std::int64_t tokens) const {
  return Bytes{s_.token.element * s_.token.routed * tokens};
}

// `beside`: bytes that travel with each token.
void ExpertCalls::exchange(std::int64_t beside) const {
  if (!counts_expert_ranks(s_.settings())) {
    return w_.call("ep", Collective::all_to_all, rows(routed_tokens(s_.problem).sent));
  }
  const Layout& l = s_.problem.layout;
  if (l.ep == 1) return;
  const std::int64_t nodes = l.ep / ranks_of_node();
  const auto send = [&](std::int64_t places, Across across) {
    const std::int64_t copies = once_each(places);
    w_.call({"ep", Collective::all_to_all, w_.during(), rows(copies) + Bytes{beside * copies}, 1,
             Beside::nothing, across});
  };
  send(nodes, Across::nodes);
  send(l.ep, Across::node);
}

// Copies of tokens, one for each of these places that a token's experts are in.
std::int64_t ExpertCalls::once_each(std::int64_t places) const {
  const double copies = reached_places(places, *s_.problem.model.moe);
  return std::llround(static_cast<double>(routed_tokens(s_.problem).local) * copies);
}

void ExpertCalls::inside(Collective what) const {
  const std::int64_t etp = s_.problem.layout.etp;
  if (etp > 1) w_.call("etp", what, etp * rows(routed_tokens(s_.problem).sent));
}

}  // namespace zeroplan
