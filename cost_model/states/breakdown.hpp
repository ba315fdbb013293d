#pragma once
// Memory of one GPU, each byte under exactly one name.

#include <array>
#include <cstddef>

#include "cost_model/question/names.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// In the order of a report: what the program allocates, what the allocator wastes, what lies
/// outside it.
enum class Category {
  parameters,
  gradients,
  master_parameters,
  optimizer_states,
  activations,
  communication_buffers,
  temporaries,
  workspace,
  fragmentation,
  communicators,
  context,
};

template <>
struct Spellings<Category> {
  static constexpr std::array<std::string_view, 11> value{
      "parameters",       "gradients",   "master_parameters",
      "optimizer_states", "activations", "communication_buffers",
      "temporaries",      "workspace",   "fragmentation",
      "communicators",    "context"};
};

/// When in a run. `init`: before the first step. `first_step`: the one that makes the moments; the
/// next five are of a steady step and of saving a checkpoint after it. `resume`: loading one.
enum class Phase { init, first_step, forward, loss, backward, optimizer_step, checkpoint, resume };

template <>
struct Spellings<Phase> {
  static constexpr std::array<std::string_view, 8> value{
      "init",     "first_step",     "forward",    "loss",
      "backward", "optimizer_step", "checkpoint", "resume"};
};

class MemoryBreakdown {
 public:
  Bytes& operator[](Category c) { return bytes_[static_cast<std::size_t>(c)]; }
  Bytes operator[](Category c) const { return bytes_[static_cast<std::size_t>(c)]; }

  /// Live tensors: torch.cuda.memory_allocated.
  Bytes allocated() const { return sum(Category::parameters, Category::fragmentation); }
  /// What the caching allocator holds: torch.cuda.memory_reserved.
  Bytes reserved() const { return sum(Category::parameters, Category::communicators); }
  /// What nvidia-smi shows: the sum of all rows.
  Bytes device() const {
    return reserved() + (*this)[Category::communicators] + (*this)[Category::context];
  }

  MemoryBreakdown& operator+=(const MemoryBreakdown& other) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] += other.bytes_[i];
    return *this;
  }
  friend MemoryBreakdown operator+(MemoryBreakdown a, const MemoryBreakdown& b) { return a += b; }
  friend MemoryBreakdown operator*(std::int64_t times, MemoryBreakdown a) {
    for (Bytes& bytes : a.bytes_) bytes = bytes * times;
    return a;
  }
  friend bool operator==(const MemoryBreakdown&, const MemoryBreakdown&) = default;

 private:
  Bytes sum(Category first, Category end) const {
    Bytes total;
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i) {
      total += bytes_[i];
    }
    return total;
  }

  std::array<Bytes, names<Category>().size()> bytes_{};
};

}  // namespace zeroplan
