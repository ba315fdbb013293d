#pragma once
// A block of the model as a program: what it allocates, frees, sends and computes in its forward
// and in its backward pass, in order. Written once by a runtime's builders, then folded or played.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/program/call.hpp"
#include "cost_model/program/kernel.hpp"
#include "cost_model/program/operator.hpp"
#include "cost_model/states/breakdown.hpp"

namespace zeroplan {

/// A tensor of one block, by its index there.
using Tensor = std::int32_t;
using TensorList = boost::container::small_vector<Tensor, 8>;

/// CUDA streams that allocate. The caching allocator shares no memory between them.
enum class Stream : std::uint8_t { compute, gather, reduce };

struct TensorSpec {
  std::string_view name;
  Bytes bytes;  // as the caching allocator rounds it
  Category category;
  Stream stream = Stream::compute;
  bool carried = false;  // the rank's, not the block's: another block frees it, by name and size
  bool lingers = false;  // a collective on another stream still reads it when it is freed
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// A kind of tensor that one block allocates and a later one frees.
struct Carried {
  std::string_view name;
  Category category;
  Stream stream = Stream::compute;
};

struct Event {
  /// What happens; a recorded step alone has kernels by their operators, and changes of phase.
  enum class Kind : std::uint8_t { allocate, free, call, kernel, operation, phase };

  // Index of a tensor, a call or an operator; what a kernel is (of_kernel); the phase that begins.
  std::int32_t index;
  Kind kind;
  bool of_weights = false;  // of the weight gradients, which a schedule may put off

  bool allocates() const { return kind == Kind::allocate; }
  bool frees() const { return kind == Kind::free; }
  bool calls() const { return kind == Kind::call; }
  bool computes() const { return kind == Kind::kernel; }
  bool operates() const { return kind == Kind::operation; }
  bool begins_phase() const { return kind == Kind::phase; }

  static constexpr std::int32_t modules = 1 << 7;
  static_assert(names<Module>().size() <= modules);
  static constexpr std::int32_t products = 1 << 2;
  static constexpr std::int32_t of_kernel(const Kernel& k) {
    return (k.times * products + static_cast<std::int32_t>(k.product)) * modules +
           static_cast<std::int32_t>(k.module);
  }
  Kernel kernel() const {
    return {static_cast<Module>(index % modules), static_cast<Product>(index / modules % products),
            index / modules / products};
  }
  bool is_of_tensor() const { return allocates() || frees(); }
};

/// What of a backward pass runs: all of it, or one of the two that a schedule splits it into. Both
/// together have the events of the whole.
enum class BackwardPart { whole, input_gradient, weight_gradient };

constexpr bool belongs(const Event& event, BackwardPart part) {
  return part == BackwardPart::whole || event.of_weights == (part == BackwardPart::weight_gradient);
}

/// Blocks stand in a chain. A block allocates its output, which is the next one's input; the block
/// that reads a tensor of the chain frees it. At the ends of the chain input and output gradient
/// belong to the schedule.
struct Block {
  static constexpr Tensor output = 0;       // allocated by the forward pass
  static constexpr Tensor output_grad = 1;  // allocated by the next block's backward pass
  static constexpr Tensor input_grad = 2;   // allocated by the backward pass
  static constexpr Tensor input = 3;        // allocated by the forward pass of the block before

  std::vector<TensorSpec> tensors;
  std::vector<Call> calls;
  std::vector<Event> forward;
  std::vector<Event> backward;
  const std::vector<Operator>* operators = nullptr;  // of a recorded step, which outlives the block

  const Operator& operator_of(const Event& event) const {
    return (*operators)[static_cast<std::size_t>(event.index)];
  }
};

/// Which block of a decoder.
/// `mtp_input`: of a multi-token-prediction module, before its layer.
enum class BlockKind { embedding, layer, head, mtp_input };

/// Smallest unit of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
inline constexpr std::int64_t allocation_unit = 512;

/// Hands the storage of a block that is done with to the next one that this thread writes: a search
/// writes most of its blocks to sum them up.
void reuse(Block&& block);

/// Writes a block, event by event.
class BlockWriter {
 public:
  /// Bytes of the chain's tensors on both sides of the block, their gradients as large; none where
  /// the block stands alone.
  explicit BlockWriter(Bytes input = {}, Bytes output = {});

  static constexpr Tensor none = -1;

  /// A new tensor. Nothing is written for zero bytes: the returned index is `none`.
  Tensor allocate(std::string_view name,
                  Bytes bytes,
                  Category category,
                  Stream stream = Stream::compute);

  /// A new tensor that is kept for the backward pass.
  Tensor save(std::string_view name, Bytes bytes) {
    return allocate(name, bytes, Category::activations);
  }

  /// A new tensor that is gone before the pass ends.
  Tensor temporary(std::string_view name, Bytes bytes) {
    return allocate(name, bytes, Category::temporaries);
  }

  /// A temporary tensor that a collective sends whose stream the allocator waits for.
  Tensor sent(std::string_view name, Bytes bytes) {
    const Tensor tensor = temporary(name, bytes);
    if (tensor != none) tensors_[static_cast<std::size_t>(tensor)].lingers = true;
    return tensor;
  }

