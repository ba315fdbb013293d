#pragma once
// The free blocks of a pool in the order of best fit.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace zeroplan {
enum class BlockId : std::int32_t;
}

namespace zeroplan::allocator {

/// Entry of a pool, in the order of best fit: the smallest first, then the lowest address.
struct FreeBlock {
  std::int64_t size;
  std::int64_t address;
  BlockId id;

  friend bool operator<(const FreeBlock& a, const FreeBlock& b) {
    return a.size != b.size ? a.size < b.size : a.address < b.address;
  }
};

/// A sorted list in short parts, since it is asked at every event, and long where each of many
/// tensors has a segment of its own.
class FreeBlocks {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = FreeBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const FreeBlock*;
    using reference = const FreeBlock&;

    Iterator() = default;
    reference operator*() const { return (*parts_)[part_][place_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      if (++place_ == (*parts_)[part_].size()) {
        ++part_;
        place_ = 0;
      }
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class FreeBlocks;
    using Parts = std::vector<std::vector<FreeBlock>>;
    Iterator(const Parts& parts, std::size_t part, std::size_t place)
        : parts_(&parts), part_(part), place_(place) {}

    const Parts* parts_ = nullptr;
    std::size_t part_ = 0;
    std::size_t place_ = 0;
  };

  Iterator begin() const { return {parts_, 0, 0}; }
  Iterator end() const { return {parts_, parts_.size(), 0}; }
  bool empty() const { return parts_.empty(); }
  const FreeBlock& largest() const { return parts_.back().back(); }

  /// The first free block that is not before `block`.
  Iterator lower_bound(const FreeBlock& block) const {
    const std::size_t part = part_of(block);
    if (part == parts_.size()) return end();
    return {parts_, part, place_in(parts_[part], block)};
  }

  void insert(const FreeBlock& block) {
    if (parts_.empty()) {
      parts_.push_back({block});
      return;
    }
    const std::size_t at = std::min(part_of(block), parts_.size() - 1);
    std::vector<FreeBlock>& part = parts_[at];
    part.insert(at_place(part, place_in(part, block)), block);
    if (part.size() <= longest_part) return;
    const auto middle = at_place(part, part.size() / 2);
    std::vector<FreeBlock> rest(middle, part.end());
    part.erase(middle, part.end());
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(rest));
  }

  /// Removes a block that is listed.
  void erase(const FreeBlock& block) {
    const std::size_t at = part_of(block);
    erase(at, place_in(parts_[at], block));
  }
  void erase(const Iterator& block) { erase(block.part_, block.place_); }

  /// Puts `by` in the place of `block`: what erase and insert do, mostly with less to move.
  void replace(const FreeBlock& block, const FreeBlock& by) {
    const std::size_t at = part_of(block);
    replace(at, place_in(parts_[at], block), by);
  }
  void replace(const Iterator& block, const FreeBlock& by) {
    replace(block.part_, block.place_, by);
  }

 private:
  static constexpr std::size_t longest_part = 64;

  void erase(std::size_t at, std::size_t place) {
    std::vector<FreeBlock>& part = parts_[at];
    part.erase(at_place(part, place));
    if (part.empty()) parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void replace(std::size_t at, std::size_t place, const FreeBlock& by) {
    std::vector<FreeBlock>& part = parts_[at];
    const auto old = at_place(part, place);
    const bool falls = by < *old;
    // A block beyond an end of its part belongs to another part, perhaps.
    if (falls ? at > 0 && by < part.front() : at + 1 < parts_.size() && part.back() < by) {
      erase(at, place);
      insert(by);
      return;
    }
    if (falls) {
      const auto to = at_place(part, place_in(part, by, 0, place));
      std::move_backward(to, old, old + 1);
      *to = by;
    } else {
      const auto to = at_place(part, place_in(part, by, place + 1, part.size()));
      std::move(old + 1, to, old);
      *(to - 1) = by;
    }
  }

  // The first part that does not end before the block.
  std::size_t part_of(const FreeBlock& block) const {
    const auto ends_before = [](const std::vector<FreeBlock>& part, const FreeBlock& b) {
      return part.back() < b;
    };
    return static_cast<std::size_t>(
        std::lower_bound(parts_.begin(), parts_.end(), block, ends_before) - parts_.begin());
  }
  // `from`, `to`: where the search begins and ends.
  static std::size_t place_in(const std::vector<FreeBlock>& part,
                              const FreeBlock& block,
                              std::size_t from,
                              std::size_t to) {
    const auto first = part.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = part.begin() + static_cast<std::ptrdiff_t>(to);
    return static_cast<std::size_t>(std::lower_bound(first, last, block) - part.begin());
  }
  static std::size_t place_in(const std::vector<FreeBlock>& part, const FreeBlock& block) {
    return place_in(part, block, 0, part.size());
  }
  static std::vector<FreeBlock>::iterator at_place(std::vector<FreeBlock>& part,
                                                   std::size_t place) {
    return part.begin() + static_cast<std::ptrdiff_t>(place);
  }

  std::vector<std::vector<FreeBlock>> parts_;  // none empty
};

}  // namespace zeroplan::allocator
