// When can each pass of a pipeline run? Front door: PipelineGraph::run.
#include "cost_model/pipeline/pipeline_graph.hpp"

#include <algorithm>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

namespace zeroplan {

PipelineGraph::PipelineGraph(const Pipeline& pipeline,
                             std::span<const PassTime> passes_of_ranks,
                             double message)
    : pipeline_(pipeline),
      message_(message),
      makers_(
          static_cast<std::size_t>(2 * pipeline.ranks * pipeline.chunks * pipeline.micro_batches),
          absent) {
  const auto chunks = static_cast<std::size_t>(pipeline.chunks);
  Draft draft;
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    orders_.push_back(passes(pipeline, rank));
    add_rank(draft, rank, passes_of_ranks.subspan(static_cast<std::size_t>(rank) * chunks, chunks),
             orders_.back());
  }
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    add_needs(draft, rank, orders_[static_cast<std::size_t>(rank)]);
  }
  graph_ = draft.graph();
}

PipelineGraph::Graph PipelineGraph::Draft::graph() const {
  Graph graph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), waits.begin(),
              operations.size());
  for (Vertex v = 0; v < operations.size(); ++v) graph[v] = operations[v];
  return graph;
}

PipelineTime PipelineGraph::run() const {
  const std::vector<Vertex> order = last_first();
  const std::vector<double> start = starts(order);
  PipelineTime time{.ranks = std::vector<RankTime>(static_cast<std::size_t>(pipeline_.ranks))};
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    const Operation& operation = graph_[*v];
    const double end = start[*v] + operation.seconds;
    RankTime& rank = time.ranks[operation.rank];
    rank.busy += operation.seconds;
    rank.finished = std::max(rank.finished, end);
    time.seconds = std::max(time.seconds, end);
  }
  add_slack(order, start, time);
  return time;
}

std::vector<std::vector<TimedPass>> PipelineGraph::timed() const {
  const std::vector<double> start = starts(last_first());
  std::vector<std::vector<TimedPass>> ranks;
  std::size_t next = 0;
  for (const std::vector<Pass>& order : orders_) {
    ranks.emplace_back();
    for (const Pass& pass : order) {
      const bool joined = next > 0 && of_pass_[next - 1] == of_pass_[next];
      const double from = joined ? ranks.back().back().end : start[of_pass_[next]];
      ranks.back().push_back({pass, from, from + seconds_[next]});
      ++next;
    }
  }
  return ranks;
}

std::vector<PipelineGraph::Vertex> PipelineGraph::last_first() const {
  std::vector<Vertex> order;
  order.reserve(num_vertices(graph_));
  topological_sort(graph_, std::back_inserter(order));
  return order;
}

std::vector<double> PipelineGraph::starts(const std::vector<Vertex>& order) const {
  std::vector<double> start(order.size(), 0);
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    const double end = start[*v] + graph_[*v].seconds;
    for (const auto wait : boost::make_iterator_range(out_edges(*v, graph_))) {
      double& next = start[target(wait, graph_)];
      next = std::max(next, end + graph_[wait].seconds);
    }
  }
  return start;
}

PipelineGraph::Vertex& PipelineGraph::maker(const Place& place,
                                            bool gradient,
                                            std::int64_t micro_batch) {
  const std::int64_t chunk = place.rank * pipeline_.chunks + place.chunk;
  return makers_[static_cast<std::size_t>((2 * chunk + gradient) * pipeline_.micro_batches +
                                          micro_batch)];
}

void PipelineGraph::add_rank(Draft& draft,
                             std::int64_t rank,
                             std::span<const PassTime> chunks,
                             const std::vector<Pass>& order) {
  Vertex before = absent;
  bool joined = false;  // with the pass before
  for (const Pass& pass : order) {
    const double seconds = chunks[static_cast<std::size_t>(pass.chunk)].at(pass.kind);
    if (joined) {
      draft.operations[before].seconds += seconds;
    } else {
      const Vertex v = draft.operations.size();
      draft.operations.push_back({static_cast<std::size_t>(rank), seconds});
      if (before != absent) draft.add_edge(before, v, {});
      before = v;
    }
    joined = pass.with_next;
    of_pass_.push_back(before);
    seconds_.push_back(seconds);
    const Place place{rank, pass.chunk};
    if (pass.kind == PassKind::forward) maker(place, false, pass.micro_batch) = before;
    if (makes_input_gradient(pass)) maker(place, true, pass.micro_batch) = before;
  }
}

void PipelineGraph::add_needs(Draft& draft, std::int64_t rank, const std::vector<Pass>& order) {
  for (const Pass& pass : order) {
    const Vertex to = of_pass_[next_pass_++];
    for (const Needed& needed : needs(pipeline_, rank, pass)) {
      const Vertex from = maker(needed.place, needed.kind != PassKind::forward, needed.micro_batch);
      if (from == to) continue;
      const bool sent = draft.operations[from].rank != draft.operations[to].rank;
      draft.add_edge(from, to, {sent ? message_ : 0});
    }
  }
}

void PipelineGraph::add_slack(const std::vector<Vertex>& order,
                              const std::vector<double>& start,
                              PipelineTime& time) const {
  for (RankTime& rank : time.ranks) rank.slack = std::numeric_limits<double>::infinity();
  std::vector<double> latest(order.size(), time.seconds);
  for (const Vertex v : order) {
    for (const auto wait : boost::make_iterator_range(out_edges(v, graph_))) {
      const Vertex next = target(wait, graph_);
      latest[v] = std::min(latest[v], latest[next] - graph_[next].seconds - graph_[wait].seconds);
    }
    double& slack = time.ranks[graph_[v].rank].slack;
    slack = std::min(slack, latest[v] - graph_[v].seconds - start[v]);
  }
}

}  // namespace zeroplan
