#pragma once
// What a run held at its peak, beside what the prediction holds at its own.

#include <string>
#include <vector>

#include "cost_model/program/timeline.hpp"
#include "validator/overlay/memory_history.hpp"

namespace zeroplan {

/// Tensors of one size.
struct SizeRow {
  std::int64_t bytes = 0;            // of each, as the allocator counts
  std::int64_t measured = 0;         // how many are held
  std::int64_t predicted = 0;        // how many are expected
  std::vector<std::string> holders;  // measured: who asked for most of them first
  std::vector<std::string> tensors;  // predicted: their names

  std::int64_t difference() const { return (measured - predicted) * bytes; }
};

/// Predicted bytes of a category, and those of them that the run holds in blocks of their size.
struct CategoryRow {
  Category category{};
  std::int64_t predicted = 0;
  std::int64_t found = 0;
};

struct MemoryOverlay {
  std::int64_t measured = 0;   // bytes at the peak
  std::int64_t predicted = 0;  // bytes at the peak
  std::int64_t reserved = 0;   // bytes of segments at the end of the history
  std::size_t unmatched = 0;
  std::vector<CategoryRow> categories;
  std::vector<SizeRow> sizes;  // what is off most first
};

/// `predicted`: the tensors of a step's highest moment, resident ones among them. Tensors and
/// blocks are paired by size alone: nothing else is known of both.
MemoryOverlay memory_overlay(const MemoryHistory& history,
                             const std::vector<TensorSpec>& predicted);

/// The tensors that are live at the highest moment of the step; what is resident as the single
/// tensors that `startup` makes, in each category in which these add up to it.
std::vector<TensorSpec> tensors_at_peak(const StageProgram& program,
                                        const Startup& startup,
                                        const Timeline& timeline);

}  // namespace zeroplan
