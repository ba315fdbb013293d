// How does Megatron-LM's pattern of a hybrid model say a pipeline? Front door:
// say_by_pattern, rename_older_patterns.
#include "presets/configuration/hybrid_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cost_model/question/runtime_code.hpp"
#include "presets/hf_families.hpp"
#include "presets/megatron_hybrid.hpp"

namespace zeroplan {
namespace {

constexpr std::array<std::string_view, 6> refused_beside{
    "pipeline-model-parallel-layout",          "num-virtual-stages-per-pipeline-rank",
    "decoder-first-pipeline-num-layers",       "decoder-last-pipeline-num-layers",
    "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"};

std::string whole_pattern(const Problem& p) {
  std::string pattern;
  auto layer = p.model.layer_kinds.begin();
  for (const std::int64_t count : code_of(p).split(p)) {
    if (layer != p.model.layer_kinds.begin()) pattern += chunk_border;
    pattern += pattern_of(std::span(layer, layer + count));
    layer += count;
  }
  const LayerKinds of_module = kinds_of_mtp_module(p.model);
  for (std::int64_t i = 0; i < trained_mtp_modules(p); ++i) {
    pattern += mtp_border + pattern_of({of_module.data(), of_module.size()});
  }
  return pattern;
}

constexpr const char* older_argument = "hybrid-override-pattern";
constexpr const char* module_argument = "mtp-hybrid-override-pattern";

}  // namespace

void rename_older_patterns(Entries& entries) {
  if (const auto older = entries.take(older_argument)) {
    if (entries.has(pattern_argument)) {
      entries.fail(fmt::format("{} and {} both say the layers", older_argument, pattern_argument));
    }
    entries.put(pattern_argument, *older);
  }
  const auto layers = entries.text(pattern_argument);
  if (!layers) return;
  entries.take_flag("is-hybrid-model");
  if (!entries.has(module_argument) || layers->find(mtp_border) != std::string::npos) return;
  std::string whole = *layers;
  const std::string module = mtp_border + *entries.take(module_argument);
  const std::int64_t modules =
      std::min(entries.count("mtp-num-layers").value_or(0), any_layers.most);
  for (std::int64_t i = 0; i < modules; ++i) whole += module;
  entries.take(pattern_argument);
  entries.put(pattern_argument, whole);
}

void say_by_pattern(std::vector<Entry>& out, const Problem& problem) {
  const auto pattern = std::ranges::find(out, pattern_argument, &Entry::key);
  if (pattern == out.end()) return;
  pattern->value = whole_pattern(problem);
  std::erase_if(out, [](const Entry& entry) {
    return std::ranges::find(refused_beside, entry.key) != refused_beside.end();
  });
}

}  // namespace zeroplan
