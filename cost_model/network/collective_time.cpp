// How long does a collective take? Front door: collective_time.
#include "cost_model/network/collective_time.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "cost_model/network/topology.hpp"
#include "cost_model/network/tuning.hpp"

namespace zeroplan {
namespace {

// A collective in the terms of the formulas: S bytes over n ranks, g a node, N nodes.
struct Job {
  Collective collective;
  double bytes;
  double ranks;
  double local;
  double nodes;
  const tuning::Generation& generation;
  bool pcie;
  bool nvls;         // the GPUs and their switch can
  double fast;       // usable bytes/s of a GPU inside its node
  double home;       // bytes/s of what a rank copies to itself
  double forwarded;  // of what goes to other nodes, the part that passes links inside a node first
  const CommunicationGroup& group;

  bool spans_nodes() const { return nodes > 1; }
  // Usable bytes/s of the group's share of a node's cards, or of what is narrower between nodes.
  double network(Pattern sent) const {
    return group.between_nodes(sent) * tuning::network_efficiency;
  }
  // Usable bytes/s of the slowest of the links that are passed.
  double slowest(Pattern sent) const {
    if (nodes == 1) return fast;
    const bool alone = local == 1 && forwarded == 0;  // no link inside a node is passed
    return alone ? network(sent) : std::min(fast, network(sent));
  }
};

Job job_of(Collective collective, const CommunicationGroup& group, Bytes payload) {
  const tuning::Generation& generation = tuning::generation_of(group.compute_capability);
  const bool pcie = group.intra_node == LinkKind::pcie;
  const double fast =
      group.intra_node_bandwidth * (pcie ? tuning::pcie_efficiency : generation.link_efficiency);
  Job job{.collective = collective,
          .bytes = static_cast<double>(payload.count()),
          .ranks = static_cast<double>(group.ranks),
          .local = static_cast<double>(group.ranks_per_node),
          .nodes = static_cast<double>(nodes_of(group)),
          .generation = generation,
          .pcie = pcie,
          .nvls = group.intra_node == LinkKind::nvlink && generation.nvls_efficiency > 0 &&
                  group.ranks_per_node >= tuning::nvls_least_ranks,
          .fast = fast,
          .home = fast,
          .forwarded = group.forwarded,
          .group = group};
  job.home = std::max(fast, job.slowest(Pattern::ring));
  return job;
}

// Levels of a binary tree over the nodes.
double levels(const Job& job) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(job.nodes)) - 1);
}

double ring_seconds(const Job& job, const tuning::Protocol& protocol) {
  const bool twice = job.collective == Collective::all_reduce;
  const double slowest = job.slowest(Pattern::ring);
  const double steps = (twice ? 2 : 1) * (job.ranks - 1);
  const double crossings = (twice ? 2 : 1) * (job.nodes - 1);
  double hop = (job.pcie ? protocol.pcie : protocol.nvlink).ring;
  if (job.spans_nodes()) hop = std::max(hop, protocol.network_post);
  const double crossing = job.local == 1 ? protocol.network.tree : protocol.network.ring;
  double latency = job.generation.latency_scale * (protocol.base + (steps - crossings) * hop) +
                   crossings * crossing;
  if (twice && job.spans_nodes()) latency *= protocol.network_plateau;
  if (job.collective == Collective::broadcast) {
    return latency + job.bytes / (slowest * protocol.ring_rate);
  }
  // S/n a step, and once more at home: S/n (steps / slowest + own part / home).
  return latency + job.bytes / job.ranks * (steps / slowest + tuning::own_part / job.home) /
                       protocol.ring_rate;
}

// All-reduce: every byte goes up and down, 2 S.
double tree_seconds(const Job& job, const tuning::Protocol& protocol) {
  const double hop = (job.pcie ? protocol.pcie : protocol.nvlink).tree;
  return job.generation.latency_scale * (protocol.base + 2 * (job.local - 1) * hop) +
         2 * levels(job) * protocol.network.tree +
         2 * job.bytes / (job.slowest(Pattern::trees) * protocol.tree_rate);
}

// Bytes/s of an all-reduce in the switch. Each GPU's link carries its whole buffer to be added and
// the sum of its own part to be spread: S (1 + 1/g).
double nvls_rate(const Job& job) {
  return job.fast * job.generation.nvls_efficiency * tuning::nvls_channels / (1 + 1 / job.local);
}

double nvls_seconds(const Job& job) {
  return job.generation.latency_scale * tuning::nvls_latency + job.bytes / nvls_rate(job);
}

// Two trees, half the buffer each: of two nodes each sends S, of more the busiest sends 2 S.
double hierarchical_seconds(const Job& job) {
  const double sent = job.nodes == 2 ? job.bytes : 2 * job.bytes;
  return job.generation.latency_scale * tuning::nvls_latency +
         2 * levels(job) * tuning::nvls_tree_hop +
         std::max(job.bytes / nvls_rate(job),
                  sent / (job.network(Pattern::trees) * tuning::nvls_tree_rate));
}

