#pragma once
// The states of one unit as a ZeRO stage divides them over the data-parallel group.

#include "validator/model/unit.hpp"
#include "validator/rank.hpp"

namespace zeroplan::engine {

/// Stage 0 keeps all; 1 divides master copy and moments; 2 also gradients, which it reduces after
/// each backward pass of the unit; 3 also parameters, which it gathers for each pass.
/// Buffers end at a multiple of what lets every part begin aligned, so that all stages reduce the
/// same elements on the same rank: they agree bit for bit.
class DividedUnit {
 public:
  DividedUnit(const Rank& rank, Unit unit);

  /// Weights may be used from gather to release; gradients from open_gradients to reduce_gradients.
  void gather();
  void release() { gathered_.free(); }
  Half weight(std::string_view name) const;
  NormWeights norm(std::string_view weight, std::string_view bias) const;

  void open_gradients();
  Half gradient(std::string_view name) const;
  NormWeights norm_gradient(std::string_view weight, std::string_view bias) const;
  void close_gradients();

  void begin_step();
  /// Reduces what is not reduced yet.
  void reduce();
  void update(const AdamStep& step);
  void gather_updated();

  /// This rank's part, as it is now.
  std::vector<Bf16> own_parameters() const;
  /// Of all that the rank keeps of the parameters.
  std::vector<Bf16> kept_parameters() const;
  const Unit& unit() const { return unit_; }

 private:
  bool divides(ZeroStage stage) const { return rank_.zero >= stage; }
  Half whole_parameters() const;
  Half whole_gradients() const;
  Half own_gradients() const;
  Half own_weights() const;
  /// The rank's part of a whole buffer.
  Half own(Half whole) const { return whole.part(part_ * rank_.dp.rank(), part_); }

  const Rank& rank_;
  Unit unit_;
  std::int64_t full_ = 0;  // elements with padding
  std::int64_t part_ = 0;
  Tensor<Bf16> parameters_, gradients_;  // whole, or the rank's part
  Tensor<float> master_, first_, second_;
  Tensor<Bf16> gathered_, bucket_;
};

}  // namespace zeroplan::engine
