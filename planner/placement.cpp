// Which order of the nodes is the fastest? Front door: better_placement.
#include "planner/placement.hpp"

#include <algorithm>
#include <utility>

#include "cost_model/network/fabric.hpp"

namespace zeroplan {
namespace {

using Places = std::vector<std::int64_t>;

// Blocks of so many nodes: as many as go below one switch of the first level, of the rest as many
// as go below one of the next, and so on. `left` rises.
std::vector<Places> blocks_of(const FabricSpec& fabric, Places left, std::size_t size) {
  std::vector<Places> blocks;
  std::int64_t below = 1;
  for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
    const bool last = level + 1 == fabric.levels.size();
    below *= fabric.levels[level].joins;
    Places rest;
    for (auto first = left.begin(); first != left.end();) {
      const auto end = last ? left.end() : std::find_if(first, left.end(), [&](std::int64_t place) {
        return place / below != *first / below;
      });
      for (; static_cast<std::size_t>(end - first) >= size; first += std::ptrdiff_t(size)) {
        blocks.emplace_back(first, first + std::ptrdiff_t(size));
      }
      rest.insert(rest.end(), first, end);
      first = end;
    }
    left = std::move(rest);
  }
  std::ranges::sort(blocks);
  return blocks;
}

// The nodes of all blocks, block after block.
Places block_after_block(const std::vector<Places>& blocks) {
  Places all;
  for (const Places& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}
// The first nodes of all blocks, then all second ones, and so on.
Places across_blocks(const std::vector<Places>& blocks) {
  Places all;
  for (std::size_t i = 0; i < blocks.front().size(); ++i) {
    for (const Places& block : blocks) all.push_back(block[i]);
  }
  return all;
}

struct Order {
  std::string_view what;
  Places nodes;
};

std::vector<Order> orders(const Problem& p, const Places& given) {
  Places sorted = given;
  std::ranges::sort(sorted);
  std::vector<Order> list{{"neighbours", sorted}};
  const std::int64_t of_stage = world_size(p.layout) / p.layout.pp;
  const std::int64_t node = p.cluster.gpus_per_node;
  if (of_stage % node != 0 || p.layout.pp == 1) return list;
  const FabricSpec& fabric = p.cluster.fabric->spec();
  const auto nodes_of_stage = static_cast<std::size_t>(of_stage / node);
  list.push_back(
      {"each pipeline stage", block_after_block(blocks_of(fabric, sorted, nodes_of_stage))});
  const auto stages = static_cast<std::size_t>(p.layout.pp);
  list.push_back({"each pipeline", across_blocks(blocks_of(fabric, sorted, stages))});
  return list;
}

}  // namespace

std::optional<BetterPlacement> better_placement(const Problem& problem, const StepTime& step) {
  const ClusterSpec& cluster = problem.cluster;
  if (!cluster.fabric || cluster.gpus % cluster.gpus_per_node != 0) return std::nullopt;
  const Places given = cluster.fabric->places(cluster.gpus / cluster.gpus_per_node);
  std::optional<BetterPlacement> best;
  double least = (1 - worth_another_order) * step.seconds;
  for (Order& order : orders(problem, given)) {
    if (order.nodes == given) continue;
    Problem other = problem;
    FabricSpec fabric = cluster.fabric->spec();
    fabric.nodes = order.nodes;
    other.cluster.fabric = {std::make_shared<const Fabric>(std::move(fabric), cluster.gpus)};
    const double seconds = step_time(other, Evaluator(other)).seconds;
    if (seconds >= least) continue;
    least = seconds;
    best = {order.what, std::move(order.nodes), seconds};
  }
  return best;
}

}  // namespace zeroplan
