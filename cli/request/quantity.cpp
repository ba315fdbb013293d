// How much is that? Front doors: read_whole, read_size.
#include "cli/request/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

struct Measured {
  double value;
  std::string unit;  // in lower case, without blanks
};

// A number and what follows it. Empty where the text does not begin with one.
std::optional<Measured> measured(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  std::string unit = lower_case(text.substr(static_cast<std::size_t>(end - text.data())));
  std::erase(unit, ' ');
  return Measured{value, std::move(unit)};
}

constexpr double kibi = 1024;
constexpr double largest_size = 1e15;

}  // namespace

std::int64_t read_whole(std::string_view flag,
                        std::string_view text,
                        std::int64_t least,
                        std::int64_t largest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least ||
      value > largest) {
    throw InputError(fmt::format("{} {}: must be a whole number from {} to {}", flag,
                                 in_quotes(text), least, largest));
  }
  return value;
}

std::int64_t read_length(std::string_view flag,
                         std::string_view text,
                         std::int64_t least,
                         std::int64_t largest) {
  const auto typed = measured(text);
  const double unit = !typed ? 0 : typed->unit == "k" ? kibi : typed->unit == "m" ? kibi * kibi : 0;
  if (unit == 0) return read_whole(flag, text, least, largest);
  const double value = typed->value * unit;
  if (value != std::floor(value) || value < static_cast<double>(least) ||
      value > static_cast<double>(largest)) {
    throw InputError(fmt::format("{} {}: must be a whole number from {} to {}", flag,
                                 in_quotes(text), least, largest));
  }
  return static_cast<std::int64_t>(value);
}

std::optional<double> parse_tokens(std::string_view text) {
  auto typed = measured(text);
  if (!typed) return std::nullopt;
  std::string& unit = typed->unit;
  const bool named = unit.ends_with("tokens");
  if (named) unit.erase(unit.size() - std::string_view("tokens").size());
  constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}}};
  for (const auto& [name, each] : units) {
    if (unit != name || !(typed->value > 0)) continue;
    if (name.empty() && !named) return std::nullopt;
    return typed->value * each;
  }
  return std::nullopt;
}

Bytes read_size(std::string_view flag, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> units{
      {{"b", 1},
       {"mib", kibi * kibi},
       {"gib", kibi * kibi * kibi},
       {"tib", kibi * kibi * kibi * kibi},
       {"mb", 1e6},
       {"gb", 1e9},
       {"tb", 1e12}}};
  const auto typed = measured(text);
  for (const auto& [name, bytes] : units) {
    if (!typed || typed->unit != name) continue;
    const double value = typed->value * bytes;
    if (value >= 1 && value <= largest_size) return Bytes{static_cast<std::int64_t>(value)};
  }
  throw InputError(fmt::format("{} {}: must be a size with its unit, e.g. 70GiB or 80GB", flag,
                               in_quotes(text)));
}

Bytes read_size_or_share(std::string_view flag, std::string_view text, Bytes whole) {
  if (!text.ends_with('%')) return read_size(flag, text);
  return Bytes{std::llround(read_percent(flag, text) * static_cast<double>(whole.count()))};
}

double read_percent(std::string_view flag, std::string_view text) {
  constexpr double most = 100;
  const auto typed = measured(text);
  const bool known = typed && (typed->unit.empty() || typed->unit == "%");
  if (!known || !(typed->value >= 0 && typed->value <= most)) {
    throw InputError(
        fmt::format("{} {}: must be per cent from 0 to {}", flag, in_quotes(text), most));
  }
  return typed->value / 100;
}

std::optional<std::int64_t> parse_parameter_count(std::string_view text) {
  const auto typed = measured(text);
  const double unit = !typed               ? 0
                      : typed->unit == "m" ? 1e6
                      : typed->unit == "b" ? 1e9
                      : typed->unit == "t" ? 1e12
                                           : 0;
  if (unit == 0) return std::nullopt;
  const double parameters = typed->value * unit;
  if (!(parameters >= 1 && parameters <= largest_size)) {
    throw InputError(fmt::format("model {}: must be from 1 to 1e15 parameters", in_quotes(text)));
  }
  return static_cast<std::int64_t>(std::llround(parameters));
}

}  // namespace zeroplan
