// What was measured on this cluster? Front door: read_measured_collectives.
#include "presets/measured_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr Range rank_counts{2, 1'000'000};
constexpr Range payloads{1, std::int64_t{1} << 50};

Collective read_collective(const JsonObject& table) {
  const std::string name = table.string("collective");
  if (const auto collective = parse_name<Collective>(name)) return *collective;
  const std::vector<std::string> all(names<Collective>().begin(), names<Collective>().end());
  table.fail(fmt::format("'collective' must be one of {}, found {}, nearest is '{}'",
                         fmt::join(all, ", "), in_quotes(name), nearest(name, all)));
}

std::vector<double> read_seconds(const JsonObject& table) {
  const auto found = table.value().find("seconds");
  if (found == table.value().end() || !found->is_array()) {
    table.fail("'seconds' must be a list of numbers, one a payload");
  }
  std::vector<double> seconds;
  for (const nlohmann::json& value : *found) {
    if (!value.is_number() || value.get<double>() <= 0) {
      table.fail(fmt::format("'seconds' must be above 0, found {}", value.dump()));
    }
    seconds.push_back(value.get<double>());
  }
  return seconds;
}

std::vector<MeasuredPoint> read_points(const JsonObject& table) {
  const std::vector<std::int64_t> bytes = table.integers("payload_bytes", payloads);
  const std::vector<double> seconds = read_seconds(table);
  if (bytes.empty() || bytes.size() != seconds.size()) {
    table.fail(fmt::format("{} payloads and {} times; must be as many, and at least one",
                           bytes.size(), seconds.size()));
  }
  std::vector<MeasuredPoint> points;
  double longest = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && bytes[i] <= bytes[i - 1]) {
      table.fail(
          fmt::format("'payload_bytes' must rise, found {} after {}", bytes[i], bytes[i - 1]));
    }
    longest = std::max(longest, seconds[i]);
    points.push_back({.payload = Bytes{bytes[i]}, .seconds = longest});
  }
  return points;
}

MeasuredCollective read_table(const JsonObject& table) {
  // The fit and the samples behind the times are for people.
  table.allow_only({"collective", "ranks", "ranks_per_node", "payload_bytes", "seconds",
                    "samples_seconds", "latency_seconds", "bytes_per_second", "worst_residual"});
  MeasuredCollective measured{.collective = read_collective(table),
                              .ranks = table.integer("ranks", rank_counts)};
  measured.ranks_per_node = table.integer("ranks_per_node", {1, measured.ranks});
  measured.points = read_points(table);
  return measured;
}

}  // namespace

std::vector<MeasuredCollective> read_measured_collectives(const JsonObject& cluster) {
  if (!cluster.has("collectives")) return {};
  const nlohmann::json& list = cluster.value().at("collectives");
  if (!list.is_array()) cluster.fail("'collectives' must be a list of tables");
  std::vector<MeasuredCollective> tables;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonObject table(list[i], fmt::format("{}: collectives[{}]", cluster.where(), i));
    const MeasuredCollective read = read_table(table);
    if (!measured_points(tables, read.collective, read.ranks, read.ranks_per_node).empty()) {
      table.fail(fmt::format("a second table of {} over {} ranks, {} a node",
                             name_of(read.collective), read.ranks, read.ranks_per_node));
    }
    tables.push_back(read);
  }
  return tables;
}

}  // namespace zeroplan
