// What does a search find? Front door: searched.
#include "cli/sweep/searched.hpp"

#include <fmt/format.h>

#include "cli/request/read_request.hpp"
#include "planner/candidates.hpp"
#include "planner/nearest.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// All points broke a rule: why the first one did, and what to leave open where no single value
// would do.
[[noreturn]] void refuse(const Request& request, const SweepAnswer& answer) {
  const LayoutChoice first = candidates(request).front();
  const auto violation = first_violation(complete(request, first));
  if (violation) throw InputError(refusal_message(request, first, *violation));
  std::string message = "the runtime can execute no layout of this space";
  for (const std::vector<Field>& fields : answer.releases) {
    for (const Field field : fields) message += fmt::format("; leave --{} open", name_of(field));
    break;
  }
  throw InputError(message);
}

}  // namespace

Searched searched(const SweepArguments& arguments,
                  const Watch& watch,
                  std::vector<std::string> notes) {
  Searched found{.question = read_question(arguments, notes), .answer = {}};
  const Request& request = found.question.request;
  if (request.model.layers == 0) {
    throw InputError(
        fmt::format("model {}: a size alone has no layers to divide or to time; sweep "
                    "needs a model",
                    arguments.layout.model));
  }
  found.answer = sweep(found.question, watch);
  for (Plan& plan : found.answer.plans) {
    plan.answer.origin = request.origin;
    plan.answer.assumptions.insert(plan.answer.assumptions.end(), notes.begin(), notes.end());
  }
  const SearchResult& search = found.answer.search;
  // Where some lack memory too, a field to leave open says more than a rule.
  const bool has_remedy =
      search.rejected.contains(bound_too_large) && !found.answer.releases.empty();
  if (!search.stopped && !found.answer.executable && !has_remedy) refuse(request, found.answer);
  return found;
}

}  // namespace zeroplan