  /// Hands a tensor over to the rank, and takes it from there to free it.
  void put(const Carried& kind, Bytes bytes) { carry(kind, bytes, Event::Kind::allocate); }
  void take(const Carried& kind, Bytes bytes) { carry(kind, bytes, Event::Kind::free); }

  /// A tensor's bytes as the caching allocator rounds them; of `none` no byte.
  Bytes bytes_of(Tensor tensor) const {
    return tensor == none ? Bytes{} : tensors_[static_cast<std::size_t>(tensor)].bytes;
  }

  void allocate(Tensor slot) { write(slot, Event::Kind::allocate); }
  void free(Tensor tensor) {
    if (tensor != none) write(tensor, Event::Kind::free);
  }
  void free(const TensorList& tensors) {
    for (const Tensor tensor : tensors) free(tensor);
  }

  /// Frees a weight's gradient when the next tensor is there that is none: the gradient of the
  /// linear's input, which one node of autograd gives with those of its weight and bias.
  void free_with_next(Tensor gradient) { waiting_.push_back(gradient); }

  /// Sends, so many times in a row, in the pass that is being written. Nothing is written for zero
  /// bytes.
  void call(std::string_view group, Collective what, Bytes payload, std::int64_t times = 1) {
    call({group, what, during(), payload, times});
  }
  void call(std::string_view group, Collective what, Bytes payload, Beside beside) {
    call({group, what, during(), payload, 1, beside});
  }
  /// Sends `call`, where another part of the step than the pass being written waits for it.
  void call(const Call& call);

  /// Computes the forward pass of a module, in the backward pass once more; of so many parts.
  void run(Module module, std::int64_t times = 1) { compute(module, Product::forward, times); }
  void run(std::initializer_list<Module> modules) {
    for (const Module module : modules) run(module);
  }
  /// Computes the gradient of a module's input.
  void run_backward(Module module, std::int64_t times = 1) {
    compute(module, Product::input_gradient, times);
  }
  /// Computes the gradients of a linear's input and weight.
  void run_linear_backward(Module linear, std::int64_t times = 1) {
    run_backward(linear, times);
    const WeightEvents of_weights(*this);
    compute(linear, Product::weight_gradient, times);
  }

  /// Frees what a weight gradient reads: the input of a linear, and the gradient of its output.
  void free_with_weights(Tensor tensor) {
    const WeightEvents of_weights(*this);
    free(tensor);
  }

  /// While one lives, events are of the weight gradients.
  class WeightEvents {
   public:
    explicit WeightEvents(BlockWriter& writer) : writer_(writer), before_(writer.of_weights_) {
      writer_.of_weights_ = true;
    }
    ~WeightEvents() { writer_.of_weights_ = before_; }
    WeightEvents(const WeightEvents&) = delete;
    WeightEvents& operator=(const WeightEvents&) = delete;

   private:
    BlockWriter& writer_;
    bool before_;
  };

  /// The pass that is being written.
  During during() const { return events_ == &forward_ ? During::forward : During::backward; }

  /// Events written so far in this pass, for `saved_since` and `hold_for_reuse`.
  std::size_t position() const { return events_->size(); }
  /// What the events from `first` on saved and did not free, but for the block's output: so that
  /// whoever drops it need not list it again.
  TensorList saved_since(std::size_t first) const;
  /// Makes the events from `first` on those of one compiled graph: a tensor that is done with is
  /// held until an equally large one is allocated, which takes its memory.
  /// Source: pytorch torch/_inductor/codegen/wrapper.py, FreeIfNotReusedLine.
  void hold_for_reuse(std::size_t first);

  /// From here on the events are of the backward pass.
  void begin_backward() { events_ = &backward_; }

  /// The block, in vectors that are no longer than it, as many are remembered, or in storage that
  /// was given for reuse.
  Block finish();

 private:
  void carry(const Carried& kind, Bytes bytes, Event::Kind event);
  void compute(Module module, Product product, std::int64_t times) {
    write(Event::of_kernel({module, product, static_cast<std::int32_t>(times)}),
          Event::Kind::kernel);
  }
  void write(std::int32_t index, Event::Kind kind) {
    // Field by field: a copy would wait for the stores of its parts.
    Event& event = events_->emplace_back();
    event.index = index;
    event.kind = kind;
    event.of_weights = of_weights_;
    if (kind != Event::Kind::allocate || waiting_.empty()) return;
    const TensorSpec& spec = tensors_[static_cast<std::size_t>(index)];
    if (spec.category != Category::gradients) free_waiting();
  }
  void free_waiting() {
    const WeightEvents of_weights(*this);
    free(std::exchange(waiting_, {}));
  }

  // As long as those of most layers are, so that writing one allocates nothing.
  using Events = boost::container::small_vector<Event, 256>;
  boost::container::small_vector<TensorSpec, 128> tensors_;
  boost::container::small_vector<Call, 32> calls_;
  Events forward_, backward_;
  bool of_weights_ = false;
  TensorList waiting_;  // to be freed
  Events* events_ = &forward_;
};

}  // namespace zeroplan
