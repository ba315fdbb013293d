// What is the widest way between the ranks of a group? Front door: graph_placement.
#include "tests/cost_model/network/cluster_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

namespace zeroplan {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// One way. Those who use it at once share it evenly.
struct Link {
  double bandwidth = 0;
  std::int64_t users = 1;

  double share() const { return bandwidth / static_cast<double>(std::max<std::int64_t>(1, users)); }
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Link>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

void join(Graph& graph, Vertex a, Vertex b, Link link) {
  add_edge(a, b, link, graph);
  add_edge(b, a, link, graph);
}

// Ranks of one group, counted by the node they stand on.
using RanksByNode = std::map<std::int64_t, std::int64_t>;

bool spans_nodes(const RanksByNode& group) {
  return group.size() > 1;
}

std::vector<RanksByNode> groups_on_nodes(const ClusterSpec& cluster, const RankGroup& group) {
  std::vector<RanksByNode> groups;
  const std::int64_t block = group.span();
  for (std::int64_t first = 0; first + block <= cluster.gpus; first += block) {
    for (std::int64_t rank = first; rank < first + group.neighbours(); ++rank) {
      RanksByNode& nodes = groups.emplace_back();
      for (std::int64_t i = 0; i < group.ranks; ++i) {
        ++nodes[(rank + i * group.stride) / cluster.gpus_per_node];
      }
    }
  }
  return groups;
}

// Groups that go over the network, of each node.
std::vector<std::int64_t> network_users(const ClusterSpec& cluster,
                                        const std::vector<RanksByNode>& groups) {
  const std::int64_t nodes = ceil_div(cluster.gpus, cluster.gpus_per_node);
  std::vector<std::int64_t> users(static_cast<std::size_t>(nodes));
  for (const RanksByNode& group : groups) {
    if (!spans_nodes(group)) continue;
    for (const auto& [node, ranks] : group) ++users[static_cast<std::size_t>(node)];
  }
  return users;
}

struct Cluster {
  Graph graph;
  std::vector<Vertex> gpus;  // by rank
};

// `users`: see network_users. Empty: the nodes stand alone.
Cluster build(const ClusterSpec& spec,
              const std::vector<std::int64_t>& users,
              std::int64_t nodes_per_leaf) {
  Cluster cluster;
  Graph& graph = cluster.graph;
  for (std::int64_t rank = 0; rank < spec.gpus; ++rank) cluster.gpus.push_back(add_vertex(graph));
  const auto each_gpu_of = [&](std::int64_t node, const auto& action) {
    const std::int64_t first = node * spec.gpus_per_node;
    const std::int64_t last = std::min(first + spec.gpus_per_node, spec.gpus);
    for (std::int64_t rank = first; rank < last; ++rank) {
      action(cluster.gpus[static_cast<std::size_t>(rank)]);
    }
  };
  const std::int64_t nodes = ceil_div(spec.gpus, spec.gpus_per_node);
  for (std::int64_t node = 0; node < nodes; ++node) {
    const Vertex nvswitch = add_vertex(graph);
    each_gpu_of(node, [&](Vertex gpu) { join(graph, gpu, nvswitch, {spec.intra_node_bandwidth}); });
  }
  if (users.empty()) return cluster;

  const Vertex spine = add_vertex(graph);
  for (std::int64_t first = 0; first < nodes; first += nodes_per_leaf) {
    const Vertex leaf = add_vertex(graph);
    const std::int64_t last = std::min(first + nodes_per_leaf, nodes);
    for (std::int64_t node = first; node < last; ++node) {
      const Vertex cards = add_vertex(graph);
      each_gpu_of(node, [&](Vertex gpu) { join(graph, gpu, cards, {spec.inter_node_bandwidth}); });
      join(graph, cards, leaf, {spec.inter_node_bandwidth, users[static_cast<std::size_t>(node)]});
    }
    // Carries all that the cards below can send, so nobody's share of it is less than of a card.
    join(graph, leaf, spine, {static_cast<double>(last - first) * spec.inter_node_bandwidth});
  }
  return cluster;
}

// Width of the widest path from a GPU to every vertex.
std::vector<double> widths_from(const Graph& graph, Vertex source) {
  std::vector<double> widths(num_vertices(graph));
  const auto share = boost::make_function_property_map<Graph::edge_descriptor, double>(
      [&](const Graph::edge_descriptor& edge) { return graph[edge].share(); });
  const auto narrower = [](double a, double b) { return std::min(a, b); };
  boost::dijkstra_shortest_paths(graph, source,
                                 boost::weight_map(share)
                                     .distance_map(boost::make_iterator_property_map(
                                         widths.begin(), get(boost::vertex_index, graph)))
                                     .distance_compare(std::greater<>())
                                     .distance_combine(narrower)
                                     .distance_inf(0.0)
                                     .distance_zero(unlimited));
  return widths;
}

double widest_in_node(const ClusterSpec& spec) {
  if (std::min(spec.gpus, spec.gpus_per_node) == 1) return spec.intra_node_bandwidth;
  const Cluster alone = build(spec, {}, 1);
  return widths_from(alone.graph, alone.gpus[0])[alone.gpus[1]];
}

// The least that a group can send from one of its nodes to the next, over all groups and nodes.
double least_over_network(const ClusterSpec& spec,
                          const std::vector<RanksByNode>& groups,
                          const std::vector<std::int64_t>& users,
                          std::int64_t nodes_per_leaf) {
  const Cluster cluster = build(spec, users, nodes_per_leaf);
  // The GPUs of a node are alike, so its first one stands for all.
  const auto gpu_of = [&](std::int64_t node) {
    return cluster.gpus[static_cast<std::size_t>(node * spec.gpus_per_node)];
  };
  std::vector<std::vector<double>> widths(users.size());
  double least = unlimited;
  for (const RanksByNode& group : groups) {
    if (!spans_nodes(group)) continue;
    for (auto here = group.begin(); here != group.end(); ++here) {
      const auto next = std::next(here) == group.end() ? group.begin() : std::next(here);
      std::vector<double>& from_here = widths[static_cast<std::size_t>(here->first)];
      if (from_here.empty()) from_here = widths_from(cluster.graph, gpu_of(here->first));
      least = std::min(least, from_here[gpu_of(next->first)]);
    }
  }
  return least;
}

}  // namespace

CommunicationGroup graph_placement(const ClusterSpec& cluster,
                                   const RankGroup& group,
                                   std::int64_t nodes_per_leaf) {
  CommunicationGroup placed{.ranks = group.ranks,
                            .intra_node_bandwidth = widest_in_node(cluster),
                            .intra_node = cluster.intra_node,
                            .compute_capability = cluster.gpu.compute_capability};
  const std::vector<RanksByNode> groups = groups_on_nodes(cluster, group);
  for (const RanksByNode& nodes : groups) {
    for (const auto& [node, ranks] : nodes) {
      placed.ranks_per_node = std::max(placed.ranks_per_node, ranks);
    }
  }
  const std::vector<std::int64_t> users = network_users(cluster, groups);
  placed.groups_sharing_network = *std::ranges::max_element(users);
  if (placed.groups_sharing_network == 0) return placed;
  placed.inter_node_bandwidth = least_over_network(cluster, groups, users, nodes_per_leaf);
  return placed;
}

}  // namespace zeroplan
