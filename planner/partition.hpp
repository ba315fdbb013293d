#pragma once
// Layers to pipeline stages: the contiguous split whose slowest stage is fastest, among those that
// fit.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cost_model/stages.hpp"

namespace zeroplan {

struct PartitionQuestion {
  std::vector<double> layer_seconds;  // of one micro-batch, forward and backward
  double embedding_seconds = 0;       // added to the first stage
  double head_seconds = 0;            // added to the last
  std::int64_t stages = 1;
  /// Whether stage number `stage`, which decides how many micro-batches it has in flight, can hold
  /// these layers; empty: always.
  std::function<bool(std::int64_t stage, LayerRange layers)> fits;
};

struct Partition {
  std::vector<std::int64_t> sizes;  // layers of each stage, at least one
  double slowest = 0;               // seconds of the slowest stage
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// A path of least greatest edge through the graph of placements: a vertex is a number of layers
/// placed on a number of stages, an edge the next stage, its weight that stage's seconds; stages
/// that do not fit have no edge. Exact. Empty when no split fits. The graph has about
/// stages x (layers - stages)^2 / 2 edges.
std::optional<Partition> balanced_partition(const PartitionQuestion& question);

}  // namespace zeroplan
