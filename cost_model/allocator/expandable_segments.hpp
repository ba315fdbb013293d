#pragma once
// Segments that grow: a pool reserves a range of addresses once, and memory is mapped behind it
// chunk by chunk (cuMemMap).

#include "cost_model/allocator/block_heap.hpp"

namespace zeroplan::allocator {

/// Maps what is missing for a block of `size` at the lowest address that has room: a block in hand,
/// or none when the device is full (chunks mapped on the way stay, free).
BlockId grow_expandable(BlockHeap&, PoolIndex, std::int64_t size);

/// Returns every chunk that lies wholly in a free block, on all streams.
void release_free_chunks(BlockHeap&);

}  // namespace zeroplan::allocator
