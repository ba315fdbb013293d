// The caching allocator beside one that keeps lists and looks at all of them.
#include <algorithm>
#include <list>

#include "cost_model/allocator/caching_allocator.hpp"
#include "tests/fuzz/target.hpp"

namespace zeroplan::fuzz {
namespace {

constexpr std::int64_t kib = 1024, mib = 1024 * kib;

// c10/cuda/CUDACachingAllocator.cpp without streams, limits and expandable segments: segments of 2
// MiB for up to 1 MiB, of 20 MiB below 10 MiB, of their own size rounded to 2 MiB from there on;
// the smallest block that suffices, the first of its size by address; what is left of it is kept
// where it is 512 bytes of a small segment or more than 1 MiB of a large.
class Slow {
 public:
  struct Block {
    std::int64_t segment, at, size;
    bool small, used;
  };
  using Id = std::list<Block>::iterator;

  Id allocate(std::int64_t bytes) {
    const std::int64_t size = (std::max<std::int64_t>(bytes, 1) + 511) / 512 * 512;
    const bool small = size <= mib;
    Id best = blocks_.end();
    for (Id b = blocks_.begin(); b != blocks_.end(); ++b) {
      if (!b->used && b->small == small && b->size >= size &&
          (best == blocks_.end() || b->size < best->size))
        best = b;
    }
    if (best == blocks_.end()) {
      const std::int64_t made = small             ? 2 * mib
                                : size < 10 * mib ? 20 * mib
                                                  : (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
      reserved_ += made;
      best = blocks_.insert(blocks_.end(), Block{segments_++, 0, made, small, false});
    }
    const std::int64_t left = best->size - size;
    if (small ? left >= 512 : left > mib) {
      blocks_.insert(std::next(best), Block{best->segment, best->at + size, left, small, false});
      best->size = size;
    }
    best->used = true;
    allocated_ += best->size;
    return best;
  }

  void free(Id block) {
    allocated_ -= block->size;
    block->used = false;
    const auto joins = [&](Id a, Id b) { return !a->used && !b->used && a->segment == b->segment; };
    if (const Id after = std::next(block); after != blocks_.end() && joins(block, after)) {
      block->size += after->size;
      blocks_.erase(after);
    }
    if (block != blocks_.begin() && joins(std::prev(block), block)) {
      std::prev(block)->size += block->size;
      blocks_.erase(block);
    }
  }

  std::int64_t reserved() const { return reserved_; }
  std::int64_t allocated() const { return allocated_; }

 private:
  std::list<Block> blocks_;  // by segment and address
  std::int64_t segments_ = 0, reserved_ = 0, allocated_ = 0;
};

std::int64_t size_of(unsigned char kind, unsigned char more) {
  switch (kind % 5) {
    case 0:
      return more;
    case 1:
      return 512 * (1 + more);
    case 2:
      return 64 * kib * (1 + more % 40) + more;
    case 3:
      return mib * (1 + more % 24) - more;
    default:
      return 7 * mib * (1 + more % 16) / 3;
  }
}

}  // namespace

// Two bytes an order: the first frees or says of what size, the second how much or which.
void look_at_allocator(std::string_view bytes) {
  CachingAllocator fast;
  Slow slow;
  std::vector<std::pair<BlockId, Slow::Id>> live;
  for (std::size_t i = 0; i + 1 < bytes.size() && i < 2'000; i += 2) {
    const auto kind = static_cast<unsigned char>(bytes[i]);
    const auto more = static_cast<unsigned char>(bytes[i + 1]);
    if (kind >= 140 && !live.empty()) {
      const auto at = live.begin() + static_cast<std::ptrdiff_t>(more % live.size());
      fast.free(at->first);
      slow.free(at->second);
      live.erase(at);
    } else if (const std::int64_t size = size_of(kind, more); size > 0) {
      live.emplace_back(fast.allocate(Bytes{size}).value(), slow.allocate(size));
    }
    require(fast.allocated().count() == slow.allocated(), "both have allocated as much");
    require(fast.reserved().count() == slow.reserved(), "both have reserved as much");
  }
}

std::vector<std::string> allocator_seeds() {
  std::vector<std::string> orders;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    std::string bytes;
    for (unsigned i = 0, x = seed; i < 600; ++i) {
      x = x * 1'664'525U + 1'013'904'223U;
      bytes += static_cast<char>(x >> 24U);
    }
    orders.push_back(bytes);
  }
  return orders;
}

}  // namespace zeroplan::fuzz
