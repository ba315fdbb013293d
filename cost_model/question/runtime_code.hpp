#pragma once
// What a runtime is: all that is true of it alone, as one value. Rooms that tell the same story of
// every runtime ask here for what differs; the value is made in the runtime's room, where its parts
// are known (cost_model/runtime/README.md).

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/question/choices.hpp"
#include "cost_model/question/runtime_settings.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

enum class AttentionKernel;
enum class BlockKind;
enum class LayerKind;
enum class During;
enum class Behind;
struct AllocatorConfig;
struct Block;
struct Call;
struct CollectiveLoad;
struct HostTensors;
struct Interleaving;
struct KernelHabits;
struct ModelSpec;
struct ModelStates;
struct Problem;
struct RepeatedLayers;
struct RuleBook;
struct Stage;
struct StageProgram;
struct Startup;
struct StateRecipe;
struct UpdateHabits;
struct WeightInventory;
struct Workspace;
class MegatronBlockSource;
class PeakBytes;
using RepeatSet = unsigned;

/// A member that has no default: a value that lacks one does not compile.
template <class T>
class Given {
 public:
  template <std::convertible_to<T> U>
  constexpr Given(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT: reads as the value
  constexpr operator T() const { return value_; }                 // NOLINT: reads as the value
  constexpr const T& operator*() const { return value_; }

 private:
  T value_;
};

/// Whether the ranks that hold the same parameters divide model states: never; what the stage of
/// ZeRO names; or always all of them.
enum class DividesStates { never, by_stage, always };

/// Half the width of the band around a memory answer, as parts of what it is made of. Which rows
/// measured them stands beside each runtime's.
struct MemoryBand {
  double reserved = 0;       // of the caching allocator's bytes
  double outside = 0;        // of communicators and context
  double activations = 0;    // of activations alone
  double beyond_states = 0;  // of all but model states
};

/// The band of a runtime that no row measures: 30 % of all but model states, assumed.
inline constexpr MemoryBand unmeasured_band{.beyond_states = 0.3};

/// Half the width of a band in which 95 of 100 measured steps lie, as a part of the predicted
/// seconds.
struct StepBand {
  double half_width = 0;
  bool measured = false;  // by runs of its own family; else assumed
};

/// Paper and section, or repository and file.
struct Sources {
  std::string_view states;   // bytes an element, and what is divided
  std::string_view program;  // what a step allocates and frees
  std::string_view buffers;  // what it gathers and reduces in
  std::string_view communication;
};

struct RuntimeCode {
  template <class R>
  using Of = Given<R (*)(const Problem&)>;
  template <class R>
  using OfStage = Given<R (*)(const Problem&, const WeightInventory&, const Stage&)>;

  Given<std::string_view> name;
  /// Counts what must be there, on no device: no allocator, workspace, communicator or context.
  Given<bool> counts_only;

  /// The layers are Megatron-LM's own, as before Transformer Engine.
  Of<bool> local_layers;
  /// The layers are Transformers' classes.
  Of<bool> transformers_layers;

  // What a rank holds and repeats (rank/).

  /// Layers of each model chunk, in model order; empty where the model cannot be split so.
  Of<std::vector<std::int64_t>> split;
  /// Whether the model can be split so: `split` is not empty.
  Of<bool> has_split;
  /// Chunks that the layers of a model can fill at most.
  Given<std::int64_t (*)(const ModelSpec&, const RuntimeSpec&)> most_chunks;
  /// What selective recompute repeats of a layer (rank/recomputed.hpp).
  Of<RepeatSet> repeats_selectively;
  /// The layers of a chunk of which the recompute policy takes all.
  Of<RepeatedLayers> repeated_layers;

  // How the runtime stores model states, and what it allocates around the layers (states/).
  Given<DividesStates> divides_states;
  Of<StateRecipe> states;
  /// Bytes of the model states that are known without a recipe; null: the recipe tells them.
  ModelStates (*own_states)(const Problem&) = nullptr;
  /// The rank that is answered for of a stage's ranks, whose parts of the states are not alike;
  /// null: the first.
  std::int64_t (*answered_rank)(const Problem&, const WeightInventory&, const Stage&) = nullptr;
  /// Offloaded optimizer states leave the gradients on the GPU.
  Given<bool> keeps_gradients;
  /// What the padded vocabulary is a multiple of.
  Of<std::int64_t> vocabulary_unit;
  OfStage<Bytes> held_buffers;
  OfStage<std::vector<Workspace>> workspaces;
  Of<Bytes> context;

