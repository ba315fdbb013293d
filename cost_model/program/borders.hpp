#pragma once
// The tensors that cross between pipeline ranks, for as long as a schedule's variables hold them.

#include <optional>

#include "cost_model/program/counted_pool.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// What a walk holds of a sink (walk.hpp). Each tensor goes with its last owner.
template <class Sink>
class Borders {
 public:
  using Handle = typename Sink::Handle;

  struct Border {
    Border(Sink& s, Handle h) : sink(s), handle(h) {}
    Border(const Border&) = delete;
    Border& operator=(const Border&) = delete;
    ~Border() { sink.free_border(handle); }
    Sink& sink;
    Handle handle;
  };
  using Held = typename CountedPool<Border>::Ref;

  /// A leaf of autograd: the received input, which owns its gradient once there is one.
  struct Leaf {
    Held tensor;
    Held gradient;
  };
  using HeldLeaf = typename CountedPool<Leaf>::Ref;

  explicit Borders(Sink& sink) : sink_(sink) {}

  /// Nothing, or what the sink hands over.
  Held hold(const std::optional<Handle>& handle) {
    return handle ? borders_.make(sink_, *handle) : Held();
  }
  Held input() { return hold(sink_.allocate_border("stage input", Category::activations)); }
  Held received_gradient() {
    return hold(sink_.allocate_border("received gradient", Category::temporaries));
  }
  HeldLeaf leaf() { return leaves_.make(); }
  HeldLeaf received_leaf() {
    HeldLeaf made = leaf();
    made->tensor = input();
    return made;
  }
  /// An input of the step before, which owns its gradient.
  HeldLeaf finished_leaf() {
    HeldLeaf made = received_leaf();
    made->gradient = hold(sink_.allocate_border("input gradient", Category::temporaries));
    return made;
  }

 private:
  Sink& sink_;
  CountedPool<Border> borders_;
  CountedPool<Leaf> leaves_;
};

}  // namespace zeroplan
