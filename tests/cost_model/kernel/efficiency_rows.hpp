#pragma once
// Measured kernels of tests/reference/efficiency.jsonl, and how far predictions are from them.
//
// The file holds every fourth row of the GEMMs and prefill attentions of ai-dynamo/aiconfigurator
// @095f58a5, and all rows of the other sources: MooreThreads/SimuMax @4dcaae5, figures of the
// FlashAttention-3 paper, and smaller ones (each row names its own). Constants were fitted on lines
// with an even number, counted from 0. A held-out line is often the neighbour of a fitted one: the
// same kernel at the next size, at times the same shape measured again.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace zeroplan::tests {

struct EfficiencyRow {
  nlohmann::json json;
  bool fitted = false;
  std::string gpu() const { return json["gpu"]; }
  std::string op() const { return json["op"]; }
  std::string layout() const { return json["layout"].is_null() ? "" : json["layout"]; }
  std::int64_t size(const char* name) const { return json["shape"].at(name); }

  /// Seconds, from the row's time or from its rate and these FLOPs.
  double seconds(double flops) const {
    const double value = json["measured"]["value"];
    return json["measured"]["unit"] == "us" ? value * 1e-6 : flops / (value * 1e12);
  }
};

/// `name`: of the file in tests/reference.
inline std::vector<EfficiencyRow> efficiency_rows(const std::string& name = "efficiency.jsonl") {
  std::vector<EfficiencyRow> rows;
  std::ifstream file(source_dir() + "/tests/reference/" + name);
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    rows.push_back({nlohmann::json::parse(line), rows.size() % 2 == 0});
  }
  return rows;
}

/// Relative errors of one kind of row.
struct Errors {
  std::vector<double> fitted;
  std::vector<double> held_out;
  void add(const EfficiencyRow& row, double predicted, double measured) {
    (row.fitted ? fitted : held_out).push_back(std::abs(predicted / measured - 1));
  }
};

/// Bounds of the mean and of the ninth decile.
struct Most {
  double mean;
  double ninth_decile;
};

struct Bound {
  std::string_view label;
  Most fitted;
  Most held_out;
};

inline void require_below(std::string_view label,
                          std::string_view part,
                          std::vector<double> errors,
                          Most most) {
  REQUIRE_FALSE(errors.empty());
  std::ranges::sort(errors);
  const double mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  const double ninth_decile = errors[(errors.size() * 9 + 9) / 10 - 1];
  CAPTURE(label, part, errors.size(), mean, ninth_decile);
  CHECK(mean < most.mean);
  CHECK(ninth_decile < most.ninth_decile);
}

inline void require_below(const std::map<std::string, Errors>& errors,
                          std::span<const Bound> bounds) {
  REQUIRE(errors.size() == bounds.size());
  for (const Bound& bound : bounds) {
    const Errors& list = errors.at(std::string(bound.label));
    require_below(bound.label, "fitted", list.fitted, bound.fitted);
    require_below(bound.label, "held out", list.held_out, bound.held_out);
  }
}

}  // namespace zeroplan::tests
