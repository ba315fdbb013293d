#pragma once
// The memory of one rank over a step: as a chart, as JSON, as a trace, and as a snapshot.

#include <string>

#include "cli/out/terminal.hpp"
#include "cost_model/allocator/replay.hpp"
#include "cost_model/answer/step_streams.hpp"
#include "cost_model/program/timeline.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Whether PyTorch counts it as allocated; what follows is the allocator\'s, NCCL\'s and CUDA\'s.
constexpr bool is_allocated(Category category) {
  return category < Category::fragmentation;
}

/// A rank's steady step, and the peaks of all phases of a run.
struct RankMemory {
  std::int64_t stage = 0;
  Timeline step;
  std::vector<PhasePeak> phases;
  RankStreams streams;
  std::int64_t micro_batches = 0;  // of the step that was played: where a step is long, fewer
};

/// When the pass runs; at the start where the clock does not know it.
TimedPass timed_pass(const RankClock& clock, const Pass& pass);

/// A chart of allocated bytes over the events of the step, the passes under it, what is live at the
/// highest moment, and the phases; quiet: the highest moment alone.
std::string timeline_text(const Problem& problem, const RankMemory& memory, TextStyle style);

/// Schema zeroplan.timeline/1: bytes after each tensor event, by category, counted from the step's
/// start; each pass with its seconds; and what happens, in order of time: tensors that come and go,
/// calls, and blocks that compute.
std::string timeline_json(const Problem& problem, const RankMemory& memory);

/// Chrome trace format, which Perfetto and chrome://tracing open: a process a pipeline rank, a
/// thread a stream with a slice a block or call, asynchronous slices for passes, a counter of
/// memory by category. `streams`: of all ranks. The counter has each event of the rank that
/// `memory` is of, and the highest moment in each block of the others.
std::string timeline_chrome_trace(const Problem& problem,
                                  const RankMemory& memory,
                                  const std::vector<RankStreams>& streams);

/// A snapshot as torch.cuda.memory._dump_snapshot writes it, for PyTorch's memory viewer: a pickle
/// of plain dictionaries, lists, texts and numbers. Frames carry the tensor's name and where it was
/// made. Source: pytorch/pytorch torch/cuda/_memory_viz.py, torch/utils/viz/MemoryViz.js.
std::string snapshot_pickle(const PlacedStep& step, const std::vector<Pass>& order);

}  // namespace zeroplan
