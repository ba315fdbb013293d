// What do both sides share that neither gives? Front door: answer_both.
#include "cli/compare/both_sides.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/compare/side.hpp"
#include "cli/out/answer.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/read_request.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

FitAnswer answer_side(const Side& side) {
  try {
    return answer_of(side.question);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", side.label, error.what()));
  }
}

std::string_view key_of(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

bool gives(const LayoutArguments& side, const TypedOption& option) {
  if (option.flag == "--set") {
    return std::any_of(side.set.begin(), side.set.end(), [&](const std::string& setting) {
      return key_of(setting) == key_of(option.value);
    });
  }
  if (option.flag == "--global-batch" && side.gradient_accumulation) return true;
  const auto& all = layout_options();
  return std::any_of(all.begin(), all.end(), [&](const LayoutOption& known) {
    return known.flag == option.flag && side.*known.text;
  });
}

// What the defaults of the training say is the same on both sides as it is.
bool is_chosen(const TypedOption& option) {
  constexpr std::string_view given[] = {"--runtime", "--seq", "--precision", "--optimizer",
                                        "--attention"};
  return std::find(std::begin(given), std::end(given), option.flag) == std::end(given);
}

// What was chosen for `base` and neither side gives.
std::vector<TypedOption> choices_beside(const LayoutArguments& a,
                                        const LayoutArguments& b,
                                        const FitAnswer& base) {
  std::vector<TypedOption> shared = options_of(base.problem);
  std::erase_if(shared, [&](const TypedOption& option) {
    return !is_chosen(option) || gives(a, option) || gives(b, option);
  });
  return shared;
}

// Empty where the side cannot be executed so.
std::optional<FitAnswer> answer_with(const LayoutArguments& typed,
                                     const std::vector<TypedOption>& shared) {
  LayoutArguments side = typed;
  for (const TypedOption& option : shared) give(side, option);
  try {
    FitAnswer answer = answer_of(side);
    std::vector<std::string> notes;
    answer.chosen = chosen_fields(read_request(typed, notes), answer.problem);
    return answer;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

int fitting(const Comparison& sides) {
  const auto fits = [](const FitAnswer& side) {
    return side.estimate.verdict != Verdict::does_not_fit ? 1 : 0;
  };
  return fits(sides.a) + fits(sides.b);
}

bool same_question(const LayoutArguments& a, const LayoutArguments& b) {
  return a.model == b.model && a.config == b.config && a.gpus == b.gpus && a.nodes == b.nodes &&
         a.cluster == b.cluster && a.runtime == b.runtime;
}

}  // namespace

Comparison answer_both(const Side& side_a, const Side& side_b, bool each) {
  const LayoutArguments& a = side_a.question;
  const LayoutArguments& b = side_b.question;
  Comparison best{.a = answer_side(side_a), .b = answer_side(side_b)};
  const bool recorded = best.a.problem.runtime.recorded || best.b.problem.runtime.recorded;
  if (each || recorded || !same_question(a, b)) return best;
  std::vector<std::string> notes;
  const LayoutArguments said_a = with_plan(a, notes);
  const LayoutArguments said_b = with_plan(b, notes);
  std::vector<TypedOption> of_a = choices_beside(said_a, said_b, best.a);
  if (of_a.empty()) return best;
  std::optional<Comparison> shared;
  if (auto other = answer_with(b, of_a)) {
    shared = Comparison{best.a, std::move(*other), ChosenFor::a, std::move(of_a)};
    if (fitting(*shared) == 2) return *shared;
  }
  std::vector<TypedOption> of_b = choices_beside(said_a, said_b, best.b);
  if (auto other = answer_with(a, of_b)) {
    Comparison now{std::move(*other), best.b, ChosenFor::b, std::move(of_b)};
    if (!shared || fitting(now) > fitting(*shared)) shared = std::move(now);
  }
  return shared ? std::move(*shared) : best;
}

Comparison compared(const CompareArguments& arguments, LayoutArguments& common) {
  const bool plans = arguments.subjects.size() == 2;
  if (plans && (arguments.a || arguments.b)) {
    throw InputError("compare: two plans, or MODEL with --a and --b, not both");
  }
  if (!plans && (!arguments.a || !arguments.b)) {
    throw InputError(
        "compare: two sides are needed: MODEL --a \"OPTIONS\" --b \"OPTIONS\", or two plan files");
  }
  if (!plans && !arguments.subjects.empty()) common.model = arguments.subjects.front();
  if (common.model == "-") {  // which can be read once
    std::vector<std::string> notes;
    common = with_plan(common, notes);
  }
  const auto side = [&](std::string_view label, const std::string& text) {
    return Side{label, read_side(common, label, text)};
  };
  return plans ? answer_both(side("plan a", arguments.subjects[0]),
                             side("plan b", arguments.subjects[1]), arguments.each)
               : answer_both(side("--a", *arguments.a), side("--b", *arguments.b), arguments.each);
}

}  // namespace zeroplan
