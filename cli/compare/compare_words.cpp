// How is a row of a comparison read? Front doors: row_words, section_words.
#include "cli/compare/compare_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/out/report.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// A number of the document as it is shown.
struct Shown {
  std::string_view key, name;
  double scale = 1;
  int places = 3;
};

constexpr std::array<Shown, 14> shown_numbers{
    {{"seconds", "step, s"},
     {"seconds_low", "at least, s"},
     {"seconds_high", "at most, s"},
     {"compute_seconds", "computing, s"},
     {"communication_exposed_seconds", "exposed communication, s"},
     {"bubble_seconds", "bubble, s"},
     {"bubble_fraction", "bubble, %", 100, 1},
     {"straggling_seconds", "stragglers, s"},
     {"optimizer_seconds", "optimizer, s"},
     {"model_flops", "model, PFLOP", 1e-15, 1},
     {"hardware_flops", "hardware, PFLOP", 1e-15, 1},
     {"mfu", "MFU, %", 100, 1},
     {"hfu", "HFU, %", 100, 1},
     {"tflops_per_gpu", "TFLOP/s a GPU", 1, 1}}};

std::string fixed(double value, int places, bool with_sign) {
  const double least = 0.5 * std::pow(10, -places);
  if (std::abs(value) < least) value = 0;  // no -0.000
  return with_sign ? fmt::format("{:+.{}f}", value, places) : fmt::format("{:.{}f}", value, places);
}

std::string plain(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_integer()) return with_thousands(value.get<std::int64_t>());
  if (value.is_number()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RowWords numbers(const CompareRow& row, const Shown& as) {
  const auto words = [&](const Json& value, bool with_sign) {
    return value.is_number() ? fixed(value.get<double>() * as.scale, as.places, with_sign)
                             : std::string("-");
  };
  const Json difference = row.difference();
  return {std::string(as.name), words(row.a, false), words(row.b, false),
          difference.is_null() ? "" : words(difference, true)};
}

// Near its ends it is not claimed to the percent.
std::string chance(const Json& value) {
  if (!value.is_number()) return "-";
  const double part = value.get<double>();
  return part > 0.99   ? "above 99 %"
         : part < 0.01 ? "below 1 %"
                       : fmt::format("{:.0f} %", 100 * part);
}

RowWords tokens(const CompareRow& row) {
  const auto whole = [](const Json& value) {
    return value.is_number() ? with_thousands(std::llround(value.get<double>())) : std::string("-");
  };
  const Json difference = row.difference();
  const bool more = difference.is_number() && difference.get<double>() >= 0;
  return {"tokens/s a GPU", whole(row.a), whole(row.b),
          difference.is_null() ? "" : (more ? "+" : "") + whole(difference)};
}

}  // namespace

RowWords row_words(const CompareRow& row) {
  const std::string own_name = spaced(row.name);
  if (row.unit == "bytes") {
    return numbers(row, {row.name, own_name, 1 / static_cast<double>(gibi), 2});
  }
  if (row.name == "tokens_per_second_per_gpu") return tokens(row);
  if (row.name == "fit_probability") {
    return {"chance that it fits", chance(row.a), chance(row.b), ""};
  }
  const auto* known = std::ranges::find(shown_numbers, row.name, &Shown::key);
  if (row.section != "layout" && known != shown_numbers.end()) return numbers(row, *known);
  return {own_name, plain(row.a), plain(row.b), ""};
}

std::string section_words(const std::string& section) {
  if (section == "layout") return "what differs";
  if (section == "memory") return "memory of the worst stage, GiB";
  if (section == "communication") return "sent by a GPU in a step, GiB";
  return section;
}

}  // namespace zeroplan
