// Which switches lie between nodes? Front door: SwitchGraph.
#include "cost_model/network/switch_graph.hpp"

#include <boost/graph/breadth_first_search.hpp>
#include <map>
#include <utility>

namespace zeroplan {

SwitchGraph::SwitchGraph(const FabricSpec& fabric, std::span<const std::int64_t> places) {
  std::map<std::pair<std::size_t, std::int64_t>, Vertex> known;
  // The switch of this level that stands above what has this number on the level below, with all
  // above it.
  const auto join = [&](std::int64_t number) {
    Vertex first = 0, below = 0;
    for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
      const std::int64_t joins = fabric.levels[level].joins;
      number = level + 1 == fabric.levels.size() ? 0 : number / joins;
      const auto [found, added] = known.try_emplace({level, number});
      if (added) found->second = boost::add_vertex({level, number}, graph_);
      if (level == 0) {
        first = found->second;
      } else if (!boost::edge(below, found->second, graph_).second) {
        boost::add_edge(below, found->second, {fabric.levels[level - 1].uplink}, graph_);
      }
      if (!added) break;
      below = found->second;
    }
    return first;
  };
  leaves_.reserve(places.size());
  for (const std::int64_t place : places) leaves_.push_back(join(place));

  above_.resize(size());
  hops_.resize(size());
  capacities_.resize(size());
  if (size() == 0) return;
  const Vertex top = known.at({fabric.levels.size() - 1, 0});
  above_[top] = top;
  boost::breadth_first_search(graph_, top,
                              boost::visitor(boost::make_bfs_visitor(std::make_pair(
                                  boost::record_predecessors(above_.data(), boost::on_tree_edge()),
                                  boost::record_distances(hops_.data(), boost::on_tree_edge())))));
  for (Vertex v = 0; v < size(); ++v) {
    if (v != top) capacities_[v] = graph_[boost::edge(v, above_[v], graph_).first].capacity;
  }
}

}  // namespace zeroplan
