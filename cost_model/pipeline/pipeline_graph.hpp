#pragma once
// A pipeline schedule as a graph of operations: what waits for what.

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cost_model/pipeline/pipeline.hpp"
#include "cost_model/schedule/order.hpp"

namespace zeroplan {

/// The passes of all pipeline ranks in the order of each rank, and what each waits for.
class PipelineGraph {
 public:
  /// `passes_of_ranks`: of each rank's chunks, rank by rank. `message`: seconds between passes of
  /// neighbours. The pipeline must outlive it.
  PipelineGraph(const Pipeline& pipeline,
                std::span<const PassTime> passes_of_ranks,
                double message);

  /// How long they take together.
  PipelineTime run() const;

  /// When each of them runs.
  std::vector<std::vector<TimedPass>> timed() const;

 private:
  // One pass of a rank, or two that run as one.
  struct Operation {
    std::size_t rank = 0;
    double seconds = 0;
  };
  // That the target waits for the source, and how much longer.
  struct Wait {
    double seconds = 0;
  };
  using Graph = boost::compressed_sparse_row_graph<boost::directedS, Operation, Wait>;
  using Vertex = boost::graph_traits<Graph>::vertex_descriptor;
  static constexpr Vertex absent = std::numeric_limits<Vertex>::max();

  // What is known of the graph before all of it is.
  struct Draft {
    std::vector<Operation> operations;
    std::vector<std::pair<Vertex, Vertex>> edges;
    std::vector<Wait> waits;

    void add_edge(Vertex from, Vertex to, Wait wait) {
      edges.emplace_back(from, to);
      waits.push_back(wait);
    }
    Graph graph() const;
  };

  std::vector<Vertex> last_first() const;

  std::vector<double> starts(const std::vector<Vertex>& order) const;

  // What makes an output, or the gradient of an input.
  Vertex& maker(const Place& place, bool gradient, std::int64_t micro_batch);

  void add_rank(Draft& draft,
                std::int64_t rank,
                std::span<const PassTime> chunks,
                const std::vector<Pass>& order);

  // Passes come in the order in which add_rank has seen them.
  void add_needs(Draft& draft, std::int64_t rank, const std::vector<Pass>& order);

  // From the last operation to the first: when each must end for the step to end when it does.
  void add_slack(const std::vector<Vertex>& order,
                 const std::vector<double>& start,
                 PipelineTime& time) const;

  const Pipeline& pipeline_;
  double message_;  // between passes of neighbours
  Graph graph_;
  std::vector<Vertex> makers_;
  std::vector<std::vector<Pass>> orders_;
  std::vector<Vertex> of_pass_;  // of all ranks, in order
  std::vector<double> seconds_;  // of each of those alone
  std::size_t next_pass_ = 0;
};

}  // namespace zeroplan
