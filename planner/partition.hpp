#pragma once
// Layers to pipeline stages: the contiguous split whose slowest stage is fastest, among those that
// fit.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "cost_model/rank/stages.hpp"

namespace zeroplan {

struct PartitionQuestion {
  std::int64_t layers = 0;
  std::int64_t stages = 1;
  /// Seconds of stage number `stage` with these layers, and with the end of the model that it
  /// holds; never less with more layers.
  std::function<double(std::int64_t stage, LayerRange layers)> seconds;
  /// Whether stage number `stage`, which decides how many micro-batches it has in flight, can hold
  /// these layers; empty: always.
  std::function<bool(std::int64_t stage, LayerRange layers)> fits;
  double below = std::numeric_limits<double>::infinity();  // seconds that no stage may reach
};

struct Partition {
  std::vector<std::int64_t> sizes;  // layers of each stage, at least one
  double slowest = 0;               // seconds of the slowest stage
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// A path of least greatest edge through the graph of placements: a vertex is a number of layers
/// placed on a number of stages, an edge the next stage, its weight that stage's seconds; stages
/// that do not fit, or are not below the limit, have no edge. Exact. Empty when no split is left.
std::optional<Partition> balanced_partition(const PartitionQuestion& question);

}  // namespace zeroplan
