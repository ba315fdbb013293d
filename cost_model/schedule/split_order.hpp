#pragma once
// Collects a rank's passes, counting the micro-batches of each chunk.

#include <array>
#include <deque>
#include <vector>

#include "cost_model/schedule/pass.hpp"

namespace zeroplan {

/// The passes of a rank with at most two chunks, each of whose micro-batches run in order.
class SplitOrder {
 public:
  /// Micro-batches of each chunk; the second chunk's are numbered from `second_starts`.
  explicit SplitOrder(std::int64_t each, std::int64_t second_starts = 0)
      : each_(each), starts_{0, second_starts} {}

  void forward(std::int32_t chunk) { next(PassKind::forward, chunk, forward_); }
  void backward(std::int32_t chunk) { next(PassKind::backward, chunk, backward_); }
  /// A forward and a backward pass that run as one.
  void forward_and_backward(std::int32_t forward_chunk, std::int32_t backward_chunk) {
    forward(forward_chunk);
    order_.back().with_next = true;
    backward(backward_chunk);
  }

  /// Puts the weight gradient off, until `weight_gradient` runs the one put off first.
  void input_gradient(std::int32_t chunk) {
    if (!next(PassKind::input_gradient, chunk, backward_)) return;
    put_off_.push_back({PassKind::weight_gradient, chunk, order_.back().micro_batch});
  }
  void weight_gradient() {
    if (put_off_.empty()) return;
    order_.push_back(put_off_.front());
    put_off_.pop_front();
  }
  /// Runs the weight gradient of `chunk` that was put off first.
  void weight_gradient(std::int32_t chunk);

  void every_weight_gradient() {
    while (!put_off_.empty()) weight_gradient();
  }

  std::int64_t put_off() const { return static_cast<std::int64_t>(put_off_.size()); }
  std::int64_t forwards(std::int32_t chunk) const { return forward_[index(chunk)]; }

  std::vector<Pass> take() { return std::move(order_); }

 private:
  using Counts = std::array<std::int64_t, 2>;
  static std::size_t index(std::int32_t chunk) { return static_cast<std::size_t>(chunk); }

  // Counts the pass; past the last micro-batch there is none to run.
  bool next(PassKind kind, std::int32_t chunk, Counts& counts) {
    const std::int64_t i = counts[index(chunk)]++;
    if (i >= each_) return false;
    order_.push_back({kind, chunk, static_cast<std::int32_t>(starts_[index(chunk)] + i)});
    return true;
  }

  std::int64_t each_;
  Counts starts_;
  Counts forward_{};
  Counts backward_{};
  std::deque<Pass> put_off_;
  std::vector<Pass> order_;
};

}  // namespace zeroplan
