// Has a family got worse? Front door: worse_than.
#include "tests/accuracy/record.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace zeroplan::accuracy {
namespace {

using Json = nlohmann::ordered_json;

// Of an error, a fraction: what rounding may do. One tensor of one row moves a family by more.
constexpr double tolerance = 1e-5;

struct Figures {
  std::size_t n = 0;
  double mean = 0, max = 0;
  std::size_t wrong = 0;
};

using Record = std::map<std::string, Figures>;  // by family, runtime and instrument

std::string key_of(const Family& f) {
  return fmt::format("{}, {}, {}", f.family, f.runtime, f.instrument);
}

Record figures_of(const Report& report) {
  Record record;
  for (const std::vector<Family>* families : {&report.memory_families, &report.step_families}) {
    for (const Family& f : *families) record[key_of(f)] = {f.n, f.mean, f.max, f.verdicts_wrong};
  }
  return record;
}

Record read(const std::string& text) {
  Record record;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    record[json.at("family")] = {json.at("n"), json.at("mean_abs_error"), json.at("max_abs_error"),
                                 json.at("verdicts_wrong")};
  }
  return record;
}

double rounded(double error) {
  return std::round(error * 1e6) / 1e6;
}

}  // namespace

std::string record(const Report& report) {
  std::string out;
  for (const auto& [family, f] : figures_of(report)) {
    const Json line{{"family", family},
                    {"n", f.n},
                    {"mean_abs_error", rounded(f.mean)},
                    {"max_abs_error", rounded(f.max)},
                    {"verdicts_wrong", f.wrong}};
    out += line.dump() + "\n";
  }
  return out;
}

std::vector<std::string> worse_than(const Report& report, const std::string& recorded) {
  const Record now = figures_of(report);
  const Record old = read(recorded);
  std::vector<std::string> lines;
  for (const auto& [family, was] : old) {
    const auto found = now.find(family);
    if (found == now.end()) {
      lines.push_back(fmt::format("{}: recorded, not predicted any more", family));
      continue;
    }
    const Figures& is = found->second;
    if (is.n < was.n) lines.push_back(fmt::format("{}: {} rows, were {}", family, is.n, was.n));
    const auto compare = [&](const char* what, double error, double before) {
      if (error <= before + tolerance) return;
      lines.push_back(
          fmt::format("{}: {} {:.3f} %, was {:.3f} %", family, what, 100 * error, 100 * before));
    };
    compare("mean", is.mean, was.mean);
    compare("largest", is.max, was.max);
    if (is.wrong > was.wrong) {
      lines.push_back(fmt::format("{}: {} wrong verdicts, were {}", family, is.wrong, was.wrong));
    }
  }
  for (const auto& [family, is] : now) {
    if (!old.contains(family)) lines.push_back(fmt::format("{}: not recorded", family));
  }
  return lines;
}

}  // namespace zeroplan::accuracy
