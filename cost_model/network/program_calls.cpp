// What does a block send? Front door: loads_of.
#include "cost_model/network/program_calls.hpp"

namespace zeroplan {
namespace {

bool is_in(const Call& call, LayerPart part) {
  return call.group == "ep" || call.group == "etp" ? has_routed(part) : has_rest(part);
}

}  // namespace

std::vector<Call> calls_beyond(const std::vector<Call>& calls, const std::vector<Call>& known) {
  std::vector<Call> more;
  more.reserve(calls.size());
  for (const Call& call : calls) add(more, call);
  for (const Call& call : known) add(more, call, -1);
  return more;
}

std::vector<CollectiveLoad> loads_of(const Problem& problem,
                                     const std::vector<Call>& calls,
                                     LayerPart part) {
  LoadList loads(problem);
  for (const Call& call : calls) {
    if (is_in(call, part)) loads.add(loads.load_of(call));
  }
  return loads.take();
}

}  // namespace zeroplan
