#pragma once
// How long a collective takes: latency and bandwidth of each algorithm, and NCCL's choice of one.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "cost_model/network/group.hpp"
#include "cost_model/network/rank_groups.hpp"
#include "cost_model/question/collective.hpp"
#include "cost_model/question/measured_time.hpp"

namespace zeroplan {

enum class Algorithm {
  ring,          // every rank to the next
  tree,          // up and down two trees over the nodes, a chain inside each
  nvls,          // NVLink's switch adds
  hierarchical,  // NVLS inside the nodes, a tree between them (NCCL: NVLSTree)
  pat,           // a tree for each part, one GPU a node
  pairwise,      // each rank to each other directly
  measured,      // read from a table
};

template <>
struct Spellings<Algorithm> {
  static constexpr std::array<std::string_view, 7> value{
      "ring", "tree", "nvls", "hierarchical", "pat", "pairwise", "measured"};
};

struct CollectiveTime {
  double seconds = 0;
  Algorithm algorithm = Algorithm::ring;
};

/// Seconds that a collective with this payload (see collective.hpp) keeps the group's links busy
/// when all groups of its kind run it at once, and by which algorithm. The cheapest of those NCCL
/// has for it, which is how NCCL chooses (src/graph/tuning.cc @5067397c): latency + bytes / rate.
/// `measured`, where not empty, is asked instead. No time for one rank or an empty payload;
/// infinite when the group spans nodes that no network joins.
CollectiveTime collective_time(Collective collective,
                               const CommunicationGroup& group,
                               Bytes payload,
                               std::span<const MeasuredPoint> measured = {});

/// The time of a collective for the groups of a layout on a cluster: what was measured there, else
/// the formulas. This is where the choice between the two is made.
CollectiveTime collective_time(Collective collective,
                               const ClusterSpec& cluster,
                               const RankGroup& group,
                               Bytes payload);

/// Who sends to whom between nodes where this algorithm runs this collective; nothing of one that
/// stays inside a node, or was measured.
std::optional<Pattern> pattern_between_nodes(Collective collective, Algorithm algorithm);

}  // namespace zeroplan
