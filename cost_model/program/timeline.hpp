#pragma once
// The memory of one pipeline rank over a steady step, event by event.

#include <string>
#include <vector>

#include "cost_model/program/play.hpp"

namespace zeroplan {

/// Events [first, last) of the step are one pass.
struct PassSpan {
  Pass pass;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Timeline {
  std::vector<Played> events;         // of the step alone; what is resident came before
  std::vector<MemoryBreakdown> live;  // after each event
  std::vector<PassSpan> passes;
  MemoryBreakdown resident;
  std::size_t highest = 0;  // index of the first event after which most is allocated
};

/// Tensors of one name and size that live at the same moment.
struct LiveTensors {
  std::string_view name;
  Category category;
  std::int64_t count = 1;
  Bytes each;
  Bytes total() const { return count * each; }
};

/// Each kind of the tensors, in the order in which they stand.
std::vector<LiveTensors> kinds_of(const std::vector<TensorSpec>& tensors);

/// What the step has made and not freed at its highest moment, in the order in which each kind was
/// first made; what is resident is not among it.
std::vector<LiveTensors> live_at_highest(const Timeline& timeline);

/// What the forward pass of a block by itself has made and not freed at its highest moment, in the
/// order in which each kind was first made.
std::vector<LiveTensors> live_at_highest(const Block& block);

/// Plays the step and keeps what the ledger showed after each event.
Timeline timeline(const StageProgram& program, const std::vector<Pass>& order);

/// True where the rank runs several model chunks.
bool has_chunks(const Timeline& timeline);

/// "f3", "b3" and, where it is put off, "w3" for the passes of micro-batch 3, with the chunk where
/// there are several: "f3.1".
std::string pass_name(const Pass& pass, bool with_chunk);

}  // namespace zeroplan
