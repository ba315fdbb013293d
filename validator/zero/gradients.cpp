// How do a unit's gradients become the sums that its owners keep? Front door:
// DividedUnit::make_gradient.
#include <stdexcept>
#include <string>
#include <utility>

#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {

Half DividedUnit::whole_gradients() const {
  if (!divides(ZeroStage::gradients)) return gradients_;
  return bucket_ ? bucket_.view() : lent_.part(0, full_);
}

Half DividedUnit::gradient(std::string_view name) const {
  return unit_.find(whole_gradients().data, name);
}

void DividedUnit::begin_step() {
  rank_.device().zero(gradients_.view().data, gradients_.view().elements() * 2);
}

void DividedUnit::open_gradients() {
  if (!divides(ZeroStage::gradients)) return;
  if (passes_blocks()) {
    made_from_ = full_;
    rank_.device().zero(lent_.data, lent_.elements() * 2);
    return descend(unit_.elements());  // padding is nothing
  }
  if (lent_.rows == 0) {
    bucket_ =
        rank_.memory.make<Bf16>("bucket of gradients", Category::communication_buffers, full_);
  }
  rank_.device().zero(whole_gradients().data, full_ * 2);
}

void DividedUnit::close_gradients() {
  if (!divides(ZeroStage::gradients)) return;
  if (passes_blocks()) {
    if (made_from_ > 0) throw std::logic_error("a gradient is missing");
    return;
  }
  if (travelling_ == nullptr) {
    reduce_block(whole_gradients(), block_at(0));
    return bucket_.free();
  }
  if (*travelling_ != nullptr) (*travelling_)->arrive();
  *travelling_ = this;
  reducing_ = rank_.dp.start_reduce_scatter(bucket_);
}

void DividedUnit::arrive() {
  std::exchange(reducing_, {})();
  keep_reduced(bucket_, block_at(0));
  bucket_.free();
  *travelling_ = nullptr;
}

// Sums the gradients of a block, of which every rank's bucket has its own, and adds to what this
// rank keeps what it owns of the sum.
void DividedUnit::reduce_block(Half bucket, const Block& b) {
  rank_.dp.reduce_scatter(bucket.part(0, b.count));
  keep_reduced(bucket, b);
}

void DividedUnit::keep_reduced(Half bucket, const Block& b) {
  rank_.device().add(gradients_.view().part(b.shard_first, b.own_count),
                     bucket.part(b.own_first - b.first, b.own_count));
}

// A gradient by itself, since it may belong to several blocks.
Tensor<Bf16> DividedUnit::apart(std::string_view name, std::string_view as) const {
  const Half like = unit_.find(nullptr, name);
  Tensor<Bf16> tensor = rank_.memory.make<Bf16>(as, Category::temporaries, like.rows, like.columns);
  if (tensor) rank_.device().zero(tensor.view().data, like.elements() * 2);
  return tensor;
}

// A norm's gradient, made apart.
void DividedUnit::give(std::string_view name, const Tensor<Bf16>& made) {
  if (rank_.shape.sequence_parallel) rank_.tp.all_reduce(made.view());
  if (passes_blocks()) return hand_in(name, made);
  rank_.device().add(gradient(name), made);
}

// Copies a gradient into the bucket from its end to its beginning, and sends the bucket away
// whenever it holds a block's.
void DividedUnit::hand_in(std::string_view name, const Tensor<Bf16>& gradient) {
  const std::int64_t first = unit_.offset(name);
  const std::int64_t elements = gradient.view().elements();
  if (first + elements != made_from_) {
    throw std::logic_error("the gradient of " + std::string(name) + " comes out of turn");
  }
  const Half values{gradient.view().data, elements};
  while (made_from_ > first) {
    const std::int64_t block = (made_from_ - 1) / block_ * block_;
    const std::int64_t from = std::max(first, block);
    const std::int64_t count = made_from_ - from;
    rank_.device().copy(lent_.part(from - block, count), values.part(from - first, count));
    descend(from);
  }
}

void DividedUnit::descend(std::int64_t to) {
  while (made_from_ > to) {
    const std::int64_t block = (made_from_ - 1) / block_ * block_;
    made_from_ = std::max(to, block);
    if (made_from_ > block) return;
    reduce_block(lent_, block_at(block));
    rank_.device().zero(lent_.data, lent_.elements() * 2);
  }
}

void DividedUnit::take_early(Half gradient) {
  if (!early_) return;
  rank_.device().copy(gradient, early_);
  early_.free();
}

void DividedUnit::add_ends(Communicator& ends) {
  each_block([&](const Block& b) {
    const bool parts = divides(ZeroStage::optimizer);
    const std::int64_t first = !parts                          ? b.first
                               : divides(ZeroStage::gradients) ? b.shard_first
                                                               : b.own_first;
    ends.all_reduce(gradients_.view().part(first, parts ? b.own_count : b.count));
  });
}

void DividedUnit::reduce() {
  if (divides(ZeroStage::gradients)) return;
  each_block([&](const Block& b) {
    const Half all = gradients_.view().part(b.first, b.count);
    divides(ZeroStage::optimizer) ? rank_.dp.reduce_scatter(all) : rank_.dp.all_reduce(all);
  });
}

}  // namespace zeroplan::engine
