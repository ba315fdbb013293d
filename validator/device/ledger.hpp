#pragma once
// What a rank allocated: every tensor with its category and its bytes, and all categories at the
// highest moment. Bytes come from shapes that were really allocated, never from a plan.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/states/breakdown.hpp"

namespace zeroplan::engine {

/// Names the tensor that found no room, and what held it.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Ledger {
 public:
  using Entry = std::size_t;

  /// Allocations start at multiples of this many bytes, so they take whole ones.
  static constexpr std::int64_t alignment = 512;

  /// `capacity`: more than this at once throws OutOfMemory; 0: no limit.
  explicit Ledger(Bytes capacity = {}) : capacity_(capacity) {}

  /// What follows belongs to this part of the step.
  void enter(Phase phase) { phase_ = phase; }

  Entry add(std::string_view tensor, Category category, Bytes asked);
  void remove(Entry entry);

  const MemoryBreakdown& live() const { return live_; }

  /// The earliest of the highest moments so far, and the allocation that reached it.
  struct Peak {
    MemoryBreakdown live;
    Phase phase = Phase::forward;
    std::string_view tensor;
  };
  const Peak& peak() const { return peak_; }

  /// Live tensors by name and the phase that made them, largest first.
  std::string listing() const;

 private:
  struct Row {
    std::string_view tensor;
    Category category = Category::parameters;
    Bytes bytes;
    std::optional<Phase> phase;  // that made it
    bool live = false;
  };

  Bytes capacity_;
  std::optional<Phase> phase_;  // none before the first step
  std::vector<Row> rows_;
  std::vector<Entry> free_rows_;
  MemoryBreakdown live_;
  Peak peak_;
};

}  // namespace zeroplan::engine
