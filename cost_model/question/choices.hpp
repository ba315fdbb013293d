#pragma once
// Which layouts a planner tries of a runtime, where nobody says. What is legal is another question:
// these are the values that a person who knows the runtime would think of.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/layout.hpp"

namespace zeroplan {

struct Problem;
struct RuntimeSpec;

/// Where selective recompute of the runtime drops anything worth its time.
enum class SelectiveRecompute { never, with_unfused_attention, always };

struct Choices {
  bool divides_model = false;           // tensor and pipeline parallelism
  bool splits_norms = false;            // sequence parallelism beside tensor parallelism
  bool cuts_products = false;           // to send one part beside the next, within a node
  bool cuts_context = false;            // context parallelism
  bool divides_experts = false;         // expert parallelism
  bool divides_inside_experts = false;  // tensor parallelism of its own width inside experts
  bool tries_pipeline = false;  // also where data parallelism may do: it is not dearer in memory
  bool has_several_chunks = false;     // a rank
  bool has_uneven_splits = false;      // the first and the last stage may hold more or fewer layers
  bool has_recompute_modules = false;  // selective recompute by module
  bool has_hybrid_sharding = false;
  bool trains_mtp = false;
  SelectiveRecompute selective = SelectiveRecompute::never;
  std::span<const ZeroStage> stages;       // that differ in what one would want
  std::span<const ZeroStage> every_stage;  // all there are
  std::span<const ZeroStage> pipeline_stages = every_stage;  // those that a pipeline may have
  std::span<const Offload> offloads;       // whose time is counted, the leanest first
};

/// What a search may choose of the layers of a chunk: how many the policy takes, the first ones,
/// and then whether the rest repeats selectively.
struct LayerChoices {
  bool number = false;
  bool rest = false;
};

/// How states are exchanged, as far as a layout says it; as they are here: as the runtime is set.
struct ShardingSettings {
  Overlap overlap = Overlap::as_set;
  bool reshards_all = false;
  std::int64_t gathered_layers = 0;
  std::int64_t reduce_bucket = 0;
};

/// Settings as a person gave them: a search leaves those alone.
struct GivenSettings {
  const RuntimeSpec& runtime;
  std::span<const std::string> names;

  bool gives(std::string_view name) const {
    for (const std::string& given : names) {
      if (given == name) return true;
    }
    return false;
  }
};

}  // namespace zeroplan
