// In which order are layouts tried? Front door: candidates.
#include "planner/candidates.hpp"

#include <algorithm>
#include <tuple>

namespace zeroplan {
namespace {

// Small is preferred. Recompute costs a third of the compute, context parallelism a ring of keys
// and values a layer; then every doubling of tp x pp costs traffic or bubble, and pp more than tp
// inside a node. Of two ZeRO stages that fit the lower sends less.
auto preference(const LayoutChoice& c) {
  return std::tuple(c.recompute, c.cp, c.tp * c.pp, c.pp, c.etp, c.ep, c.zero);
}

}  // namespace

LayoutChoice with_given_fields(const Request& request, LayoutChoice choice) {
  choice.tp = request.tp.value_or(choice.tp);
  choice.pp = request.pp.value_or(choice.pp);
  choice.cp = request.cp.value_or(choice.cp);
  choice.ep = request.ep.value_or(choice.ep);
  choice.etp = request.etp.value_or(choice.etp);
  choice.zero = request.zero.value_or(choice.zero);
  choice.recompute = request.recompute.value_or(choice.recompute);
  return choice;
}

std::vector<LayoutChoice> candidates(const Request& request) {
  const LayoutSpace space = layout_space(request);
  std::vector<LayoutChoice> points;
  for (const Recompute recompute : space.recompute) {
    for (const std::int64_t cp : space.cp) {
      for (const std::int64_t tp : space.tp) {
        for (const std::int64_t pp : space.pp) {
          for (const std::int64_t ep : space.ep) {
            for (const bool whole : space.whole_experts) {
              if (!whole && tp == 1) continue;  // the same point
              for (const ZeroStage zero : space.zero) {
                points.push_back(
                    with_given_fields(request, {tp, pp, cp, ep, whole ? 1 : tp, zero, recompute}));
              }
            }
          }
        }
      }
    }
  }
  std::stable_sort(points.begin(), points.end(), [](const LayoutChoice& a, const LayoutChoice& b) {
    return preference(a) < preference(b);
  });
  return points;
}

}  // namespace zeroplan
