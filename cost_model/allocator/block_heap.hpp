#pragma once
// The blocks of the caching allocator: where they lie, who their neighbours are, which are free.

#include <map>
#include <set>
#include <vector>

#include "cost_model/allocator/free_blocks.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// Names a block from its allocation to its free.
enum class BlockId : std::int32_t { none = -1 };

enum class BlockState : std::uint8_t {
  vacant,           // a slot without a block
  unmapped,         // addresses of an expandable segment with no memory behind them
  free,             // in its pool
  awaiting_events,  // freed, but perhaps still in use on another stream
  allocated,        // in the program's hands
};

}  // namespace zeroplan

namespace zeroplan::allocator {

/// Streams and classes never share blocks: pool 2 x stream is the small class, the next the large.
using PoolIndex = std::int32_t;

struct Block {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;
  std::int64_t idle_since = 0;       // the heap's clock when it became free
  BlockId previous = BlockId::none;  // neighbours in the same segment
  BlockId next = BlockId::none;
  PoolIndex pool = 0;
  BlockState state = BlockState::vacant;
  bool used_on_other_stream = false;

  std::int64_t end() const { return address + size; }
  bool is_whole_segment() const { return previous == BlockId::none && next == BlockId::none; }
};

struct Pool {
  FreeBlocks free;
  std::map<std::int64_t, BlockId> unmapped;  // by address
};

/// Keeps three things true: blocks tile their segment, no two free (or two unmapped) neighbours
/// exist, and the pools list exactly the free and the unmapped blocks.
///
/// A block is free, unmapped, or in hand; in hand is every other state. `take` and `split` give
/// blocks in hand, `settle` puts them back.
class BlockHeap {
 public:
  explicit BlockHeap(std::int64_t capacity);

  Block& operator[](BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  const Block& operator[](BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  const std::vector<Block>& slots() const { return blocks_; }

  PoolIndex pool_of(int stream, std::int64_t block_size);
  const Pool& pool(PoolIndex index) const { return pools_[static_cast<std::size_t>(index)]; }
  PoolIndex pools() const { return static_cast<PoolIndex>(pools_.size()); }

  /// The state of a neighbour; vacant where there is none.
  BlockState state(BlockId id) const {
    return id == BlockId::none ? BlockState::vacant : (*this)[id].state;
  }

  /// A segment of one block, in hand, at addresses above all earlier ones (but see
  /// reuse_addresses); none when addresses run out. Says nothing about memory.
  BlockId add_segment(PoolIndex pool, std::int64_t size);
  void remove_segment(BlockId);
  /// Lets a later segment, which must not be larger, have these addresses again.
  void reuse_addresses(std::int64_t address) { reusable_.insert(address); }

  /// Takes a free or unmapped block out of its pool.
  void take(BlockId);
  /// Takes the free block at this place of its pool out of it, and says which it is.
  BlockId take(PoolIndex, const FreeBlocks::Iterator&);
  /// Takes the first `size` bytes of a free block found in its pool: a block in hand of its own.
  /// The rest stays free.
  BlockId take_front(PoolIndex, const FreeBlocks::Iterator&, std::int64_t size);
  /// Cuts the first `size` bytes off a block in hand: a block in hand of its own.
  BlockId split(BlockId, std::int64_t size);
  /// Makes a block in hand free or unmapped and absorbs its like neighbours; the id stays.
  void settle(BlockId, BlockState);

  /// Device memory; false when the device has less left.
  bool map(std::int64_t bytes);
  void unmap(std::int64_t bytes) { reserved_ -= bytes; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t reserved() const { return reserved_; }
  std::int64_t peak_reserved() const { return peak_reserved_; }

  /// Searches of large pools so far: the age of idle blocks counts in these.
  std::int64_t clock() const { return clock_; }
  void tick() { ++clock_; }

 private:
  Pool& pool_of(const Block& block) { return pools_[static_cast<std::size_t>(block.pool)]; }
  BlockId new_block(const Block&);
  void vacate(BlockId);
  // The neighbour, of which no pool knows any more, becomes part of the block.
  void absorb(BlockId, BlockId neighbour);

  std::vector<Block> blocks_;
  std::vector<BlockId> vacant_;
  std::vector<Pool> pools_;

  // Like a real device address, and a multiple of both chunk sizes, so that chunks are aligned.
  std::int64_t next_address_ = (20 * mebi) << 22;
  std::set<std::int64_t> reusable_;

  std::int64_t clock_ = 0;
  std::int64_t capacity_;
  std::int64_t reserved_ = 0;
  std::int64_t peak_reserved_ = 0;
};

}  // namespace zeroplan::allocator
