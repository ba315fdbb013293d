#pragma once
// The states of one unit as a ZeRO stage divides them over the data-parallel group.

#include <algorithm>
#include <array>

#include "validator/model/unit.hpp"
#include "validator/rank.hpp"

namespace zeroplan::engine {

/// Which way a pass goes through the units.
enum class Way { forward, backward };

/// Stage 0 keeps all; 1 divides master copy and moments; 2 also gradients, which it reduces after
/// each backward pass of the unit; 3 also parameters, which it gathers for each pass.
/// Buffers end at a multiple of what lets every part begin aligned, so that all stages reduce the
/// same elements on the same rank: they agree bit for bit. A collective carries a block: the whole
/// unit, or under CB as many elements as it is allowed to. Of each block every rank owns a part.
class DividedUnit {
 public:
  DividedUnit(const Rank& rank, Unit unit);

  /// The unit that is gathered beside this one in passes of this direction.
  void prefetch(Way way, DividedUnit& next) { next_[static_cast<std::size_t>(way)] = &next; }
  /// Gradients of stages 2 and 3 pass through this buffer, which the rank keeps for all its units:
  /// whole units at a time, or under CB blocks.
  void use_bucket(Half bucket) { lent_ = bucket; }
  /// Where the rank keeps which unit's gradients are on their way: they arrive when the next one's
  /// depart, or when they are told to.
  void travel(DividedUnit*& travelling) { travelling_ = &travelling; }
  void arrive();

  /// Weights may be used from gather to release; the unit beside this one is on its way then.
  void gather(Way way);
  /// Gathers the unit without the one beside it.
  void gather_alone();
  void release() { gathered_.free(); }
  Half weight(std::string_view name) const;
  NormWeights norm(std::string_view weight, std::string_view bias) const;

  /// Gradients are made from open_gradients to close_gradients, from the unit's last parameter to
  /// its first. `make` adds to the matrix it is given.
  void open_gradients();
  template <class Make>
  void make_gradient(std::string_view name, Make&& make);
  /// Makes the gradients of a norm's weight and bias; the bias may be missing. Under sequence
  /// parallelism `make` sees the rank's own rows, and what all ranks of tp see is added up.
  template <class Make>
  void make_norm_gradient(std::string_view weight, std::string_view bias, Make&& make);
  void close_gradients();
  /// Makes the gradient of a parameter that another unit's pass reads before this one's opens: kept
  /// apart until take_early copies it into what that pass makes. Where gradients stay whole, added
  /// at once.
  template <class Make>
  void make_early_gradient(std::string_view name, Make&& make);
  void take_early(Half gradient);
  bool has(std::string_view name) const { return unit_.find(nullptr, name).rows > 0; }
  /// A parameter's gradient as it is kept, where all of it is in one place.
  Half gradient(std::string_view name) const;

  void begin_step();
  /// Reduces the gradients that are not reduced yet.
  void reduce();
  /// Adds up what two stages that hold the same parameters have reduced. Both call it.
  void add_ends(Communicator& ends);
  void update(const AdamStep& step);
  void gather_updated();

  /// Elements of the unit with padding.
  std::int64_t elements() const { return full_; }
  /// This rank's parts of the parameters, one after another, as they are now.
  std::vector<Bf16> own_parameters() const;
  /// All that the rank keeps of the parameters.
  std::vector<Bf16> kept_parameters() const;
  const Unit& unit() const { return unit_; }

 private:
  // What one collective carries; the rank's part of it; and where that lies among all its parts.
  struct Block {
    std::int64_t first, count, own_first, own_count, shard_first;
  };

  bool divides(ZeroStage stage) const { return rank_.zero >= stage; }
  bool passes_blocks() const {
    return rank_.set.constant_buffers() && divides(ZeroStage::gradients);
  }
  Block block_at(std::int64_t first) const;
  template <class Visit>
  void each_block(Visit&& visit) const {
    for (std::int64_t first = 0; first < full_; first += block_) visit(block_at(first));
  }
  /// Visits the first values of all elements or of this rank's own, in the order in which they are
  /// kept.
  template <class Visit>
  void each_first_values(bool own, Visit&& visit) const;
  Half whole_parameters() const;
  Half whole_gradients() const;
  Tensor<Bf16> apart(std::string_view name, std::string_view as = "weight gradient") const;
  void give(std::string_view name, const Tensor<Bf16>& gradient);
  void hand_in(std::string_view name, const Tensor<Bf16>& gradient);
  void descend(std::int64_t to);
  void fetch();
  void await();
  void reduce_block(Half bucket, const Block& block);
  void keep_reduced(Half bucket, const Block& block);

  const Rank& rank_;
  Unit unit_;
  std::int64_t full_ = 0;                // elements with padding
  std::int64_t block_ = 0;               // elements of all blocks but the last
  Tensor<Bf16> parameters_, gradients_;  // whole, or the rank's parts
  Tensor<float> master_, first_, second_;
  Tensor<Bf16> gathered_, bucket_, early_;
  std::vector<Pending> gathering_;
  Pending reducing_;
  DividedUnit** travelling_ = nullptr;
  Half lent_;
  std::int64_t made_from_ = 0;          // CB: gradients from here on are made
  std::array<DividedUnit*, 2> next_{};  // by Way
};

template <class Make>
void DividedUnit::make_gradient(std::string_view name, Make&& make) {
  if (!passes_blocks()) return make(gradient(name));
  const Tensor<Bf16> made = apart(name);
  make(made.view());
  hand_in(name, made);
}

template <class Make>
void DividedUnit::make_early_gradient(std::string_view name, Make&& make) {
  if (!divides(ZeroStage::gradients)) return make(gradient(name));
  early_ = apart(name, "early weight gradient");
  make(early_.view());
}

template <class Make>
void DividedUnit::make_norm_gradient(std::string_view weight, std::string_view bias, Make&& make) {
  if (!passes_blocks() && !rank_.shape.sequence_parallel) {
    return make(NormWeights{gradient(weight), gradient(bias)});
  }
  const Tensor<Bf16> of_weight = apart(weight);
  const Tensor<Bf16> of_bias = apart(bias);
  make(NormWeights{of_weight.view(), of_bias.view()});
  if (has(bias)) give(bias, of_bias);
  give(weight, of_weight);
}

}  // namespace zeroplan::engine
