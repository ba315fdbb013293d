#pragma once
// A fabric as a graph: its switches, those that stand above some node in use, and their uplinks.

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "cost_model/question/fabric.hpp"

namespace zeroplan {

class SwitchGraph {
 public:
  struct Switch {
    std::size_t level = 0;
    std::int64_t number = 0;  // among those of its level
  };
  struct Uplink {
    double capacity = 0;  // bytes/s, one direction
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Switch, Uplink>;
  using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

  /// `places`: of the nodes in use, one after the other.
  SwitchGraph(const FabricSpec& fabric, std::span<const std::int64_t> places);

  std::size_t size() const { return boost::num_vertices(graph_); }
  const Switch& at(Vertex v) const { return graph_[v]; }
  /// The switch that the cards of this node plug into; `node`: its place in `places`.
  Vertex leaf(std::int64_t node) const { return leaves_[static_cast<std::size_t>(node)]; }
  bool is_top(Vertex v) const { return above_[v] == v; }
  Vertex above(Vertex v) const { return above_[v]; }
  /// Bytes/s of the switch's uplinks together, one direction; 0 for the top.
  double capacity(Vertex v) const { return capacities_[v]; }

  /// Calls up(switch) for each whose uplinks a message from `a` to `b` climbs, and down(switch) for
  /// each that it descends to.
  template <class Up, class Down>
  void route(Vertex a, Vertex b, const Up& up, const Down& down) const {
    while (a != b) {
      if (hops_[a] >= hops_[b]) {
        up(a);
        a = above_[a];
      } else {
        down(b);
        b = above_[b];
      }
    }
  }

 private:
  Graph graph_;
  std::vector<Vertex> leaves_;
  std::vector<Vertex> above_;  // of each switch, the next on its way to the top
  std::vector<int> hops_;      // to the top
  std::vector<double> capacities_;
};

}  // namespace zeroplan
