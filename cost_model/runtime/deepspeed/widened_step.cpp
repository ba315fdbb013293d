// What does stage 1 allocate to reduce gradients that were added up in fp32? Front door:
// write_widened_step.
#include "cost_model/runtime/deepspeed/widened_step.hpp"

#include <algorithm>
#include <ranges>

#include "cost_model/runtime/deepspeed/buckets.hpp"
#include "cost_model/runtime/deepspeed/step.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t message = 2;  // bytes an element that is sent

class Boundary {
 public:
  Boundary(BlockWriter& w, const Widening& widening)
      : w_(w), part_(widening.part), bucket_(widening.bucket) {}

  // A tensor's gradient of so many bytes goes into the bucket, which gives its memory back; one
  // that is larger than a bucket is reduced where it is.
  void add(Bytes gradient) {
    const std::int64_t elements = gradient.count() / Widening::element;
    if (end_ > begin_ && end_ - begin_ + elements > bucket_) reduce();
    ++tensors_;
    widest_ = std::max(widest_, std::min(elements, part_ - end_));
    end_ += elements;
    if (elements <= bucket_) return w_.take(deepspeed_gradient, gradient);
    alone_ = gradient;
  }

  void reduce() {
    const AtOnce once = reduced_at_once(begin_, end_, part_, bucket_);
    const bool own = begin_ < part_;
    const bool copies = own && tensors_ > 1;  // each of its tensors is a slice by itself
    const Tensor copy = w_.temporary(
        "copy of the bucket", Bytes{Widening::element * (copies ? once.any : once.of_several)});
    const Tensor sent = w_.temporary("gradients to reduce", Bytes{message * once.any});
    w_.free(copy);
    w_.free(w_.temporary("reduced gradients in fp32", Bytes{Widening::element * widest_}));
    w_.free(sent);
    if (own) w_.take(deepspeed_gradient, alone_);
    if (!own && alone_ > Bytes{}) kept_.push_back(alone_);
    begin_ = end_;
    tensors_ = widest_ = 0;
    alone_ = {};
  }

  // Gradients of other ranks, as large as they were.
  const std::vector<Bytes>& kept() const { return kept_; }

 private:
  BlockWriter& w_;
  std::int64_t part_, bucket_;        // Widening
  std::int64_t begin_ = 0, end_ = 0;  // of what the bucket holds, in the flat buffer
  std::int64_t tensors_ = 0;          // in it
  std::int64_t widest_ = 0;           // of their slices that are this rank's
  Bytes alone_;                       // of a tensor larger than a bucket
  std::vector<Bytes> kept_;
};

}  // namespace

void write_widened_step(BlockWriter& w, const DeepspeedPlan& plan, const ChunkProgram& chunk) {
  const Tensor part = w.temporary("gradients of the boundary", plan.boundary);
  Boundary boundary(w, *plan.widening);
  for (const Bytes made : put_sizes(chunk, deepspeed_gradient) | std::views::reverse) {
    boundary.add(made);
  }
  boundary.reduce();
  w.free(w.temporary("overflow check and norm", plan.check));
  for (const Bytes bytes : boundary.kept()) w.take(deepspeed_gradient, bytes);
  w.take(deepspeed_bucket, plan.bucket);
  w.free(part);
}

}  // namespace zeroplan
