#pragma once
// Replay of PyTorch's CUDA caching allocator: what a run reserves, from what it allocates and
// frees.

#include <limits>
#include <optional>
#include <vector>

#include "cost_model/allocator/block_heap.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// The part of PYTORCH_CUDA_ALLOC_CONF that moves memory, and the device.
struct AllocatorConfig {
  bool expandable_segments = false;
  std::optional<Bytes> max_split_size;        // above 20 MiB
  std::int64_t roundup_power2_divisions = 0;  // a power of two; 0 and 1: off
  /// torch.cuda.set_per_process_memory_fraction, in bytes.
  std::optional<Bytes> memory_limit;
  /// Fraction of memory_limit above which idle segments are returned; without a limit, off.
  double garbage_collection_threshold = 0;
  /// What the device has left for this allocator.
  Bytes capacity{std::numeric_limits<std::int64_t>::max()};
};

struct BlockView {
  std::int64_t address = 0;
  Bytes size;
  Bytes requested;  // zero where no tensor lies
  BlockState state = BlockState::free;
};

/// A cudaMalloc segment, or a run of mapped chunks without a hole.
struct SegmentView {
  std::int64_t address = 0;
  Bytes size;
  int stream = 0;
  bool is_large = false;
  std::vector<BlockView> blocks;  // by address; they fill the segment
};

/// The allocator of one device. Streams are small numbers from 0. Time passes only where it is
/// told: an event is pending until `complete_events`.
///
/// Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp @ 001074d25, CUDAAllocatorConfig.h
/// @ 012117ce5
class CachingAllocator {
 public:
  explicit CachingAllocator(const AllocatorConfig& config = {});

  /// Nothing when the device is still full after all that can be returned was returned. Zero bytes
  /// are BlockId::none, which takes no memory and may be freed.
  std::optional<BlockId> allocate(Bytes requested, int stream = 0);
  /// Says that another stream uses the block: its free then waits for an event there.
  void record_stream(BlockId, int stream);
  void free(BlockId);

  /// All pending events happen. As in PyTorch, their blocks can be used from the next `allocate`.
  void complete_events();
  /// torch.cuda.empty_cache: waits for all events and returns what no block holds.
  void empty_cache();

  /// Sizes of blocks, as torch.cuda.memory_allocated counts: up to 1 MiB above the request.
  Bytes allocated() const { return allocated_; }
  Bytes reserved() const { return Bytes{heap_.reserved()}; }
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return Bytes{heap_.peak_reserved()}; }
  /// num_alloc_retries: how often the cache was returned because the device was full.
  std::int64_t retries() const { return retries_; }

  BlockView block(BlockId) const;
  /// All segments by address, as torch.cuda.memory_snapshot lists them.
  std::vector<SegmentView> segments() const;

 private:
  std::optional<allocator::FreeBlocks::Iterator> find_free(allocator::PoolIndex,
                                                           std::int64_t size) const;
  BlockId grow(allocator::PoolIndex, std::int64_t size);
  BlockId grow_or_release(allocator::PoolIndex, std::int64_t size);
  bool leaves_a_block(std::int64_t size, std::int64_t remainder) const;
  void settle_waiting(std::size_t count);
  void release_cached();

  AllocatorConfig config_;
  std::int64_t max_split_;
  allocator::BlockHeap heap_;
  std::vector<BlockId> waiting_;  // freed blocks with pending events, the oldest first
  std::size_t completed_ = 0;     // how many of them have had their events
  Bytes allocated_;
  Bytes peak_allocated_;
  std::int64_t retries_ = 0;
};

}  // namespace zeroplan
