// What does a NeMo container turn on? Front doors: nemo_container, container_settings.
#include "presets/nemo_container.hpp"

#include <algorithm>
#include <iterator>

namespace zeroplan {
namespace {

// Dates are the containers' own: year and month. Bridge: NVIDIA-NeMo/Megatron-Bridge.
struct Default {
  std::string_view since;  // the first container with it
  const char* key;
  const char* value;
};
constexpr Default defaults[] = {
    // Releases; 26.08 is not in the list of versions, and is taken to have what 26.06 has.
    {"25.09", "transformer_engine", "2.7"},
    {"25.11", "transformer_engine", "2.9"},
    {"26.02", "transformer_engine", "2.12"},
    {"26.04", "transformer_engine", "2.14"},
    {"26.06", "transformer_engine", "2.16"},
    // Bridge src/megatron/bridge/models/gpt_provider.py, all tags v0.1.0rc4 to v0.6.0.
    {"25.09", "cross_entropy_loss_fusion", "true"},
    // Bridge src/megatron/bridge/training/config.py, skip_getting_attention_mask_from_dataset.
    {"25.09", "create_attention_mask_in_dataloader", "false"},
    // Bridge src/megatron/bridge/training/comm_overlap.py, where dp is above 1.
    {"25.09", "overlap_grad_reduce", "true"},
    {"25.09", "overlap_param_gather", "true"},
    {"25.09", "ddp_bucket_size", "134217728"},
    // Bridge src/megatron/bridge/models/*/*_provider.py.
    {"25.09", "moe_permute_fusion", "true"},
    // Bridge scripts/performance/utils/executors.py PERF_ENV_VARS @v0.5.0, the recipes @v0.6.0;
    // before that for single models alone.
    {"26.06", "expandable_segments", "true"},
};

constexpr std::string_view containers[] = {"25.09", "25.11", "26.02", "26.04", "26.06", "26.08"};

}  // namespace

std::string_view nemo_container(std::string_view text) {
  const auto* found = std::ranges::find_if(containers, [&](std::string_view known) {
    return text == known || (text.starts_with(known) && text.size() == known.size() + 3 &&
                             text.substr(known.size(), 2) == ".0");
  });
  return found == std::end(containers) ? std::string_view() : *found;
}

std::vector<Override> container_settings(std::string_view container) {
  std::vector<Override> settings;
  for (const Default& d : defaults) {
    if (d.since <= container) settings.emplace_back(d.key, d.value);
  }
  return settings;
}

}  // namespace zeroplan
