#pragma once
// What a whole training takes: days, GPU hours and money of so many tokens.

#include <optional>
#include <string>

#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

inline constexpr double seconds_an_hour = 3600;
inline constexpr double hours_a_day = 24;

/// The tokens of a training, and the price of a GPU and hour where one was given.
struct CostQuestion {
  double tokens = 0;
  std::optional<double> price;
};

/// What --tokens and --price ask; empty without them. Throws InputError.
std::optional<CostQuestion> read_cost(const CostArguments& arguments);

struct TrainingCost {
  double steps = 0;  // of the plan's global batch, the last one begun counting as a part
  double seconds = 0;
  double gpu_hours = 0;
  std::optional<double> money;  // in the currency of the price
};

/// The plan's step times as many as the tokens are; nothing where no step can be timed. Without
/// interruptions, checkpoints and evaluation.
std::optional<TrainingCost> cost_of(const FitAnswer& plan, const CostQuestion& question);

/// The cost in one line, with the band of the step's time; empty where there is no cost.
std::string cost_text(const FitAnswer& plan, const CostQuestion& question);

}  // namespace zeroplan
