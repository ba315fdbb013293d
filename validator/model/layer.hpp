#pragma once
// A decoder layer: norm, attention, norm, MLP, each with a residual beside it.

#include <map>

#include "validator/model/checkpoint.hpp"
#include "validator/zero/divided_unit.hpp"

namespace zeroplan::engine {

class Layer {
 public:
  Layer(const Rank& rank, std::int64_t index)
      : rank_(rank), unit_(rank, layer_unit(rank.shape, index)) {}

  /// Takes the input, which stays until the backward pass of this micro-batch.
  Tensor<Bf16> forward(std::int32_t micro_batch, Passed input);
  /// Takes the gradient of the output, gives that of the input.
  Tensor<Bf16> backward(std::int32_t micro_batch, Passed dy);

  DividedUnit& unit() { return unit_; }
  /// MD: a row for the checkpoint of each micro-batch in flight.
  void use_slots(Half slots) { slots_ = slots; }

 private:
  /// What the backward pass reads.
  struct Saved {
    Tensor<Bf16> norm1;
    Tensor<float> statistics1;
    Tensor<Bf16> qkv, attention;
    Tensor<float> log_sums;
    Tensor<Bf16> middle;  // the residual stream between attention and MLP
    Tensor<Bf16> norm2;
    Tensor<float> statistics2;
    Tensor<Bf16> up, activated;
  };
  struct InFlight {
    Passed input;
    Checkpoint checkpoint;
    Saved saved;
  };

  Tensor<Bf16> run(ConstHalf input, Saved& saved, std::string_view name, Category category);
  void linear_gradient(std::string_view name, std::string_view bias, ConstHalf dy, ConstHalf x);
  Tensor<Bf16> column_gradient(std::string_view name,
                               std::string_view bias,
                               Tensor<Bf16>& dy,
                               Tensor<Bf16>& x);
  Tensor<Bf16> mlp_gradient(Saved& saved, Passed& dy);
  Tensor<Bf16> attention_gradient(InFlight& flight, Tensor<Bf16> dmiddle);

  const Rank& rank_;
  DividedUnit unit_;
  Half slots_;
  std::map<std::int32_t, InFlight> in_flight_;  // by micro-batch
};

}  // namespace zeroplan::engine
