// What is the answer to what was typed? Front door: answer_of.
#include "cli/out/answer.hpp"

#include "cli/request/quantity.hpp"
#include "cli/request/read_request.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {

FitAnswer answer_of(const LayoutArguments& arguments) {
  std::vector<std::string> notes;
  const Request request = read_request(arguments, notes);
  auto result = fit(request, read_tie(arguments));
  if (const auto* refusal = std::get_if<Refusal>(&result)) throw InputError(refusal->message);
  auto& answer = std::get<FitAnswer>(result);
  answer.origin = request.origin;
  answer.assumptions.insert(answer.assumptions.end(), notes.begin(), notes.end());
  return std::move(answer);
}

std::size_t stage_of(const std::optional<std::string>& asked, const Estimate& estimate) {
  if (!asked) return estimate.worst;
  const auto stage =
      read_whole("--stage", *asked, 0, static_cast<std::int64_t>(estimate.stages.size()) - 1);
  return static_cast<std::size_t>(stage);
}

}  // namespace zeroplan
