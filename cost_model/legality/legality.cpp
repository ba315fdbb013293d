// Can the runtime execute this layout? Front door: first_violation.
#include "cost_model/legality/legality.hpp"

#include "cost_model/question/runtime_code.hpp"

namespace zeroplan {

const RuleBook& rules_of(const RuntimeSpec& runtime) {
  const RuleBook* book = code_of(runtime).rules;
  return *book;
}

const Rule* first_broken(const Problem& problem, std::size_t depth) {
  for (const Rule& rule : rules_of(problem.runtime).of_depth(depth)) {
    if (rule.broken(problem)) return &rule;
  }
  return nullptr;
}

std::optional<Violation> first_violation(const Problem& problem) {
  for (const Rule& rule : rules_of(problem.runtime).rules) {
    if (std::optional<std::string> reason = rule.broken(problem)) {
      return Violation{rule.id, rule.field, std::move(*reason)};
    }
  }
  return std::nullopt;
}

}  // namespace zeroplan
