#pragma once
// What all problems have in common that one Remembered may be asked about.

#include <array>
#include <optional>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// The model; since the first problem, the GPU with its links, and the runtime with its settings.
/// Settings that a layout may decide (`recompute_modules`, `loss_chunks`, ...) have to stay as they
/// are only where it does not. How layers are split over stages is the layout's alone.
class OneQuestion {
 public:
  explicit OneQuestion(const ModelSpec& model) : model_(model) {}

  /// Throws std::logic_error, which says what differs, where the problem asks something else: what
  /// is remembered would answer wrongly. Some hundred nanoseconds.
  void require(const Problem& problem);

 private:
  using Settings = std::array<std::optional<std::int64_t>, 8>;

  // The rest of the settings stand in a runtime without those.
  struct Asked {
    ClusterSpec cluster;
    RuntimeSpec runtime;
  };

  static Settings settings_of(const Problem& problem);

  ModelSpec model_;
  std::optional<Asked> asked_;
  Settings settings_;  // empty while only the layouts decided
};

}  // namespace zeroplan
