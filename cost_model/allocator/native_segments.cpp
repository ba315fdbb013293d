#include "cost_model/allocator/native_segments.hpp"

#include <algorithm>

#include "cost_model/allocator/sizes.hpp"

namespace zeroplan::allocator {

namespace {

void release(BlockHeap& heap, BlockId id) {
  heap.take(id);
  heap.unmap(heap[id].size);
  heap.remove_segment(id);
}

std::vector<BlockId> free_segments(const BlockHeap& heap, PoolIndex pool) {
  std::vector<BlockId> segments;
  for (const FreeBlock& block : heap.pool(pool).free) {
    if (heap[block.id].is_whole_segment()) segments.push_back(block.id);
  }
  return segments;
}

}  // namespace

BlockId grow_native(BlockHeap& heap, PoolIndex pool, std::int64_t size) {
  const std::int64_t bytes = segment_size(size);
  if (!heap.map(bytes)) return BlockId::none;
  const BlockId segment = heap.add_segment(pool, bytes);
  if (segment == BlockId::none) heap.unmap(bytes);
  return segment;
}

void release_whole_segments(BlockHeap& heap) {
  for (PoolIndex pool = 0; pool < heap.pools(); ++pool) {
    for (const BlockId segment : free_segments(heap, pool)) release(heap, segment);
  }
}

bool release_oversize_segments(BlockHeap& heap,
                               PoolIndex pool,
                               std::int64_t size,
                               std::int64_t max_split) {
  // The device needs the request in one piece, and the runtime asks no less than max_split of it.
  const std::int64_t wanted = std::max(size, max_split);
  const FreeBlocks& free = heap.pool(pool).free;
  if (const auto enough = free.lower_bound({wanted, 0, BlockId::none}); enough != free.end()) {
    release(heap, enough->id);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !free.empty() && free.largest().size >= max_split) {
    released += free.largest().size;
    release(heap, free.largest().id);
  }
  return released >= wanted;
}

void collect_garbage(BlockHeap& heap, std::int64_t threshold) {
  std::vector<BlockId> candidates;
  for (PoolIndex large = 1; large < heap.pools(); large += 2) {
    const std::vector<BlockId> segments = free_segments(heap, large);
    candidates.insert(candidates.end(), segments.begin(), segments.end());
  }
  const auto age = [&heap](BlockId id) { return heap.clock() - heap[id].idle_since; };
  std::int64_t total_age = 0;
  for (const BlockId id : candidates) total_age += age(id);

  // Each round frees all of at least average age, so a round always frees something.
  while (heap.reserved() > threshold && !candidates.empty()) {
    const double average = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    const auto old = std::stable_partition(candidates.begin(), candidates.end(), [&](BlockId id) {
      return static_cast<double>(age(id)) < average;
    });
    for (auto it = old; it != candidates.end(); ++it) {
      total_age -= age(*it);
      release(heap, *it);
    }
    candidates.erase(old, candidates.end());
  }
}

}  // namespace zeroplan::allocator