  // The runtime's step as a program (program/, allocator/).
  Given<StageProgram (*)(
      const Problem&, const WeightInventory&, const Stage&, const MegatronBlockSource&)>
      stage;
  Given<Startup (*)(const Problem&, const WeightInventory&, const Stage&, const StageProgram&)>
      startup;
  Of<AllocatorConfig> allocator;
  /// The highest moment of a step as sums of remembered pieces; null: from the program's profile.
  Given<std::unique_ptr<PeakBytes> (*)(const WeightInventory&)> peak_bytes;
  /// What the runtime's program sends in a step, but for what crosses between stages.
  OfStage<std::vector<Call>> step_calls;
  /// A block of the program by itself, in one micro-batch, when recompute repeats so much of it,
  /// without what holds its states. Does not read the layout's recompute policy.
  Given<Block (*)(const Problem&, const WeightInventory&, BlockKind, LayerKind, RepeatSet)> block;
  /// The calls of gradients and parameters among what a step sends, without its program; null: the
  /// fold tells.
  OfStage<std::vector<Call>> update_calls;
  /// The rank's memory is a sum over blocks of runtime/megatron/blocks.hpp.
  Given<bool> sums_blocks;
  /// What comes before the first step may be the highest moment.
  Given<bool> peaks_at_start;
  /// Offloaded tensors beside the states themselves, for so many updated elements.
  Given<HostTensors (*)(const Problem&, const WeightInventory&, const Stage&, std::int64_t updated)>
      on_host;
  /// What the passes keep on the host of rank `index`: checkpoints, or what layers save.
  Given<Bytes (*)(const Problem&, const Stage&, std::int64_t index)> activations_on_host;
  /// What a layer's forward pass copies there, and its backward pass back.
  Given<Bytes (*)(const Problem&, LayerKind)> moved_to_host;

  // How fast the runtime is (kernel/, schedule/, pipeline/).
  Of<KernelHabits> kernels;
  /// How an interleaved schedule goes round the chunks of a rank.
  Of<Interleaving> interleaving;
  /// A message between stages keeps the sender's stream busy.
  Of<bool> sends_block;
  /// What a collective of replicas, of context parallelism, or of experts runs beside.
  Given<Behind (*)(const Problem&, const CollectiveLoad&)> replicas_behind;
  Given<Behind (*)(const Problem&, const CollectiveLoad&)> context_behind;
  Given<Behind (*)(const Problem&, const CollectiveLoad&)> experts_behind;
  /// Seconds of copies around one pass's sharded collectives.
  Given<double (*)(const Problem&, std::int64_t elements, During)> sharding_copies;
  OfStage<UpdateHabits> update;

  /// What the runtime refuses (legality/), and the schedules it has, as bits.
  Given<const RuleBook*> rules;
  Given<unsigned (*)(const RuntimeSpec&)> schedules;

  /// What a planner tries of the runtime (planner/), and the settings by which it exchanges states
  /// that a search leaves open, the leanest first.
  Given<Choices> choices;
  Given<LayerChoices (*)(const GivenSettings&, Recompute)> layer_choices;
  Given<std::vector<ShardingSettings> (*)(const GivenSettings&, const Problem&)> knobs;
  /// What the model attends by where nobody says it.
  Of<AttentionKernel> attention;
  /// Settings that fields of the layout stand for, which are else as asked.
  Given<void (*)(const RuntimeSpec& asked, const Layout&, RuntimeSpec&)> take_layout;
  /// What an answer takes for granted of the runtime, one sentence each.
  Of<std::vector<std::string>> assumptions;

  /// How far measured runs lay from the answers.
  Given<MemoryBand> memory_band;
  Of<StepBand> step_band;

  /// Who says what is told of the runtime (explain/).
  Of<Sources> sources;
};

/// The value of the problem's runtime.
const RuntimeCode& code_of(const RuntimeSpec& runtime);
const RuntimeCode& code_of(const Problem& problem);

}  // namespace zeroplan
