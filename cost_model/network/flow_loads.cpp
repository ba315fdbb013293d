// How much passes each uplink? Front door: flow_loads.
#include "cost_model/network/flow_loads.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// The ranks of a group on one of its nodes.
struct OnNode {
  std::int64_t node = 0;
  std::int64_t ranks = 0;
};

class Loading {
 public:
  Loading(const SwitchGraph& switches, const Flows& flows)
      : switches_(switches),
        flows_(flows),
        loads_{std::vector<double>(switches.size()), std::vector<double>(switches.size())},
        below_(switches.size()),
        squares_(switches.size()) {}

  UplinkLoads take() && {
    const RankGroup& group = flows_.group;
    const std::int64_t beside = group.neighbours();
    for (std::int64_t first = 0; first + group.span() <= flows_.gpus; first += group.span()) {
      for (std::int64_t rank = first; rank < first + beside;) {
        const std::int64_t alike = std::min(alike_from(rank), first + beside - rank);
        add_groups(rank, static_cast<double>(alike));
        rank += alike;
      }
    }
    return std::move(loads_);
  }

 private:
  // Groups that begin at this rank and the next ones, and stand on the same nodes.
  std::int64_t alike_from(std::int64_t rank) const {
    const std::int64_t node = flows_.gpus_per_node;
    return flows_.group.stride % node == 0 ? node - rank % node : 1;
  }

  void add_groups(std::int64_t first, double groups) {
    nodes_.clear();
    for (std::int64_t i = 0; i < flows_.group.ranks; ++i) {
      const std::int64_t node = (first + i * flows_.group.stride) / flows_.gpus_per_node;
      if (nodes_.empty() || nodes_.back().node != node) nodes_.push_back({node, 0});
      ++nodes_.back().ranks;
    }
    if (nodes_.size() < 2) return;
    switch (flows_.pattern) {
      case Pattern::ring:
        return add_chain(groups, nodes_.size());
      case Pattern::chain:
        return add_chain(groups, nodes_.size() - 1);
      case Pattern::trees:
        return add_trees(groups);
      case Pattern::pat:
        return add_pat(groups);
      case Pattern::pairs:
        return add_pairs(groups);
    }
  }

  // From the i-th node of the group to its j-th.
  void add(std::size_t i, std::size_t j, double weight) {
    const auto a = switches_.leaf(nodes_[i].node), b = switches_.leaf(nodes_[j].node);
    switches_.route(
        a, b, [&](auto v) { loads_.up[v] += weight; }, [&](auto v) { loads_.down[v] += weight; });
    if (a == b) add_crossing(a, weight);
  }

  void add_crossing(SwitchGraph::Vertex leaf, double weight) {
    loads_.up[leaf] += flows_.crossing * weight;
    loads_.down[leaf] += flows_.crossing * weight;
  }

  void add_chain(double groups, std::size_t sends) {
    for (std::size_t i = 0; i < sends; ++i) add(i, (i + 1) % nodes_.size(), groups);
  }

  // The parent of a node in a binary tree whose leaves are the odd ones: the lowest bit that is set
  // moves up.
  static std::size_t parent(std::size_t i, std::size_t nodes) {
    const std::size_t bit = i & (~i + 1);
    const std::size_t up = (i ^ bit) | (bit << 1);
    return up < nodes ? up : i ^ bit;
  }

  // What is inside one tree is a leaf of the other. A node inside sends half of the buffer four
  // times; of two nodes each sends it twice, and that is all.
  void add_trees(double groups) {
    const std::size_t n = nodes_.size();
    const double weight = groups / (n == 2 ? 2 : 4);
    const auto both = [&](std::size_t child, std::size_t above) {
      add(child, above, weight);
      add(above, child, weight);
    };
    const auto other = [&](std::size_t i) { return n % 2 == 0 ? n - 1 - i : (i + 1) % n; };
    for (std::size_t i = 1; i < n; ++i) {
      both(i, parent(i, n));
      both(other(i), other(parent(i, n)));
    }
  }

  // The last hop of a part goes over the lowest bit of its distance.
  void add_pat(double groups) {
    const std::size_t n = nodes_.size();
    for (std::size_t apart = 1; apart < n; apart *= 2) {
      const std::size_t parts = (n - 1 - apart) / (2 * apart) + 1;
      const double weight = groups * static_cast<double>(parts) / static_cast<double>(n - 1);
      for (std::size_t i = 0; i < n; ++i) add(i, (i + apart) % n, weight);
    }
  }

  // r ranks below a switch send n - r parts each to those that are not.
  void add_pairs(double groups) {
    touched_.clear();
    for (const auto& [node, ranks] : nodes_) {
      auto v = switches_.leaf(node);
      const auto count = static_cast<double>(ranks);
      squares_[v] += count * count;
      for (;; v = switches_.above(v)) {
        if (below_[v] == 0) touched_.push_back(v);
        below_[v] += count;
        if (switches_.is_top(v)) break;
      }
    }
    const auto all = static_cast<double>(flows_.group.ranks);
    const auto local = static_cast<double>(flows_.ranks_per_node);
    const double unit = groups / (local * (all - local));
    for (const auto v : touched_) {
      const double sent = below_[v] * (all - below_[v]) * unit;
      loads_.up[v] += sent;
      loads_.down[v] += sent;
      if (squares_[v] > 0) add_crossing(v, (below_[v] * below_[v] - squares_[v]) * unit);
      below_[v] = squares_[v] = 0;
    }
  }

  const SwitchGraph& switches_;
  const Flows& flows_;
  UplinkLoads loads_;
  std::vector<OnNode> nodes_;    // of the groups that are added
  std::vector<double> below_;    // ranks of it below a switch
  std::vector<double> squares_;  // of its ranks on the nodes of a first switch
  std::vector<SwitchGraph::Vertex> touched_;
};

}  // namespace

UplinkLoads flow_loads(const SwitchGraph& switches, const Flows& flows) {
  return Loading(switches, flows).take();
}

}  // namespace zeroplan
