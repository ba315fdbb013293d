#pragma once
// The two ends of the model: tokens become vectors, and vectors become a loss.

#include <map>
#include <optional>
#include <vector>

#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {

using Tokens = std::vector<std::int32_t>;

class Embedding {
 public:
  /// `layers`: of the whole model.
  Embedding(const Rank& rank, std::int64_t layers);

  Tensor<Bf16> forward(std::int32_t micro_batch, const Tokens& ids);
  /// Takes the gradient of the output.
  void backward(std::int32_t micro_batch, Passed dy);

  DividedUnit& words() { return words_; }
  /// The units of the embedding, in the order in which a forward pass reads them.
  std::vector<DividedUnit*> units();

 private:
  const Rank& rank_;
  DividedUnit words_;
  std::optional<DividedUnit> positions_;
  std::map<std::int32_t, Tensor<std::int32_t>> in_flight_;  // ids
};

class Head {
 public:
  /// `layers`: of the whole model. `words`: the word embedding where it stands on the same rank. A
  /// tied head that has none beside it holds a copy.
  Head(const Rank& rank, std::int64_t layers, DividedUnit* words);

  /// Takes the input. Returns the sum of the tokens' losses; gradients are those of `scale` times
  /// it.
  double forward(std::int32_t micro_batch, Passed input, const Tokens& targets, float scale);
  /// Gives the gradient of the input.
  Tensor<Bf16> backward(std::int32_t micro_batch);

  DividedUnit& unit() { return unit_; }
  /// The head's copy of a tied word embedding; null where it has none.
  DividedUnit* copy() { return copy_ ? &*copy_ : nullptr; }

 private:
  struct InFlight {
    Passed input;
    Tensor<std::int32_t> targets;
    Tensor<Bf16> norm;
    Tensor<float> statistics;
    Tensor<Bf16> logits;  // then their gradient
  };

  Half weight() const { return words_ ? words_->weight("words") : unit_.weight("head"); }
  template <class Make>
  void make_weight_gradient(Make&& make);

  const Rank& rank_;
  DividedUnit unit_;
  std::optional<DividedUnit> copy_;
  DividedUnit* words_ = nullptr;  // tied: the copy, or the embedding's
  std::map<std::int32_t, InFlight> in_flight_;
};

}  // namespace zeroplan::engine
