#pragma once
// A measured step beside the predicted one, kind of work by kind of work.

#include <optional>
#include <string>
#include <vector>

#include "validator/overlay/step_work.hpp"

namespace zeroplan {

/// One kind of work; of collectives those of one kind and group.
struct OverlayRow {
  Work work{};
  std::string name;                            // "products", "all-gather in dp of 8"
  std::optional<WorkSum> measured, predicted;  // none: nothing of the kind
  std::string group = {};                      // of collectives, predicted; several joined by +
  std::optional<Collective> collective = {};
  std::int64_t ranks = 0;

  /// Seconds that it takes longer than predicted.
  double difference() const;
  /// Measured over predicted; none where nothing is predicted.
  std::optional<double> ratio() const;
};

struct Overlay {
  double measured = 0;           // seconds of the step
  double predicted = 0;          // seconds of the step
  std::vector<OverlayRow> rows;  // what is off most first
};

/// A measured collective stands beside the predicted one of its kind and number of ranks, and where
/// several groups have these, beside the one that PyTorch's description names; else beside all of
/// them together. Where its number of ranks was not noted, beside all of its kind. One that could
/// be both, NCCL's send and receive, is an all-to-all where no message is predicted.
Overlay overlay(const StepWork& measured, const StepWork& predicted);

/// What is off most, in a sentence.
std::string largest_difference(const Overlay& overlay);

}  // namespace zeroplan
