#pragma once
// How much more than tensors ask for does a driver take that hands out whole pages?

#include "cost_model/question/units.hpp"

namespace zeroplan::engine {

/// Blocks of at least a size take whole pages of their own; smaller ones share theirs.
class Pages {
 public:
  /// `page`: the step by which free memory falls; 0: not known, and nothing is booked.
  /// `whole_from`: the size from which blocks take whole pages, as measured.
  explicit Pages(Bytes page = {}, Bytes whole_from = {})
      : page_(page.count()), whole_from_(whole_from > Bytes{} ? whole_from.count() : page_) {}

  void take(Bytes block) { add(block, 1); }
  void give(Bytes block) { add(block, -1); }

  /// What the pages of the blocks that are taken now hold beyond them.
  Bytes beyond() const {
    return page_ == 0 ? Bytes{} : Bytes{whole_ + round_up(shared_, page_) - asked_};
  }

 private:
  void add(Bytes block, std::int64_t sign) {
    const std::int64_t bytes = block.count();
    asked_ += sign * bytes;
    if (page_ == 0) return;
    if (bytes >= whole_from_) {
      whole_ += sign * round_up(bytes, page_);
    } else {
      shared_ += sign * bytes;
    }
  }

  std::int64_t page_;
  std::int64_t whole_from_;
  std::int64_t asked_ = 0;
  std::int64_t whole_ = 0;   // of blocks with pages of their own
  std::int64_t shared_ = 0;  // of smaller blocks
};

}  // namespace zeroplan::engine
