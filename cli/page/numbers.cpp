// How are numbers read? Front doors: gib, seconds, layout_words.
#include "cli/page/numbers.hpp"
#include "cli/out/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/out/report.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

using Json = nlohmann::ordered_json;

double gib_value(const Json& bytes) {
  return bytes.get<double>() / static_cast<double>(gibi);
}

std::string gib(const Json& bytes) {
  return bytes.is_null() ? "-" : fmt::format("{:.2f}", gib_value(bytes));
}

std::string seconds(const Json& value) {
  if (value.is_null()) return "-";
  const double s = value.get<double>();
  if (s >= 99.95) return fmt::format("{} s", rounded(s));
  if (s >= 9.995) return fmt::format("{:.1f} s", s);
  if (s >= 0.9995) return fmt::format("{:.2f} s", s);
  if (s >= 0.0995) return fmt::format("{:.0f} ms", 1e3 * s);
  if (s >= 0.00095) return fmt::format("{:.1f} ms", 1e3 * s);
  return s == 0 ? "0 s" : fmt::format("{:.1f} \u00b5s", 1e6 * s);
}

std::string percent(double part) {
  return fmt::format("{:.1f} %", 100 * part);
}

std::string rounded(double value) {
  return with_thousands(std::llround(value));
}

std::string tokens_words(const Json& tokens) {
  constexpr std::pair<double, const char*> units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
  const auto count = tokens.get<double>();
  for (const auto& [unit, sign] : units) {
    if (count >= unit) return fmt::format("{:g}{}", count / unit, sign);
  }
  return fmt::format("{:g}", count);
}

std::string probability(double value) {
  if (value > 0.99) return "above 99 %";
  if (value < 0.01) return "below 1 %";
  return fmt::format("{:.0f} %", 100 * value);
}

std::string decimal_bytes(double bytes) {
  constexpr std::pair<double, const char*> units[] = {
      {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  for (const auto& [unit, name] : units) {
    if (bytes >= unit) return fmt::format("{:.4g} {}", bytes / unit, name);
  }
  return fmt::format("{:.0f} B", bytes);
}

std::string verdict_words(const Json& verdict) {
  return spaced(verdict.get<std::string>());
}

std::string layout_words(const Json& fit) {
  const Json& l = fit.at("layout");
  const auto of = [&](const char* key) { return l.at(key).get<std::int64_t>(); };
  std::string out = fmt::format("dp {} \u00d7 tp {} \u00d7 pp {}", of("dp"), of("tp"), of("pp"));
  if (of("cp") > 1) out += fmt::format(" \u00d7 cp {}", of("cp"));
  if (of("ep") > 1) out += fmt::format(", ep {}", of("ep"));
  if (of("etp") > 1) out += fmt::format(", etp {}", of("etp"));
  if (of("vpp") > 1) out += fmt::format(", vpp {}", of("vpp"));
  out += fmt::format(", ZeRO {}", of("zero"));
  if (l.contains("hsdp")) out += fmt::format(", hsdp {}", of("hsdp"));
  out += fmt::format(", micro-batch {} \u00d7 {}, recompute {}", of("micro_batch"),
                     of("gradient_accumulation"), l.at("recompute").get<std::string>());
  if (l.at("offload") != "none") out += ", offload " + l.at("offload").get<std::string>();
  return out;
}

}  // namespace zeroplan
