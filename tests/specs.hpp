#pragma once
// Models and problems that several tests start from.

#include "cost_model/question/problem.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"

namespace zeroplan::tests {

/// A catalog model on `gpus` x `gpu`, bf16 and Adam, sequence 4096, one micro-batch a rank and
/// step.
inline Problem problem(Runtime runtime,
                       std::string_view model,
                       const Layout& layout,
                       std::string_view gpu = "A100-80GB") {
  Problem p{.model = find_model(model).spec,
            .cluster = cluster_of(gpu, world_size(layout)),
            .runtime = load_runtime(runtime, {}),
            .training = {.sequence_length = 4096},
            .layout = layout};
  p.training.global_batch = layout.dp * layout.micro_batch * layout.pp;
  return p;
}

}  // namespace zeroplan::tests
