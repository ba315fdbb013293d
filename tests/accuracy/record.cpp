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

constexpr double tolerance = 0.0005;  // of an error, a fraction

struct Figures {
  std::size_t n = 0;
  double mean = 0;
  std::size_t wrong = 0;
};

using Record = std::map<std::string, Figures>;  // by family, runtime and instrument

std::string key_of(const Family& f) {
  return fmt::format("{}, {}, {}", f.family, f.runtime, f.instrument);
}

Record figures_of(const Report& report) {
  Record record;
  for (const std::vector<Family>* families : {&report.memory_families, &report.step_families}) {
    for (const Family& f : *families) record[key_of(f)] = {f.n, f.mean, f.verdicts_wrong};
  }
  return record;
}

Record read(const std::string& text) {
  Record record;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    record[json.at("family")] = {json.at("n"), json.at("mean_abs_error"),
                                 json.at("verdicts_wrong")};
  }
  return record;
}

}  // namespace

std::string record(const Report& report) {
  std::string out;
  for (const auto& [family, f] : figures_of(report)) {
    const Json line{{"family", family},
                    {"n", f.n},
                    {"mean_abs_error", std::round(f.mean * 1e5) / 1e5},
                    {"verdicts_wrong", f.wrong}};
    out += line.dump() + "\n";
  }
  return out;
}

std::vector<std::string> worse_than(const Report& report, const std::string& recorded) {
  const Record now = figures_of(report);
  const Record before = read(recorded);
  std::vector<std::string> lines;
  for (const auto& [family, was] : before) {
    const auto found = now.find(family);
    if (found == now.end()) {
      lines.push_back(fmt::format("{}: recorded, not predicted any more", family));
      continue;
    }
    const Figures& is = found->second;
    if (is.n < was.n) lines.push_back(fmt::format("{}: {} rows, were {}", family, is.n, was.n));
    if (is.mean > was.mean + tolerance) {
      lines.push_back(
          fmt::format("{}: {:.2f} %, was {:.2f} %", family, 100 * is.mean, 100 * was.mean));
    }
    if (is.wrong > was.wrong) {
      lines.push_back(fmt::format("{}: {} wrong verdicts, were {}", family, is.wrong, was.wrong));
    }
  }
  for (const auto& [family, is] : now) {
    if (!before.contains(family)) lines.push_back(fmt::format("{}: not recorded", family));
  }
  return lines;
}

}  // namespace zeroplan::accuracy
