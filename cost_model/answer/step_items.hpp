#pragma once
// What a rank does in a step, pass by pass in the order of its program: tensors that come and go,
// kernels, and the calls of the answer among them.

#include <optional>
#include <vector>

#include "cost_model/pipeline/timed_load.hpp"
#include "cost_model/program/play.hpp"

namespace zeroplan {

/// A tensor event, a call, or a kernel.
struct StepItem {
  std::int32_t block = -1;          // position in the chunk's chain; -1: at its border
  std::size_t event = 0;            // of tensors: in StepItems::events
  const TimedLoad* load = nullptr;  // of calls: the answer's load that they are part of
  std::int64_t times = 1;           // in a row
  std::optional<PlayedKernel> kernel = {};
  bool along_pass = false;  // one of several that stand evenly in it, whatever block is there

  /// Seconds of these calls of the load's, and those that the step waits for.
  double seconds() const { return part() * load->seconds; }
  double exposed() const { return part() * load->exposed; }

 private:
  double part() const { return static_cast<double>(times) / static_cast<double>(load->load.calls); }
};

struct StepItems {
  std::vector<Played> events;                 // all of the step; resident tensors come first
  std::vector<StepItem> before;               // what the step before left
  std::vector<std::vector<StepItem>> passes;  // in the order of passes
  std::vector<StepItem> at_end;               // after the passes; and what waits for it
};

/// Plays `program` in this order of passes, which shows so many micro-batches of the problem's
/// step. `loads`: of the answer; each of its calls stands here once, but for what crosses between
/// stages. Calls that the program lacks, or writes as a row, stand evenly in the passes of their
/// direction.
StepItems step_items(const Problem& problem,
                     const StageProgram& program,
                     const std::vector<Pass>& order,
                     std::int64_t micro_batches,
                     const std::vector<TimedLoad>& loads);

/// Whether the load is the messages between stages, or the gathers that put them together again.
bool is_message(const CollectiveLoad& load);
bool gathers_messages(const Problem& problem, const CollectiveLoad& load);

}  // namespace zeroplan
