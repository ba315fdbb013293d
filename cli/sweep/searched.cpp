// What does a search find? Front door: searched.
#include "cli/sweep/searched.hpp"

#include <fmt/format.h>

#include "cli/request/read_request.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {

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
  if (found.answer.refusal) throw InputError(found.answer.refusal->message);
  return found;
}

}  // namespace zeroplan
