#include "cost_model/allocator/block_heap.hpp"

#include <algorithm>
#include <cassert>
#include <optional>

#include "cost_model/allocator/sizes.hpp"

namespace zeroplan::allocator {

namespace {

// JSON readers keep integers exact up to here.
constexpr std::int64_t addresses_end = std::int64_t{1} << 53;

// More than any device has, yet hundreds of ranges of this size fit below the end.
constexpr std::int64_t unlimited = std::int64_t{1} << 45;

}  // namespace

BlockHeap::BlockHeap(std::int64_t capacity) : capacity_(std::min(capacity, unlimited)) {}

PoolIndex BlockHeap::pool_of(int stream, std::int64_t block_size) {
  assert(stream >= 0);
  const PoolIndex index = 2 * stream + (is_large(block_size) ? 1 : 0);
  if (index >= pools()) pools_.resize(static_cast<std::size_t>(index) + 1);
  return index;
}

BlockId BlockHeap::add_segment(PoolIndex pool, std::int64_t size) {
  std::int64_t address = next_address_;
  if (!reusable_.empty()) {
    address = *reusable_.begin();
    reusable_.erase(reusable_.begin());
  } else if (size > addresses_end - next_address_) {
    return BlockId::none;
  } else {
    next_address_ += size;
  }
  return new_block(
      {.address = address, .size = size, .pool = pool, .state = BlockState::allocated});
}

void BlockHeap::remove_segment(BlockId id) {
  assert((*this)[id].is_whole_segment());
  vacate(id);
}

void BlockHeap::take(BlockId id) {
  Block& block = (*this)[id];
  if (block.state == BlockState::unmapped) {
    pool_of(block).unmapped.erase(block.address);
  } else {
    pool_of(block).free.erase({block.size, block.address, id});
  }
  block.state = BlockState::allocated;
}

BlockId BlockHeap::take(PoolIndex pool, const FreeBlocks::Iterator& found) {
  const BlockId id = found->id;
  pools_[static_cast<std::size_t>(pool)].free.erase(found);
  (*this)[id].state = BlockState::allocated;
  return id;
}

BlockId BlockHeap::take_front(PoolIndex pool,
                              const FreeBlocks::Iterator& found,
                              std::int64_t size) {
  const BlockId rest = found->id;
  const BlockId front = split(rest, size);
  (*this)[front].state = BlockState::allocated;
  Block& block = (*this)[rest];
  block.idle_since = clock_;
  pools_[static_cast<std::size_t>(pool)].free.replace(found, {block.size, block.address, rest});
  return front;
}

BlockId BlockHeap::split(BlockId id, std::int64_t size) {
  Block front = (*this)[id];
  assert(0 < size && size < front.size);
  front.size = size;
  front.next = id;
  const BlockId front_id = new_block(front);
  if (front.previous != BlockId::none) (*this)[front.previous].next = front_id;
  Block& rest = (*this)[id];
  rest.address += size;
  rest.size -= size;
  rest.previous = front_id;
  return front_id;
}

void BlockHeap::settle(BlockId id, BlockState state) {
  assert(state == BlockState::free || state == BlockState::unmapped);
  std::optional<FreeBlock> listed;  // of a neighbour, whose place in the list the block takes
  for (const BlockId neighbour : {(*this)[id].previous, (*this)[id].next}) {
    if (this->state(neighbour) != state) continue;
    if (state == BlockState::free && !listed) {
      listed = FreeBlock{(*this)[neighbour].size, (*this)[neighbour].address, neighbour};
    } else {
      take(neighbour);
    }
    absorb(id, neighbour);
  }
  Block& block = (*this)[id];
  block.state = state;
  block.requested = 0;
  block.used_on_other_stream = false;
  block.idle_since = clock_;
  if (state == BlockState::unmapped) {
    pool_of(block).unmapped.emplace(block.address, id);
    return;
  }
  const FreeBlock entry{block.size, block.address, id};
  if (listed) {
    pool_of(block).free.replace(*listed, entry);
  } else {
    pool_of(block).free.insert(entry);
  }
}

bool BlockHeap::map(std::int64_t bytes) {
  if (bytes > capacity_ - reserved_) return false;
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return true;
}

BlockId BlockHeap::new_block(const Block& block) {
  if (vacant_.empty()) {
    blocks_.push_back(block);
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = vacant_.back();
  vacant_.pop_back();
  (*this)[id] = block;
  return id;
}

void BlockHeap::vacate(BlockId id) {
  (*this)[id] = {};
  vacant_.push_back(id);
}

void BlockHeap::absorb(BlockId id, BlockId neighbour) {
  Block& block = (*this)[id];
  const Block& other = (*this)[neighbour];
  block.size += other.size;
  if (neighbour == block.previous) {
    block.address = other.address;
    block.previous = other.previous;
    if (block.previous != BlockId::none) (*this)[block.previous].next = id;
  } else {
    block.next = other.next;
    if (block.next != BlockId::none) (*this)[block.next].previous = id;
  }
  vacate(neighbour);
}

}  // namespace zeroplan::allocator
