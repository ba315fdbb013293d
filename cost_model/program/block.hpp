#pragma once
// A block of the model as a program: what it allocates and frees in its forward and in its backward
// pass, in order. Written once by a runtime's builders, then folded into a footprint or played.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cost_model/memory/breakdown.hpp"

namespace zeroplan {

/// A tensor of one block, by its index there.
using Tensor = std::int32_t;

struct TensorSpec {
  std::string_view name;
  Bytes bytes;  // as the caching allocator rounds it
  Category category;
};

struct Event {
  Tensor tensor;
  bool allocates;  // else frees
};

/// Blocks stand in a chain. A block allocates its output, which the next one reads and keeps until
/// its own backward pass is done; so the chain frees it, not the block. The gradient of the output
/// is the next block's `input_grad`; the block that reads it frees it.
struct Block {
  static constexpr Tensor output = 0;       // allocated by the forward pass
  static constexpr Tensor output_grad = 1;  // allocated by the next block's backward pass
  static constexpr Tensor input_grad = 2;   // allocated by the backward pass

  std::vector<TensorSpec> tensors;
  std::vector<Event> forward;
  std::vector<Event> backward;
};

/// Smallest unit of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
inline constexpr std::int64_t allocation_unit = 512;

/// Writes a block, event by event.
class BlockWriter {
 public:
  /// `output` and `gradient`: bytes of the block's output, and of the gradients on both its sides.
  BlockWriter(Bytes output, Bytes gradient);

  /// A new tensor. Nothing is written for zero bytes: the returned index is `none`.
  Tensor allocate(std::string_view name, Bytes bytes, Category category);

  /// Kept for the backward pass.
  Tensor save(std::string_view name, Bytes bytes) {
    return allocate(name, bytes, Category::activations);
  }

  /// Gone before the pass ends.
  Tensor temporary(std::string_view name, Bytes bytes) {
    return allocate(name, bytes, Category::temporaries);
  }

  void allocate(Tensor slot) { write(slot, true); }
  void free(Tensor tensor) {
    if (tensor != none) write(tensor, false);
  }

  /// From here on the events are of the backward pass.
  void begin_backward() { events_ = &block_.backward; }

  Block finish() { return std::move(block_); }

 private:
  static constexpr Tensor none = -1;
  void write(Tensor tensor, bool allocates) { events_->push_back({tensor, allocates}); }

  Block block_;
  std::vector<Event>* events_ = &block_.forward;
};

}  // namespace zeroplan
