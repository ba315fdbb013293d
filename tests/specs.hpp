#pragma once
// Models and problems that several tests start from.

#include <vector>

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

/// Each runtime of the list.
inline std::vector<Runtime> runtimes() {
  std::vector<Runtime> all;
  for (std::size_t i = 0; i < names<Runtime>().size(); ++i) all.push_back(static_cast<Runtime>(i));
  return all;
}

}  // namespace zeroplan::tests
