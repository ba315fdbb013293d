#pragma once
// The two ends of the model: tokens become vectors, and vectors become a loss.

#include <map>
#include <vector>

#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {

using Tokens = std::vector<std::int32_t>;

class Embedding {
 public:
  explicit Embedding(const Rank& rank) : rank_(rank), unit_(rank, embedding_unit(rank.shape)) {}

  Tensor<Bf16> forward(std::int32_t micro_batch, const Tokens& ids);
  /// Takes the gradient of the output.
  void backward(std::int32_t micro_batch, Passed dy);

  DividedUnit& unit() { return unit_; }

 private:
  const Rank& rank_;
  DividedUnit unit_;
  std::map<std::int32_t, Tensor<std::int32_t>> in_flight_;  // ids
};

class Head {
 public:
  /// `layers`: of the whole model.
  Head(const Rank& rank, std::int64_t layers)
      : rank_(rank), unit_(rank, head_unit(rank.shape, layers)) {}

  /// Takes the input. Returns the sum of the tokens' losses; gradients are those of `scale` times
  /// it.
  double forward(std::int32_t micro_batch, Passed input, const Tokens& targets, float scale);
  /// Gives the gradient of the input.
  Tensor<Bf16> backward(std::int32_t micro_batch);

  DividedUnit& unit() { return unit_; }

 private:
  struct InFlight {
    Passed input;
    Tensor<std::int32_t> targets;
    Tensor<Bf16> norm;
    Tensor<float> statistics;
    Tensor<Bf16> logits;  // then their gradient
  };

  const Rank& rank_;
  DividedUnit unit_;
  std::map<std::int32_t, InFlight> in_flight_;
};

}  // namespace zeroplan::engine
