#pragma once
// The memory of one rank over a step: as a chart, as JSON, as a trace, and as a snapshot.

#include <string>

#include "cost_model/allocator/replay.hpp"
#include "cost_model/answer/step_clock.hpp"
#include "cost_model/program/timeline.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// A rank's steady step, and the peaks of all phases of a run.
struct RankMemory {
  std::int64_t stage = 0;
  Timeline step;
  std::vector<PhasePeak> phases;
  RankClock clock;
  std::int64_t micro_batches = 0;  // of the step that was played: where a step is long, fewer
};

/// When the pass runs; at the start where the clock does not know it.
TimedPass timed_pass(const RankClock& clock, const Pass& pass);

/// A chart of allocated bytes over the events of the step, the passes under it, what is live at the
/// highest moment, and the phases; `quiet`: the highest moment alone.
std::string timeline_text(const Problem& problem, const RankMemory& memory, bool quiet);

/// Schema zeroplan.timeline/1: bytes after each event, by category; events count from the step's
/// start; each pass with its seconds.
std::string timeline_json(const Problem& problem, const RankMemory& memory);

/// Chrome trace format, which Perfetto and chrome://tracing open: a slice a pass, a counter a
/// category. Passes, reductions, optimizer and gathers take their predicted time; what is allocated
/// and freed in one of them is spread evenly over it.
std::string timeline_chrome_trace(const Problem& problem, const RankMemory& memory);

/// A snapshot as torch.cuda.memory._dump_snapshot writes it, for PyTorch's memory viewer: a pickle
/// of plain dictionaries, lists, texts and numbers. Frames carry the tensor's name and where it was
/// made. Source: pytorch/pytorch torch/cuda/_memory_viz.py, torch/utils/viz/MemoryViz.js.
std::string snapshot_pickle(const PlacedStep& step, const std::vector<Pass>& order);

}  // namespace zeroplan
