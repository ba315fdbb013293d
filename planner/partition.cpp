// Which layers go to which stage? Front door: balanced_partition.
#include "planner/partition.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>

namespace zeroplan {
namespace {

struct StageEdge {
  double seconds = 0;
};

using Graph = boost::
    adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, StageEdge>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

class Placements {
 public:
  explicit Placements(const PartitionQuestion& q) : q_(q), graph_(vertex(q.stages, q.layers) + 1) {
    find_reach();
    for (std::int64_t stage = 0; stage < q.stages; ++stage) add_stage(stage);
  }

  std::optional<Partition> best() const {
    std::vector<Vertex> before(num_vertices(graph_));
    std::vector<double> slowest(num_vertices(graph_));
    constexpr double never = std::numeric_limits<double>::infinity();
    boost::dijkstra_shortest_paths(
        graph_, vertex(0, 0),
        boost::predecessor_map(before.data())
            .distance_map(slowest.data())
            .weight_map(get(&StageEdge::seconds, graph_))
            .distance_combine([](double a, double b) { return std::max(a, b); })
            .distance_inf(never)
            .distance_zero(0.0));
    const Vertex end = vertex(q_.stages, q_.layers);
    if (slowest[end] == never) return std::nullopt;
    Partition result{.slowest = slowest[end]};
    for (Vertex v = end; v != vertex(0, 0); v = before[v]) {
      result.sizes.push_back(placed(v) - placed(before[v]));
    }
    std::reverse(result.sizes.begin(), result.sizes.end());
    return result;
  }

 private:
  // Most and fewest layers that can lie before each stage, where all stages have some and are below
  // the limit.
  void find_reach() {
    const auto n = static_cast<std::size_t>(q_.stages);
    most_.assign(n + 1, 0);
    fewest_.assign(n + 1, q_.layers);
    for (std::size_t s = 0; s < n; ++s) {
      const auto stage = static_cast<std::int64_t>(s);
      const std::int64_t left_for_others = q_.layers - (q_.stages - stage - 1);
      std::int64_t last = most_[s];
      while (last < left_for_others && below(stage, {most_[s], last + 1})) ++last;
      most_[s + 1] = last;
    }
    for (std::size_t s = n; s-- > 0;) {
      const auto stage = static_cast<std::int64_t>(s);
      std::int64_t first = fewest_[s + 1];
      while (first > stage && below(stage, {first - 1, fewest_[s + 1]})) --first;
      fewest_[s] = first;
    }
  }

  bool below(std::int64_t stage, LayerRange layers) const {
    return q_.seconds(stage, layers) < q_.below;
  }

  Vertex vertex(std::int64_t stage, std::int64_t placed) const {
    return static_cast<Vertex>(stage * (q_.layers + 1) + placed);
  }
  std::int64_t placed(Vertex v) const { return static_cast<std::int64_t>(v) % (q_.layers + 1); }

  // Every run of layers that leaves enough to the stages before and after, and not too many.
  void add_stage(std::int64_t stage) {
    const auto s = static_cast<std::size_t>(stage);
    for (std::int64_t first = fewest_[s]; first <= most_[s]; ++first) {
      for (std::int64_t last = std::max(first + 1, fewest_[s + 1]); last <= most_[s + 1]; ++last) {
        const double seconds = q_.seconds(stage, {first, last});
        if (seconds >= q_.below) break;
        if (q_.fits && !q_.fits(stage, {first, last})) continue;
        add_edge(vertex(stage, first), vertex(stage + 1, last), {seconds}, graph_);
      }
    }
  }

  const PartitionQuestion& q_;
  std::vector<std::int64_t> most_, fewest_;  // before each stage, and after the last one
  Graph graph_;
};

}  // namespace

std::optional<Partition> balanced_partition(const PartitionQuestion& question) {
  if (question.layers < question.stages) return std::nullopt;
  return Placements(question).best();
}

}  // namespace zeroplan
