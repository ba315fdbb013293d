#include "cost_model/allocator/caching_allocator.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "cost_model/allocator/expandable_segments.hpp"
#include "cost_model/allocator/native_segments.hpp"
#include "cost_model/allocator/sizes.hpp"

namespace zeroplan {

using namespace allocator;

namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

bool is_tail(const BlockHeap& heap, const FreeBlock& block) {
  return heap.state(heap[block.id].next) == BlockState::unmapped;
}

// What a block could become: the tail of an expandable segment counts the unmapped range after it,
// so that best fit takes a hole before the tail.
std::int64_t expandable_size(const BlockHeap& heap, const FreeBlock& block) {
  return is_tail(heap, block) ? block.size + heap[heap[block.id].next].size : block.size;
}

BlockView view(const Block& block) {
  return {block.address, Bytes{block.size}, Bytes{block.requested}, block.state};
}

SegmentView view(const BlockHeap& heap, const Block& head) {
  SegmentView segment{head.address, Bytes{}, head.pool / 2, head.pool % 2 == 1, {}};
  for (const Block* block = &head;; block = &heap[block->next]) {
    segment.size += Bytes{block->size};
    segment.blocks.push_back(view(*block));
    const BlockState next = heap.state(block->next);
    if (next == BlockState::vacant || next == BlockState::unmapped) return segment;
  }
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorConfig& config)
    : config_(config),
      max_split_(config.max_split_size.value_or(Bytes{no_limit}).count()),
      heap_(config.capacity.count()) {
  assert(max_split_ > large_segment);
}

std::optional<BlockId> CachingAllocator::allocate(Bytes requested, int stream) {
  if (requested <= Bytes{}) return BlockId::none;
  settle_waiting(completed_);
  const std::int64_t size = block_size(requested.count(), config_.roundup_power2_divisions);
  const PoolIndex pool = heap_.pool_of(stream, size);
  if (is_large(size)) heap_.tick();

  BlockId id;
  if (const auto found = find_free(pool, size)) {
    id = leaves_a_block(size, (*found)->size - size) ? heap_.take_front(pool, *found, size)
                                                     : heap_.take(pool, *found);
  } else {
    id = grow_or_release(pool, size);
    if (id == BlockId::none) return std::nullopt;
    if (leaves_a_block(size, heap_[id].size - size)) {
      const BlockId rest = id;
      id = heap_.split(rest, size);
      heap_.settle(rest, BlockState::free);
    }
  }
  heap_[id].requested = requested.count();
  allocated_ += Bytes{heap_[id].size};
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return id;
}

void CachingAllocator::record_stream(BlockId id, int stream) {
  if (id == BlockId::none) return;
  Block& block = heap_[id];
  assert(block.state == BlockState::allocated);
  // The block's own stream is ordered by itself.
  if (stream != block.pool / 2) block.used_on_other_stream = true;
}

void CachingAllocator::free(BlockId id) {
  if (id == BlockId::none) return;
  Block& block = heap_[id];
  assert(block.state == BlockState::allocated);
  allocated_ -= Bytes{block.size};
  if (block.used_on_other_stream) {
    block.state = BlockState::awaiting_events;
    waiting_.push_back(id);
  } else {
    heap_.settle(id, BlockState::free);
  }
}

void CachingAllocator::complete_events() {
  completed_ = waiting_.size();
}

void CachingAllocator::empty_cache() {
  release_cached();
}

BlockView CachingAllocator::block(BlockId id) const {
  return id == BlockId::none ? BlockView{} : view(heap_[id]);
}

std::vector<SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> result;
  for (const Block& block : heap_.slots()) {
    const BlockState before = heap_.state(block.previous);
    const bool is_head = before == BlockState::vacant || before == BlockState::unmapped;
    const bool has_memory =
        block.state != BlockState::vacant && block.state != BlockState::unmapped;
    if (is_head && has_memory) result.push_back(view(heap_, block));
  }
  std::sort(result.begin(), result.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return result;
}

std::optional<FreeBlocks::Iterator> CachingAllocator::find_free(PoolIndex pool,
                                                                std::int64_t size) const {
  const FreeBlocks& free = heap_.pool(pool).free;
  auto fit = free.lower_bound({size, 0, BlockId::none});
  if (fit == free.end()) return std::nullopt;
  if (config_.expandable_segments && is_tail(heap_, *fit)) {  // else what follows is no smaller
    for (auto next = std::next(fit); next != free.end(); ++next) {
      if (expandable_size(heap_, *next) >= expandable_size(heap_, *fit)) break;
      fit = next;
    }
  }
  // Oversize blocks are never split, so they are kept for requests of about their size.
  const bool refused = size < max_split_ ? fit->size >= max_split_  //
                                         : fit->size >= size + large_segment;
  return refused ? std::nullopt : std::optional(fit);
}

BlockId CachingAllocator::grow(PoolIndex pool, std::int64_t size) {
  if (config_.memory_limit &&
      heap_.reserved() + segment_size(size) > config_.memory_limit->count()) {
    return BlockId::none;
  }
  return config_.expandable_segments ? grow_expandable(heap_, pool, size)
                                     : grow_native(heap_, pool, size);
}

BlockId CachingAllocator::grow_or_release(PoolIndex pool, std::int64_t size) {
  const bool native = !config_.expandable_segments;
  if (native && config_.memory_limit && config_.garbage_collection_threshold > 0) {
    const auto limit = static_cast<double>(config_.memory_limit->count());
    collect_garbage(heap_, static_cast<std::int64_t>(config_.garbage_collection_threshold * limit));
  }
  BlockId id = grow(pool, size);
  if (id == BlockId::none && native && max_split_ != no_limit &&
      release_oversize_segments(heap_, pool, size, max_split_)) {
    id = grow(pool, size);
  }
  if (id == BlockId::none) {
    release_cached();
    ++retries_;
    id = grow(pool, size);
  }
  return id;
}

bool CachingAllocator::leaves_a_block(std::int64_t size, std::int64_t remainder) const {
  if (config_.expandable_segments || !is_large(size)) return remainder >= min_block;
  return size < max_split_ && remainder > small_request;
}

void CachingAllocator::settle_waiting(std::size_t count) {
  if (count == 0) return;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto id = waiting_.begin(); id != end; ++id) heap_.settle(*id, BlockState::free);
  waiting_.erase(waiting_.begin(), end);
  completed_ = 0;
}

void CachingAllocator::release_cached() {
  settle_waiting(waiting_.size());
  if (config_.expandable_segments) {
    release_free_chunks(heap_);
  } else {
    release_whole_segments(heap_);
  }
}

}  // namespace zeroplan
