#pragma once
// Models and problems that several tests start from.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"

namespace zeroplan::tests {

/// What a catalog, hardware and runtimes hold, each read once a thread: random draws ask for few of
/// them, thousands of times.
template <class Key, class Read>
const auto& read_once(Key key, const Read& read) {
  thread_local std::map<Key, decltype(read())> known;
  const auto at = known.find(key);
  return at != known.end() ? at->second : known.emplace(std::move(key), read()).first->second;
}

/// A catalog model on `gpus` x `gpu`, bf16 and Adam, sequence 4096, one micro-batch a rank and
/// step.
inline Problem problem(Runtime runtime,
                       std::string_view model,
                       const Layout& layout,
                       std::string_view gpu = "A100-80GB") {
  const std::int64_t gpus = world_size(layout);
  Problem p{.model = read_once(std::string(model), [&] { return find_model(model).spec; }),
            .cluster =
                read_once(std::pair(std::string(gpu), gpus), [&] { return cluster_of(gpu, gpus); }),
            .runtime = read_once(runtime, [&] { return load_runtime(runtime, {}); }),
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
