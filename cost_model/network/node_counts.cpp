// How many ranks and groups share a node at most? Front door: node_counts.
#include "cost_model/network/node_counts.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace zeroplan {
namespace {

// Ranks lie in blocks, one after the other, of groups that begin side by side. Where a block begins
// in its node decides what it finds there, so those that begin alike are looked at once.
class Blocks {
 public:
  Blocks(const ClusterSpec& cluster, const RankGroup& group)
      : node_(cluster.gpus_per_node),
        group_(group),
        beside_(group.neighbours()),
        size_(group.span()),
        count_(cluster.gpus / size_) {}

  std::int64_t most_ranks() const {
    const std::int64_t stride = group_.stride;
    if (stride >= node_) return 1;
    // Where groups begin in their nodes.
    std::vector<bool> places(static_cast<std::size_t>(node_));
    for (std::int64_t block = 0; block < different(size_, count_); ++block) {
      for (std::int64_t rank = 0; rank < std::min(beside_, node_); ++rank) {
        places[static_cast<std::size_t>((block * size_ + rank) % node_)] = true;
      }
    }
    std::int64_t most = 1;
    for (std::int64_t place = 0; place < node_; ++place) {
      if (places[static_cast<std::size_t>(place)]) most = std::max(most, most_ranks_from(place));
    }
    return most;
  }

  std::int64_t most_groups() const {
    if (group_.ranks == 1) return 0;
    if ((group_.ranks - 1) * group_.stride < node_) return most_of_short_groups();
    // Each group spans nodes. A node that holds neither end of a run of neighbouring ranks lies
    // inside one, and has no more groups than one with an end and all the rest of itself in a run.
    const bool whole = beside_ == group_.stride;
    const std::int64_t run = whole ? size_ : beside_;
    const std::int64_t runs = whole ? 1 : different(group_.stride, group_.ranks);
    std::int64_t most = 0;
    for (std::int64_t block = 0; block < different(size_, count_); ++block) {
      for (std::int64_t i = 0; i < runs; ++i) {
        const std::int64_t first = block * size_ + i * group_.stride;
        const std::int64_t node = first / node_;
        for (const std::int64_t near : {node, node + 1, (first + run - 1) / node_}) {
          most = std::max(most, groups_on(near));
        }
      }
    }
    return most;
  }

 private:
  // How many of `count` places that are `apart` to look at until they repeat on nodes.
  std::int64_t different(std::int64_t apart, std::int64_t count) const {
    return std::min(count, node_ / std::gcd(apart, node_));
  }

  // The most ranks on any node of a group whose first rank has this place in its node.
  std::int64_t most_ranks_from(std::int64_t place) const {
    const std::int64_t stride = group_.stride;
    std::int64_t most = 0;
    std::int64_t left = group_.ranks;
    for (std::int64_t nodes = 0; left > 0 && nodes <= stride; ++nodes) {
      const std::int64_t here = std::min(left, ceil_div(node_ - place, stride));
      most = std::max(most, here);
      left -= here;
      place += here * stride - node_;
    }
    return most;
  }

  // The most groups that share a node, in blocks shorter than two nodes: rank by rank.
  std::int64_t most_of_short_groups() const {
    const std::int64_t blocks = different(size_, count_);
    std::vector<std::int64_t> users(static_cast<std::size_t>(blocks * size_ / node_ + 1));
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t i = 0; i < beside_; ++i) {
        const std::int64_t first = block * size_ + i;
        const std::int64_t last = first + (group_.ranks - 1) * group_.stride;
        if (first / node_ == last / node_) continue;
        // The ends of a short group are near: it has a rank on both of its nodes.
        ++users[static_cast<std::size_t>(first / node_)];
        ++users[static_cast<std::size_t>(last / node_)];
      }
    }
    return *std::max_element(users.begin(), users.end());
  }

  // The groups on a node: of all blocks, each with the part of the node that it covers.
  std::int64_t groups_on(std::int64_t node) const {
    const std::int64_t begin = node * node_;
    const std::int64_t end = std::min(begin + node_, count_ * size_);
    std::int64_t groups = 0;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t block = at / size_;
      const std::int64_t next = std::min(end, (block + 1) * size_);
      groups += groups_between(at - block * size_, next - block * size_);
      at = next;
    }
    return groups;
  }

  // The groups of a block with a rank from its place `begin` to before `end`.
  std::int64_t groups_between(std::int64_t begin, std::int64_t end) const {
    if (end - begin >= group_.stride) return beside_;
    const std::int64_t first = begin % group_.stride;
    const std::int64_t last = first + end - begin;
    const auto none_below_zero = [](std::int64_t n) { return std::max<std::int64_t>(0, n); };
    return none_below_zero(std::min(last, beside_) - first) +
           std::min(beside_, none_below_zero(last - group_.stride));
  }

  std::int64_t node_;  // GPUs of a node
  const RankGroup& group_;
  std::int64_t beside_;  // groups of a block
  std::int64_t size_;    // of a block
  std::int64_t count_;
};

}  // namespace

NodeCounts node_counts(const ClusterSpec& cluster, const RankGroup& group) {
  const Blocks blocks(cluster, group);
  return {.ranks = blocks.most_ranks(), .groups = blocks.most_groups()};
}

}  // namespace zeroplan
