#include "cost_model/allocator/expandable_segments.hpp"

#include <algorithm>

#include "cost_model/allocator/sizes.hpp"

namespace zeroplan::allocator {

namespace {

std::int64_t chunk_size(PoolIndex pool) {
  return pool % 2 == 0 ? small_segment : large_segment;
}

// A range must outlast holes in it: the source takes 9/8 of the device. All ranges are equal, so
// that any can have the addresses of any other.
std::int64_t range_size(const BlockHeap& heap) {
  return round_up(heap.capacity() + heap.capacity() / 8, large_segment);
}

bool is_usable(BlockState state) {
  return state == BlockState::free || state == BlockState::unmapped;
}

bool has_room(const BlockHeap& heap, BlockId start, std::int64_t size) {
  std::int64_t room = 0;
  for (BlockId id = start; room < size && is_usable(heap.state(id)); id = heap[id].next) {
    room += heap[id].size;
  }
  return room >= size;
}

// The first block of the lowest run of free and unmapped blocks that starts at an unmapped one, or
// at the free one before it.
BlockId find_room(BlockHeap& heap, PoolIndex pool, std::int64_t size) {
  for (const auto& [address, unmapped] : heap.pool(pool).unmapped) {
    const BlockId before = heap[unmapped].previous;
    const BlockId start = heap.state(before) == BlockState::free ? before : unmapped;
    if (has_room(heap, start, size)) return start;
  }
  if (size > range_size(heap)) return BlockId::none;
  const BlockId range = heap.add_segment(pool, range_size(heap));
  if (range != BlockId::none) heap.settle(range, BlockState::unmapped);
  return range;
}

// Maps the first `size` bytes of an unmapped block, rounded up to chunks, and merges them with free
// neighbours: the free block, or none when memory is short.
BlockId map_front(BlockHeap& heap, BlockId id, std::int64_t size) {
  const std::int64_t bytes = round_up(size, chunk_size(heap[id].pool));
  if (!heap.map(bytes)) return BlockId::none;
  heap.take(id);
  BlockId front = id;
  if (bytes < heap[id].size) {
    front = heap.split(id, bytes);
    heap.settle(id, BlockState::unmapped);
  }
  heap.settle(front, BlockState::free);
  return front;
}

void unmap_inside(BlockHeap& heap, BlockId id) {
  const std::int64_t chunk = chunk_size(heap[id].pool);
  const std::int64_t begin = round_up(heap[id].address, chunk);
  const std::int64_t end = heap[id].end() / chunk * chunk;
  if (begin >= end) return;
  heap.take(id);
  if (heap[id].address < begin) {
    const BlockId before = heap.split(id, begin - heap[id].address);
    heap.settle(before, BlockState::free);
  }
  if (end < heap[id].end()) {
    const BlockId chunks = heap.split(id, end - begin);
    heap.settle(id, BlockState::free);
    id = chunks;
  }
  heap.unmap(end - begin);
  heap.settle(id, BlockState::unmapped);
  if (heap[id].is_whole_segment()) {
    heap.take(id);
    heap.reuse_addresses(heap[id].address);
    heap.remove_segment(id);
  }
}

}  // namespace

BlockId grow_expandable(BlockHeap& heap, PoolIndex pool, std::int64_t size) {
  BlockId block = find_room(heap, pool, size);
  if (heap.state(block) == BlockState::unmapped) {
    block = map_front(heap, block, std::min(size, heap[block].size));
  }
  while (block != BlockId::none && heap[block].size < size) {
    // A free block that is too small ends at an unmapped one, which absorbs it when mapped.
    const BlockId next = heap[block].next;
    block = map_front(heap, next, std::min(size - heap[block].size, heap[next].size));
  }
  if (block != BlockId::none) heap.take(block);
  return block;
}

void release_free_chunks(BlockHeap& heap) {
  for (PoolIndex pool = 0; pool < heap.pools(); ++pool) {
    // Unmapping adds free blocks to the pool, each smaller than a chunk.
    std::vector<BlockId> free;
    for (const FreeBlock& block : heap.pool(pool).free) free.push_back(block.id);
    for (const BlockId id : free) unmap_inside(heap, id);
  }
}

}  // namespace zeroplan::allocator
