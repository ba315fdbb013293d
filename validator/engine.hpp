#pragma once
// One rank's training step.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "cost_model/schedule/pass.hpp"
#include "validator/model/ends.hpp"
#include "validator/model/layer.hpp"

namespace zeroplan::engine {

/// Where a rank stands in the layout.
struct Place {
  std::int64_t tp = 0, dp = 0, pp = 0;
};

/// What a rank reads: a sample is sequence_length + 1 tokens.
using SampleSource = std::function<Tokens(std::int64_t step, std::int64_t sample)>;

class Engine {
 public:
  /// Makes and keeps the states. `rank` outlives the engine.
  Engine(const Problem& problem, const Place& place, const Rank& rank, SampleSource samples);

  /// One step of all micro-batches and the optimizer, numbered from 1. Returns this rank's share of
  /// the mean loss; 0 where it holds no head.
  double step(std::int64_t number);
  /// The passes of a step alone: gradients stay as they are, not reduced if the stage does that at
  /// the end.
  double passes(std::int64_t number);

  /// The units of this rank in model order, a copy of a tied embedding last.
  std::vector<DividedUnit*> units();

  AdamStep adam;

 private:
  void forward(std::int32_t micro_batch, std::int64_t step);
  void backward(std::int32_t micro_batch);
  void make_pipeline_buffers();
  void make_constant_buffers();
  Half received_input(std::int32_t micro_batch);
  Tokens tokens(std::int64_t step, std::int32_t micro_batch, std::int64_t offset) const;

  const Problem problem_;
  Place place_;
  const Rank& rank_;
  SampleSource samples_;
  std::vector<Pass> order_;
  Tensor<float> workspace_;
  DividedUnit* travelling_ = nullptr;  // whose gradients are on their way
  std::optional<Embedding> embedding_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::optional<Head> head_;
  std::vector<Tensor<Bf16>> inputs_;  // received, one for each micro-batch in flight
  Tensor<Bf16> checkpoints_;          // MD
  Tensor<Bf16> bucket_;               // MD, CB
  Tensor<Bf16> output_gradient_;      // received
  Tensor<Bf16> sent_gradient_;        // stays until the next one is made
  double loss_ = 0;
};

}  // namespace zeroplan::engine
