#pragma once
// What ZeRO adds to each pass of a unit in zeroplan's own engine.

#include "cost_model/program/block.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// A unit among those of its stage.
struct ZeroplanPlace {
  Bytes own;            // its parameters in bf16, padding included
  Bytes before, after;  // its neighbours'; none at the ends of the stage
  bool shared = false;  // a word embedding that the head of the same stage is tied to
};

/// The buffers of one pass of a unit.
class ZeroplanUnit {
 public:
  ZeroplanUnit(const Problem& problem, const ZeroplanPlace& place)
      : set_(problem.runtime.zeroplan),
        zero_(problem.layout.zero),
        splits_norms_(problem.layout.sequence_parallel),
        bucket_size_(state_recipe(problem).gradient_bytes * constant_bucket(problem)),
        replicas_(shard_widths(problem).dense),
        place_(place) {}

  void begin_forward(BlockWriter& w) { gather(w, place_.before, place_.after); }
  void end_forward(BlockWriter& w) { release(w); }
  void begin_backward(BlockWriter& w) {
    gather_backward(w);
    open_gradients(w);
  }
  void end_backward(BlockWriter& w) {
    release(w);
    close_gradients(w, place_.after, place_.before > Bytes{});
  }
  void gather_backward(BlockWriter& w) { gather(w, place_.after, place_.before); }
  void open_gradients(BlockWriter& w) {
    const bool kept = set_.constant_buffers() || set_.contiguous_memory_optimization;
    const Bytes bytes = divides_gradients() && !kept ? place_.own : Bytes{};
    if (set_.overlap_comm) return w.put(bucket, bytes);
    bucket_ = w.allocate(bucket.name, bytes, bucket.category);
  }
  void release(BlockWriter& w) {
    if (set_.prefetch && zero_ >= ZeroStage::parameters) return w.take(gathered, place_.own);
    w.free(gathered_);
  }
  /// `travelling`: of the unit whose gradients are on their way until then; `more`: units follow,
  /// beside which this one's are.
  void close_gradients(BlockWriter& w, Bytes travelling, bool more) {
    if (!divides_gradients()) return;
    send(w, Collective::reduce_scatter, place_.own);
    if (!set_.overlap_comm) return w.free(bucket_);
    w.take(bucket, travelling);
    if (!more) w.take(bucket, place_.own);
  }

  /// What so many alike units send at the end of a step. Without ZeRO 2 their gradients wait until
  /// then; ZeRO 1 and 2 gather what was updated.
  void end_step(BlockWriter& w, std::int64_t units) const {
    using enum Collective;
    const bool divided = zero_ > ZeroStage::none;
    if (!divides_gradients()) {
      send(w, divided ? reduce_scatter : all_reduce, place_.own, units);
    }
    if (divided && zero_ < ZeroStage::parameters) send(w, all_gather, place_.own, units);
  }

  /// Adds up the gradients of a tied embedding whose copies stand on two stages, as ZeRO keeps
  /// them.
  void add_ends(BlockWriter& w) const {
    const std::int64_t parts = zero_ > ZeroStage::none ? replicas_ : 1;
    send(w, Collective::all_reduce, place_.own, 1, "embedding", parts);
  }

  /// Whether the head of the same stage reads this unit too. The head then makes a gradient before
  /// this unit's pass does, which waits apart where gradients do not stay whole.
  bool is_shared() const { return place_.shared; }
  const ZeroplanPlace& place() const { return place_; }
  void make_early_gradient(BlockWriter& w, Bytes bytes) const {
    if (divides_gradients()) w.put(early, bytes);
  }
  void take_early(BlockWriter& w, Bytes bytes) const {
    if (divides_gradients() && place_.shared) w.take(early, bytes);
  }

  /// CB: the gradient of a parameter, apart until it is copied into the bucket.
  void gradient(BlockWriter& w, Bytes bytes) const {
    if (passes_blocks()) w.free(w.temporary("weight gradient", bytes));
  }

  /// The gradients of a norm's weight and bias, made together. With sequence parallelism they are
  /// of the rank's own rows, and added up apart.
  void norm_gradient(BlockWriter& w, Bytes weight, Bytes bias) const {
    if (!passes_blocks() && !splits_norms_) return;
    const Tensor of_weight = w.temporary("weight gradient", weight);
    const Tensor of_bias = w.temporary("weight gradient", bias);
    if (splits_norms_) {
      for (const Bytes bytes : {bias, weight}) w.call("tp", Collective::all_reduce, bytes);
    }
    w.free(of_weight);
    w.free(of_bias);
  }

 private:
  static constexpr Carried gathered{"gathered parameters", Category::communication_buffers};
  static constexpr Carried bucket{"bucket of gradients", Category::communication_buffers};
  static constexpr Carried early{"early weight gradient", Category::temporaries};

  bool divides_gradients() const { return zero_ >= ZeroStage::gradients; }
  bool passes_blocks() const { return set_.constant_buffers() && divides_gradients(); }

  // The unit that the pass comes from gathered this one, and this one gathers the next.
  void gather(BlockWriter& w, Bytes from, Bytes to) {
    if (zero_ < ZeroStage::parameters) return;
    if (!set_.prefetch) {
      gathered_ = w.allocate(gathered.name, place_.own, gathered.category);
      return send(w, Collective::all_gather, place_.own);
    }
    for (const Bytes unit : {from == Bytes{} ? place_.own : Bytes{}, to}) {
      w.put(gathered, unit);
      send(w, Collective::all_gather, unit);
    }
  }

  // A whole unit, or under CB buckets of a constant size and what is left; of each a part.
  void send(BlockWriter& w,
            Collective what,
            Bytes unit,
            std::int64_t units = 1,
            std::string_view group = "dp",
            std::int64_t parts = 1) const {
    const std::int64_t size = bucket_size_.count();
    const std::int64_t full = size > 0 ? unit.count() / size : 0;
    w.call(group, what, Bytes{size / parts}, units * full);
    w.call(group, what, Bytes{(unit.count() - full * size) / parts}, units);
  }

  ZeroplanSettings set_;
  ZeroStage zero_;
  bool splits_norms_;
  Bytes bucket_size_;  // CB's
  std::int64_t replicas_;
  ZeroplanPlace place_;
  Tensor gathered_ = BlockWriter::none;
  Tensor bucket_ = BlockWriter::none;
};

/// Whether a layer's checkpoint is a copy, so that the layer's input itself may go.
bool copies_checkpoints(const Problem& problem);
/// Bytes of the copy that is a layer's checkpoint.
Bytes checkpoint_copy(const LayerShape& shape);

/// The embedding, one layer, or the head of zeroplan's own engine. `positions`: read where they are
/// learned; `table`: of a tied head, the embedding's on the same stage or a copy.
Block zeroplan_embedding(const LayerShape& shape,
                         std::int64_t vocabulary_rows,
                         ZeroplanUnit words,
                         ZeroplanUnit positions);
Block zeroplan_layer(const LayerShape& shape, ZeroplanUnit unit);
Block zeroplan_head(const LayerShape& shape,
                    std::int64_t vocabulary_rows,
                    ZeroplanUnit unit,
                    ZeroplanUnit table);

}  // namespace zeroplan
