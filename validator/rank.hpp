#pragma once
// What one rank works with.

#include "cost_model/question/layout.hpp"
#include "cost_model/question/runtime_settings.hpp"
#include "validator/communicator/communicator.hpp"
#include "validator/device/memory.hpp"
#include "validator/model/shape.hpp"

namespace zeroplan::engine {

/// A tensor that one block hands to the next: owned, or lent from a buffer of the pipeline.
struct Passed {
  Tensor<Bf16> owned;
  Half view;

  static Passed own(Tensor<Bf16> tensor) {
    Passed passed;
    passed.owned = std::move(tensor);
    passed.view = passed.owned.view();
    return passed;
  }
  static Passed lend(Half view) {
    Passed passed;
    passed.view = view;
    return passed;
  }
  void free() {
    owned.free();
    view = {};
  }
};

struct Rank {
  Memory& memory;
  Communicator& tp;
  Communicator& dp;
  Communicator& pp;
  Communicator& ends;  // the first and the last stage, where each holds a tied embedding
  Shape shape;
  ZeroStage zero = ZeroStage::none;
  ZeroplanSettings set = {};

  Device& device() const { return memory.device(); }

  /// Elements of CB's bucket: as asked, and so many more that every rank's part begins aligned.
  std::int64_t constant_bucket() const {
    constexpr std::int64_t aligned = Ledger::alignment / static_cast<std::int64_t>(sizeof(Bf16));
    return round_up(set.reduce_bucket_size, dp.size() * aligned);
  }
  /// Whether checkpoints are copies, so that the layer's input itself may go.
  bool copies_checkpoints() const {
    const bool divides = set.partition_activations && tp.size() > 1;
    return shape.recompute && (divides || set.contiguous_memory_optimization);
  }

  /// Rows of the residual stream on this rank: all tokens, or its part under sequence parallelism.
  std::int64_t rows() const { return shape.tokens() / (shape.sequence_parallel ? tp.size() : 1); }
  /// The first of them among all tokens.
  std::int64_t first_row() const { return shape.sequence_parallel ? tp.rank() * rows() : 0; }

  Tensor<Bf16> save(std::string_view name, std::int64_t columns) const {
    return memory.make<Bf16>(name, Category::activations, shape.tokens(), columns);
  }
  Tensor<float> save_wide(std::string_view name, std::int64_t columns) const {
    return memory.make<float>(name, Category::activations, shape.tokens(), columns);
  }
  Tensor<Bf16> save_rows(std::string_view name) const {
    return memory.make<Bf16>(name, Category::activations, rows(), shape.hidden);
  }
  Tensor<float> save_statistics(std::string_view name) const {
    return memory.make<float>(name, Category::activations, rows(), shape.statistics());
  }
  Tensor<Bf16> temporary(std::string_view name, std::int64_t columns) const {
    return memory.make<Bf16>(name, Category::temporaries, shape.tokens(), columns);
  }
  Tensor<Bf16> temporary_rows(std::string_view name) const {
    return memory.make<Bf16>(name, Category::temporaries, rows(), shape.hidden);
  }
};

}  // namespace zeroplan::engine
