// Which layers go to which stage? Front door: balanced_partition.
#include "planner/partition.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <iterator>
#include <limits>
#include <numeric>

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
  explicit Placements(const PartitionQuestion& q)
      : q_(q), layers_(std::ssize(q.layer_seconds)), graph_(vertex(q.stages, layers_) + 1) {
    std::partial_sum(q.layer_seconds.begin(), q.layer_seconds.end(),
                     std::back_inserter(seconds_before_));
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
    const Vertex end = vertex(q_.stages, layers_);
    if (slowest[end] == never) return std::nullopt;
    Partition result{.slowest = slowest[end]};
    for (Vertex v = end; v != vertex(0, 0); v = before[v]) {
      result.sizes.push_back(placed(v) - placed(before[v]));
    }
    std::reverse(result.sizes.begin(), result.sizes.end());
    return result;
  }

 private:
  Vertex vertex(std::int64_t stage, std::int64_t placed) const {
    return static_cast<Vertex>(stage * (layers_ + 1) + placed);
  }
  std::int64_t placed(Vertex v) const { return static_cast<std::int64_t>(v) % (layers_ + 1); }

  // Every run of layers that leaves at least one for each stage before and after.
  void add_stage(std::int64_t stage) {
    const std::int64_t later = q_.stages - stage - 1;
    const std::int64_t most_before = stage == 0 ? 0 : layers_ - later - 1;
    for (std::int64_t first = stage; first <= most_before; ++first) {
      const std::int64_t least = later == 0 ? layers_ : first + 1;
      for (std::int64_t last = least; last <= layers_ - later; ++last) {
        if (q_.fits && !q_.fits(stage, {first, last})) continue;
        add_edge(vertex(stage, first), vertex(stage + 1, last), {seconds(stage, {first, last})},
                 graph_);
      }
    }
  }

  double seconds(std::int64_t stage, LayerRange range) const {
    const auto before = [&](std::int64_t layer) {
      return layer == 0 ? 0 : seconds_before_[static_cast<std::size_t>(layer - 1)];
    };
    double sum = before(range.last) - before(range.first);
    if (stage == 0) sum += q_.embedding_seconds;
    if (stage + 1 == q_.stages) sum += q_.head_seconds;
    return std::max(0.0, sum);
  }

  const PartitionQuestion& q_;
  std::int64_t layers_;
  std::vector<double> seconds_before_;  // of this layer and those before it
  Graph graph_;
};

}  // namespace

std::optional<Partition> balanced_partition(const PartitionQuestion& question) {
  if (std::ssize(question.layer_seconds) < question.stages) return std::nullopt;
  return Placements(question).best();
}

}  // namespace zeroplan
