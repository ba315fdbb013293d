#pragma once
// How the work is divided among GPUs: the degrees of parallelism and what goes with them.

#include <array>
#include <cstdint>

#include "cost_model/question/names.hpp"

namespace zeroplan {

/// What is divided over the data-parallel group (ZeRO, section 5); each stage includes the ones
/// before.
enum class ZeroStage { none, optimizer, gradients, parameters };
enum class Schedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_v, dualpipe };
/// Whether backward passes run in two parts, of which the one for weights may be put off.
constexpr bool splits_backward(Schedule schedule) {
  return schedule > Schedule::interleaved;
}
enum class Recompute { none, selective, full };
enum class Offload { none, optimizer, parameters, activations };
/// What Megatron-Core sends beside passes: as it is set; gradients; updated parameters too.
/// DeepSpeed at stage 2: gradients.
enum class Overlap { as_set, gradients, parameters };

template <>
struct Spellings<ZeroStage> {
  static constexpr std::array<std::string_view, 4> value{"0", "1", "2", "3"};
};
template <>
struct Spellings<Schedule> {
  static constexpr std::array<std::string_view, 7> value{"gpipe", "1f1b", "interleaved", "zb-h1",
                                                         "zb-h2", "zb-v", "dualpipe"};
};
template <>
struct Spellings<Recompute> {
  static constexpr std::array<std::string_view, 3> value{"none", "selective", "full"};
};
template <>
struct Spellings<Offload> {
  static constexpr std::array<std::string_view, 4> value{"none", "optimizer", "parameters",
                                                         "activations"};
};

template <>
struct Spellings<Overlap> {
  static constexpr std::array<std::string_view, 3> value{"as set", "gradients",
                                                         "gradients and parameters"};
};

struct Layout {
  std::int64_t dp = 1;    // data parallel: replicas, or shards of the states under ZeRO
  std::int64_t tp = 1;    // tensor parallel
  std::int64_t pp = 1;    // pipeline stages
  std::int64_t vpp = 1;   // model chunks a pipeline rank (virtual stages)
  std::int64_t cp = 1;    // context parallel: parts of a sequence
  std::int64_t ep = 1;    // expert parallel
  std::int64_t etp = 1;   // tensor parallel inside an expert
  std::int64_t hsdp = 0;  // width of the sharding group inside dp; 0: all of dp
  std::int64_t micro_batch = 1;
  ZeroStage zero = ZeroStage::none;
  bool sequence_parallel = false;
  Schedule schedule = Schedule::one_f_one_b;
  Recompute recompute = Recompute::none;
  Offload offload = Offload::none;
  // What the runtime's own settings decide, where a search sets them; 0: as they are.
  std::int64_t recompute_layers = 0;  // of each chunk; of Megatron-Core with full recompute
  bool selective_rest = false;        // FSDP2: its other layers repeat selectively
  // Megatron-Core:
  unsigned recompute_modules = 0;  // with selective recompute, bits of RecomputeModule
  std::int64_t first_stage = 0;    // layers of the first and the last stage
  std::int64_t last_stage = 0;
  bool tp_overlap = false;  // tensor-parallel collectives beside their products
  Overlap overlap = Overlap::as_set;
  std::int64_t reduce_bucket = 0;  // DeepSpeed: elements
  // FSDP2:
  bool reshards_all = false;         // what the backward pass reads first, too
  std::int64_t gathered_layers = 0;  // so many at the end stay gathered between the passes
  std::int64_t loss_chunks = 0;      // parts of output layer and loss
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// GPUs the layout occupies. Experts live on the same GPUs, so ep is not a factor.
constexpr std::int64_t world_size(const Layout& layout) {
  return layout.dp * layout.tp * layout.pp * layout.cp;
}

}  // namespace zeroplan
