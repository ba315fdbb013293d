#pragma once
// Problems of Transformers' layers, as they were run on fake tensors.

#include "tests/specs.hpp"

namespace zeroplan::tests {

struct Tracked {
  Runtime runtime;
  std::string_view model;
  std::int64_t layers, gpus, sequence, micro_batch;
  Recompute recompute;
  double mib;
};

inline Problem problem_of(const Tracked& run) {
  const bool shards = run.runtime == Runtime::fsdp2;
  Problem p = tests::problem(run.runtime, run.model,
                             {.dp = run.gpus,
                              .micro_batch = run.micro_batch,
                              .zero = shards ? ZeroStage::parameters : ZeroStage::none,
                              .recompute = run.recompute},
                             "H100-80GB");
  p.model.layers = run.layers;
  p.training.sequence_length = run.sequence;
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  p.runtime.fsdp2.torch_version = 210;
  return p;
}

}  // namespace zeroplan::tests
