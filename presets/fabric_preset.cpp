// Which switches join the nodes? Front door: read_fabric.
#include "presets/fabric_preset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr Range joined{1, 1'000'000};
constexpr std::int64_t most_places = 1'000'000;
constexpr std::size_t most_levels = 8;

Rails read_rails(const JsonObject& fabric) {
  const std::string name = fabric.find_string("rails").value_or("none");
  if (const auto rails = parse_name<Rails>(name)) return *rails;
  const std::vector<std::string> all(names<Rails>().begin(), names<Rails>().end());
  fabric.fail(fmt::format("'rails' must be none, optimized or only, found {}, nearest is '{}'",
                          in_quotes(name), nearest(name, all)));
}

void check_rails(const JsonObject& fabric, const FabricSpec& spec, const ClusterSpec& cluster) {
  if (spec.rails == Rails::none) return;
  const std::int64_t gpus = cluster.gpus_per_node, cards = cluster.network_cards;
  if (std::min(gpus, cards) < 2 || std::max(gpus, cards) % std::min(gpus, cards) != 0) {
    fabric.fail(
        fmt::format("'rails' need as many GPUs as network cards in a node, or a multiple, "
                    "and two at least; found {} and {}",
                    gpus, cards));
  }
  if (spec.rails == Rails::only && cluster.intra_node == LinkKind::pcie) {
    fabric.fail(
        "rails that never meet need nvlink or xgmi in the node, by which GPUs reach the other "
        "rails; 'intra_node' is pcie");
  }
  if (spec.rails == Rails::optimized && spec.levels.size() < 2) {
    fabric.fail("'rails' are optimized, but no level is above the first, where they would meet");
  }
}

// `below`: bytes/s that what it joins can send up, together.
double read_uplink(const JsonObject& level, double below, double rails) {
  const auto ratio = level.find_number("oversubscription", 0.01);
  const auto gigabits = level.find_number("uplink_gigabits_per_second", 0.001);
  if (ratio.has_value() == gigabits.has_value()) {
    level.fail(
        "give one of 'oversubscription' and 'uplink_gigabits_per_second', which every level but "
        "the last has");
  }
  return ratio ? below / *ratio : rails * *gigabits * bytes_per_second_of_gigabit;
}

std::vector<FabricLevel> read_levels(const JsonObject& fabric,
                                     Rails by_rail,
                                     const ClusterSpec& cluster) {
  const auto found = fabric.value().find("levels");
  if (found == fabric.value().end() || !found->is_array() || found->empty() ||
      found->size() > most_levels) {
    fabric.fail(
        fmt::format("'levels' must be a list of 1 to {} kinds of switches, from the nodes upwards",
                    most_levels));
  }
  std::vector<FabricLevel> levels;
  double below = cluster.inter_node_bandwidth;
  std::int64_t nodes = 1;
  for (std::size_t i = 0; i < found->size(); ++i) {
    const JsonObject object((*found)[i], fmt::format("{}: levels[{}]", fabric.where(), i));
    object.allow_only({"name", "joins", "oversubscription", "uplink_gigabits_per_second"});
    FabricLevel level{.name = object.string("name")};
    if (level.name.empty()) object.fail("'name' is empty");
    if (std::ranges::find(levels, level.name, &FabricLevel::name) != levels.end()) {
      object.fail(fmt::format("a second level is called {}", in_quotes(level.name)));
    }
    if (i + 1 == found->size()) {
      level.joins = object.find_integer("joins", joined).value_or(0);
      if (object.has("oversubscription") || object.has("uplink_gigabits_per_second")) {
        object.fail(
            fmt::format("the last level, {}, joins all: it has no uplinks", in_quotes(level.name)));
      }
    } else {
      level.joins = object.integer("joins", joined);
      const bool separate = by_rail == Rails::only || (by_rail == Rails::optimized && i == 0);
      const std::int64_t rails = std::min(cluster.network_cards, cluster.gpus_per_node);
      level.uplink = read_uplink(object, static_cast<double>(level.joins) * below,
                                 separate ? static_cast<double>(rails) : 1);
      below = level.uplink;
    }
    nodes *= std::max<std::int64_t>(1, level.joins);
    if (nodes > most_places) {
      object.fail(fmt::format("more than {} nodes below one switch", most_places));
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

// 7, or 4-7: from a place to another.
std::pair<std::int64_t, std::int64_t> read_range(const JsonObject& fabric,
                                                 const nlohmann::json& value) {
  const auto whole = [](std::string_view text, std::int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 0 &&
           number < most_places && text.front() != '-';
  };
  std::int64_t first = -1, last = -1;
  if (value.is_number_integer()) {
    first = last = value.get<std::int64_t>();
    if (first >= 0 && first < most_places) return {first, last};
  } else if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const std::size_t dash = text.find('-');
    const std::string from = text.substr(0, dash);
    const std::string to = dash == std::string::npos ? from : text.substr(dash + 1);
    if (!from.empty() && !to.empty() && whole(from, first) && whole(to, last) && first <= last) {
      return {first, last};
    }
  }
  fabric.fail(fmt::format("'nodes' must be places and ranges of them, as [0, 1, \"4-7\"]; found {}",
                          value.dump()));
}

std::vector<std::int64_t> read_nodes(const JsonObject& fabric) {
  if (!fabric.has("nodes")) return {};
  const nlohmann::json& list = fabric.value().at("nodes");
  if (!list.is_array() || list.empty()) {
    fabric.fail("'nodes' must be a list of places and ranges of them, as [0, 1, \"4-7\"]");
  }
  std::vector<std::int64_t> nodes;
  for (const nlohmann::json& value : list) {
    const auto [first, last] = read_range(fabric, value);
    if (std::ssize(nodes) + last - first >= most_places) {
      fabric.fail(fmt::format("'nodes' has more than {} places", most_places));
    }
    for (std::int64_t place = first; place <= last; ++place) nodes.push_back(place);
  }
  std::vector<std::int64_t> sorted = nodes;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) fabric.fail(fmt::format("place {} stands twice in 'nodes'", *twice));
  return nodes;
}

// Places below the one switch of the last level; 0: without limit.
std::int64_t places_of(const FabricSpec& spec) {
  std::int64_t places = 1;
  for (const FabricLevel& level : spec.levels) places *= level.joins;
  return places;
}

}  // namespace

std::optional<FabricSpec> read_fabric(const JsonObject& object, const ClusterSpec& cluster) {
  if (!object.has("fabric")) return std::nullopt;
  const JsonObject fabric = object.object("fabric");
  fabric.allow_only({"levels", "rails", "nodes"});
  if (cluster.network_cards == 0) {
    fabric.fail("its switches join nodes, but there are no network cards");
  }
  FabricSpec spec;
  spec.rails = read_rails(fabric);
  spec.levels = read_levels(fabric, spec.rails, cluster);
  check_rails(fabric, spec, cluster);
  spec.nodes = read_nodes(fabric);
  const std::int64_t places = places_of(spec);
  for (const std::int64_t place : spec.nodes) {
    if (places > 0 && place >= places) {
      fabric.fail(
          fmt::format("'nodes' has place {}, but the switches join {}, from 0 on", place, places));
    }
  }
  return spec;
}

std::int64_t node_count(const FabricSpec& fabric) {
  return fabric.nodes.empty() ? places_of(fabric) : std::ssize(fabric.nodes);
}

}  // namespace zeroplan