double pat_seconds(const Job& job) {
  return tuning::pat_base + levels(job) * tuning::pat_level + job.ranks * tuning::pat_rank +
         job.bytes * (job.ranks - 1) / job.ranks / (job.network(Pattern::pat) * tuning::pat_rate);
}

// Parts of S/n: to the g-1 ranks of the node and to oneself over NVLink, to the n-g others over the
// rank's share of the network. One after the other: NCCL schedules peers in rounds, and the times
// of all-to-alls over 16 to 64 H100 (Megatron-Core's MoE report, Table 7) are sums.
double all_to_all_seconds(const Job& job, const tuning::PairwiseMode& mode) {
  const double part = job.bytes / job.ranks;
  double seconds = job.generation.latency_scale * (mode.base + (job.ranks - 1) * mode.peer) +
                   part * tuning::own_part / (job.home * mode.rate);
  if (job.local > 1) seconds += part * (job.local - 1) / (job.fast * mode.rate);
  if (job.spans_nodes()) {
    const double far = part * (job.ranks - job.local);
    seconds += tuning::protocols.back().network.ring +
               far / (job.network(Pattern::pairs) / job.local) +
               far * job.forwarded / (job.fast * mode.rate);
  }
  return seconds;
}

double send_seconds(const Job& job, const tuning::PairwiseMode& mode) {
  const double latency = job.generation.latency_scale * (mode.base + mode.peer);
  if (!job.spans_nodes()) return latency + job.bytes / (job.fast * mode.rate);
  const double rate = job.forwarded > 0 ? job.slowest(Pattern::chain) : job.network(Pattern::chain);
  return latency + tuning::protocols.back().network.ring + job.bytes / rate;
}

// The patterns in which a collective's algorithms may have to send between nodes.
std::span<const Pattern> patterns_of(Collective collective) {
  static constexpr std::array reductions{Pattern::ring, Pattern::trees};
  static constexpr std::array sharded{Pattern::ring, Pattern::pat};
  switch (collective) {
    case Collective::all_reduce:
      return reductions;
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return sharded;
    case Collective::broadcast:
      return std::span(sharded).first(1);
    default:
      break;
  }
  static constexpr std::array pairs{Pattern::pairs};
  static constexpr std::array chain{Pattern::chain};
  return collective == Collective::all_to_all ? std::span<const Pattern>(pairs) : chain;
}

// Collects offers and keeps the cheapest.
class Cheapest {
 public:
  void offer(Algorithm algorithm, double seconds) {
    if (seconds < best_.seconds) best_ = {seconds, algorithm};
  }
  CollectiveTime best() const { return best_; }

 private:
  CollectiveTime best_{std::numeric_limits<double>::infinity(), Algorithm::ring};
};

}  // namespace

CollectiveTime collective_time(Collective collective,
                               const CommunicationGroup& group,
                               Bytes payload,
                               std::span<const MeasuredPoint> measured) {
  if (group.ranks <= 1 || payload <= Bytes{}) return {};
  if (!measured.empty()) return {interpolated_seconds(measured, payload), Algorithm::measured};
  const Job job = job_of(collective, group, payload);
  Cheapest time;
  if (collective == Collective::all_to_all || collective == Collective::send_recv) {
    for (const tuning::PairwiseMode& mode : tuning::pairwise) {
      time.offer(Algorithm::pairwise, collective == Collective::all_to_all
                                          ? all_to_all_seconds(job, mode)
                                          : send_seconds(job, mode));
    }
    return time.best();
  }
  const bool all_reduce = collective == Collective::all_reduce;
  for (const tuning::Protocol& protocol : tuning::protocols) {
    if (job.pcie && !protocol.over_pcie) continue;
    time.offer(Algorithm::ring, ring_seconds(job, protocol));
    if (all_reduce && job.spans_nodes()) time.offer(Algorithm::tree, tree_seconds(job, protocol));
  }
  if (all_reduce && job.nvls) {
    if (job.spans_nodes()) {
      time.offer(Algorithm::hierarchical, hierarchical_seconds(job));
    } else {
      time.offer(Algorithm::nvls, nvls_seconds(job));
    }
  }
  const bool sharded =
      collective == Collective::all_gather || collective == Collective::reduce_scatter;
  if (sharded && job.spans_nodes() && job.local == 1) {
    time.offer(Algorithm::pat, pat_seconds(job));
  }
  return time.best();
}

CollectiveTime collective_time(Collective collective,
                               const ClusterSpec& cluster,
                               const RankGroup& group,
                               Bytes payload) {
  const CommunicationGroup placed = placement(cluster, group, patterns_of(collective));
  return collective_time(
      collective, placed, payload,
      measured_points(cluster.measured, collective, placed.ranks, placed.ranks_per_node));
}

std::optional<Pattern> pattern_between_nodes(Collective collective, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return Pattern::ring;
    case Algorithm::tree:
    case Algorithm::hierarchical:
      return Pattern::trees;
    case Algorithm::pat:
      return Pattern::pat;
    case Algorithm::pairwise:
      return collective == Collective::all_to_all ? Pattern::pairs : Pattern::chain;
    default:
      return std::nullopt;
  }
}

}  // namespace zeroplan
