// Of which sizes is a number the product? Front door: formulas.
#include "cost_model/explain/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace zeroplan {
namespace {

using Values = std::vector<std::int64_t>;
__extension__ typedef __int128 Wide;  // products of sizes, before they are divided

// A problem that was asked about, what it answered, and its element counts.
struct Sample {
  Values numbers;
  std::vector<Symbol> counts;
};

struct Doubled {
  Symbol symbol;
  Sample before, after;
};

Wide product(const std::vector<Formula::Power>& powers, bool above) {
  Wide result = 1;
  for (const Formula::Power& p : powers) {
    for (int i = 0; i < std::abs(p.exponent); ++i) {
      if ((p.exponent > 0) == above) result *= p.symbol.value;
    }
  }
  return result;
}

// The power of two by which `after` is `before`, up to rounding; empty when it is none of these.
std::optional<int> exponent(std::int64_t before, std::int64_t after, std::int64_t unit) {
  const std::int64_t slack = unit > 1 ? 2 * unit : 0;
  for (const int power : {0, 1, 2, -1}) {
    const std::int64_t scaled = power >= 0 ? before << power : before / 2;
    if (std::abs(after - scaled) <= slack) return power;
  }
  return std::nullopt;
}

// What is left of the number when all powers are taken out, as a fraction of a small divisor.
bool find_factor(Formula& formula, std::int64_t number) {
  const Wide above = product(formula.powers, true);
  const Wide below = product(formula.powers, false);
  // A factor cannot be told from its neighbours where it changes less than the rounding.
  if (formula.unit > 1 && above < formula.unit * below) return false;
  for (const std::int64_t divisor : {1, 2, 4, 8}) {
    formula.divisor = divisor;
    formula.factor = static_cast<std::int64_t>(number * divisor * below / above);
    if (formula.factor > 0 && formula.value() == number) return true;
  }
  return false;
}

std::optional<Formula> as_product(std::size_t i,
                                  std::int64_t number,
                                  const std::vector<Doubled>& doubled,
                                  std::int64_t unit) {
  Formula formula{.unit = unit};
  const std::int64_t too_small_to_tell = unit > 1 ? 16 * unit : 0;
  if (number <= too_small_to_tell) return std::nullopt;
  bool sum = false;
  for (const Doubled& d : doubled) {
    const std::int64_t before = d.before.numbers[i];
    const auto power = exponent(before, d.after.numbers[i], unit);
    sum = sum || !power;
    if (power.value_or(0) != 0) formula.powers.push_back({d.symbol, *power});
  }
  // Bytes a token say something even where they are a sum; bytes for each of anything else do not.
  const auto above = [](const Formula::Power& p) { return p.exponent > 0; };
  const auto of_tokens = [](const Formula::Power& p) { return p.symbol.name == "s"; };
  const auto& powers = formula.powers;
  if (std::none_of(powers.begin(), powers.end(), above) ||
      (sum && std::none_of(powers.begin(), powers.end(), of_tokens)) ||
      !find_factor(formula, number)) {
    return std::nullopt;
  }
  return formula;
}

std::optional<Formula> as_elements(std::size_t i,
                                   const Sample& base,
                                   const std::vector<Doubled>& doubled,
                                   std::int64_t unit) {
  constexpr std::int64_t widest = 16;  // bytes an element, all states together
  for (std::size_t c = 0; c < base.counts.size(); ++c) {
    const Symbol& count = base.counts[c];
    if (count.value == 0) continue;
    Formula formula{.powers = {{count, 1}}, .unit = unit};
    if (!find_factor(formula, base.numbers[i]) || formula.divisor > 1 || formula.factor > widest) {
      continue;
    }
    const auto holds = [&](const Sample& sample) {
      const Wide value = static_cast<Wide>(formula.factor) * sample.counts[c].value;
      return static_cast<Wide>(sample.numbers[i]) == (value + unit - 1) / unit * unit;
    };
    bool everywhere = true;
    for (const Doubled& d : doubled) everywhere = everywhere && holds(d.before) && holds(d.after);
    if (everywhere) return formula;
  }
  return std::nullopt;
}

std::string join(const std::vector<std::string>& factors, std::string_view between) {
  std::string text;
  for (const std::string& f : factors) text += (text.empty() ? "" : std::string(between)) + f;
  return text;
}

// The factors above and below the line, as `say` writes a symbol.
template <class Say>
std::string fraction(const Formula& f, std::string_view between, Say&& say) {
  std::vector<std::string> above;
  std::vector<std::string> below;
  if (f.factor != 1) above.push_back(fmt::format("{}", f.factor));
  if (f.divisor != 1) below.push_back(fmt::format("{}", f.divisor));
  for (const Formula::Power& p : f.powers) {
    for (int i = 0; i < std::abs(p.exponent); ++i) {
      (p.exponent > 0 ? above : below).push_back(say(p.symbol));
    }
  }
  if (above.empty()) above.emplace_back("1");
  std::string text = join(above, between);
  if (below.size() == 1) text += " / " + below.front();
  if (below.size() > 1) text += " / (" + join(below, between) + ")";
  return text;
}

}  // namespace

std::int64_t Formula::value() const {
  const Wide above = product(powers, true) * factor;
  const Wide below = product(powers, false) * divisor;
  const Wide exact = (above + below - 1) / below;
  return static_cast<std::int64_t>((exact + unit - 1) / unit * unit);
}

std::string Formula::in_symbols() const {
  return fraction(*this, " ", [](const Symbol& s) { return std::string(s.name); });
}

std::string Formula::in_numbers() const {
  return fraction(*this, " x ", [](const Symbol& s) { return fmt::format("{}", s.value); });
}

std::vector<std::optional<Formula>> formulas(const Problem& problem,
                                             const Stage& stage,
                                             const Measure& measure,
                                             std::int64_t unit) {
  const auto sample = [&](const Problem& p) {
    return Sample{measure(p), element_counts(p, stage)};
  };
  const Sample base = sample(problem);
  const std::size_t size = base.numbers.size();
  if (problem.runtime.recorded) return std::vector<std::optional<Formula>>(size);
  std::vector<Doubled> doubled;
  for (const Doubling& d : doublings(problem)) {
    Doubled both{d.symbol, sample(d.before), sample(d.after)};
    // A size that changes which numbers there are stays a part of the factors.
    if (both.before.numbers.size() == size && both.after.numbers.size() == size) {
      doubled.push_back(std::move(both));
    }
  }
  std::vector<std::optional<Formula>> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    result[i] = as_elements(i, base, doubled, unit);
    if (!result[i]) result[i] = as_product(i, base.numbers[i], doubled, unit);
  }
  return result;
}

}  // namespace zeroplan
