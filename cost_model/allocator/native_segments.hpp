#pragma once
// Segments as cudaMalloc gives them: each a fixed range, returned to the device only as a whole.

#include "cost_model/allocator/block_heap.hpp"

namespace zeroplan::allocator {

/// A new segment for a block of `size`: one block in hand, or none when the device is full.
BlockId grow_native(BlockHeap&, PoolIndex, std::int64_t size);

/// Returns every segment that is one free block, on all streams.
void release_whole_segments(BlockHeap&);

/// Returns segments of this pool that are not below max_split, which nothing smaller may use: one
/// that suffices for `size`, else the largest until they do. False when they do not suffice.
bool release_oversize_segments(BlockHeap&, PoolIndex, std::int64_t size, std::int64_t max_split);

/// Returns free large segments, the longest idle first, until `threshold` bytes remain reserved.
void collect_garbage(BlockHeap&, std::int64_t threshold);

}  // namespace zeroplan::allocator
