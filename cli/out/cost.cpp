// What does it take in all? Front doors: cost_of, cost_text.
#include "cli/out/cost.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cli/request/quantity.hpp"
#include "cost_model/answer/step_band.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

double read_tokens(const std::string& text) {
  constexpr double most = 1e18;
  const auto tokens = parse_tokens(text);
  const auto number = tokens ? tokens : parse_tokens(text + "tokens");  // a number alone
  if (number && *number <= most) return *number;
  throw InputError(fmt::format("--tokens {}: must be tokens, e.g. 1T or 300B", in_quotes(text)));
}

// 2.5/h, $2.5/h, 2.5.
double read_price(const std::string& typed) {
  std::string_view text = typed;
  if (text.starts_with('$')) text.remove_prefix(1);
  for (const std::string_view unit : {"/hour", "/hr", "/h"}) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    break;
  }
  constexpr double most = 1e6;
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (error != std::errc{} || end != text.data() + text.size() || !(price >= 0 && price <= most)) {
    throw InputError(
        fmt::format("--price {}: must be of a GPU an hour, e.g. 2.5/h", in_quotes(typed)));
  }
  return price;
}

std::string thousands(double value) {
  return with_thousands(std::llround(value));
}

// 1T, 300B, 4.2M.
std::string tokens_text(double tokens) {
  constexpr std::pair<double, std::string_view> units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
  for (const auto& [unit, sign] : units) {
    if (tokens >= unit) return fmt::format("{:g}{}", tokens / unit, sign);
  }
  return fmt::format("{:g}", tokens);
}

}  // namespace

std::optional<CostQuestion> read_cost(const CostArguments& a) {
  if (!a.tokens) {
    if (a.price) throw InputError("--price: of how many tokens? give --tokens, e.g. 1T");
    return std::nullopt;
  }
  CostQuestion question{.tokens = read_tokens(*a.tokens), .price = std::nullopt};
  if (a.price) question.price = read_price(*a.price);
  return question;
}

std::optional<TrainingCost> cost_of(const FitAnswer& plan, const CostQuestion& question) {
  const Problem& p = plan.problem;
  if (!has_time(p, plan.step)) return std::nullopt;
  const auto tokens_a_step = static_cast<double>(p.training.global_batch) *
                             static_cast<double>(p.training.sequence_length);
  TrainingCost cost;
  cost.steps = question.tokens / tokens_a_step;
  cost.seconds = cost.steps * plan.step.seconds;
  cost.gpu_hours = cost.seconds / seconds_an_hour * static_cast<double>(p.cluster.gpus);
  if (question.price) cost.money = cost.gpu_hours * *question.price;
  return cost;
}

std::string cost_text(const FitAnswer& plan, const CostQuestion& question) {
  const auto cost = cost_of(plan, question);
  if (!cost) return "";
  const double half = 100 * step_band(plan.problem).half_width;
  std::string out =
      fmt::format("  {} tokens: {:.1f} days, {} GPU hours", tokens_text(question.tokens),
                  cost->seconds / seconds_an_hour / hours_a_day, thousands(cost->gpu_hours));
  if (cost->money) {
    out += fmt::format(", {} at {:g} a GPU hour", thousands(*cost->money), *question.price);
  }
  return out + fmt::format(", give or take {:.0f} %, without a break\n", half);
}

nlohmann::ordered_json cost_json(const FitAnswer& plan, const CostQuestion& question) {
  const auto cost = cost_of(plan, question);
  if (!cost) return nullptr;
  nlohmann::ordered_json out{{"tokens", question.tokens},
                             {"steps", cost->steps},
                             {"seconds", cost->seconds},
                             {"days", cost->seconds / seconds_an_hour / hours_a_day},
                             {"gpu_hours", cost->gpu_hours}};
  if (cost->money) {
    out["price_per_gpu_hour"] = *question.price;
    out["money"] = *cost->money;
  }
  return out;
}

}  // namespace zeroplan
