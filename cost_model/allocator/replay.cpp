// What does the allocator reserve for a program? Front door: replay.
#include "cost_model/allocator/replay.hpp"

#include <algorithm>
#include <optional>

#include "cost_model/program/step_tape.hpp"

namespace zeroplan {
namespace {

class Replayer {
 public:
  Replayer(const StageProgram& program,
           const std::vector<Pass>& order,
           const AllocatorConfig& config,
           Bytes most)
      : tape_(step_tape(program, order)), allocator_(config), most_(most) {}

  /// From here on each event is placed in `step`.
  void record(PlacedStep& step) { step_ = &step; }

  void enter(Phase phase) {
    peak_ = peak_of(phase);
    rise({});
  }

  std::vector<BlockId> allocate(const std::vector<TensorSpec>& specs) {
    std::vector<BlockId> blocks;
    for (const TensorSpec& spec : specs) blocks.push_back(allocate(spec));
    return blocks;
  }

  void free(const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) allocator_.free(block);
  }

  void empty_cache() { allocator_.empty_cache(); }

  // The forward pass of a block by itself.
  void run(const Block& block) {
    std::vector<BlockId> placed(block.tensors.size(), BlockId::none);
    for (const Event& event : block.forward) {
      if (!event.is_of_tensor()) continue;
      const auto tensor = static_cast<std::size_t>(event.index);
      if (event.allocates()) {
        placed[tensor] = allocate(block.tensors[tensor]);
      } else {
        allocator_.free(placed[tensor]);
      }
    }
  }

  // A step, but for what is resident, which comes first; of `phase`, or each event of its own.
  void play(std::optional<Phase> phase = {}) {
    if (failed_) return;
    if (phase) enter(*phase);
    blocks_.assign(tape_.tensors.size(), BlockId::none);
    std::size_t next = 0;
    for (const StepTape::Place& place : tape_.places) {
      if (!phase && phases_[peak_].phase != place.phase) enter(place.phase);
      for (const std::size_t first = next; next < place.end; ++next) {
        const StepTape::Event event = tape_.events[next];
        const auto id = static_cast<std::size_t>(event.id);
        if (event.allocates) blocks_[id] = allocate(tape_.tensors[id]);
        if (step_ != nullptr) record(place, event);
        if (next == first) count_launches(place);
        if (!event.allocates) free(tape_.tensors[id], blocks_[id]);
        if (failed_) return;
      }
    }
    settle();
  }

  Replay result() const { return {phases_, failed_}; }
  std::vector<SegmentView> segments() const { return allocator_.segments(); }
  const std::map<std::int64_t, std::string_view>& names() const { return names_; }
  void keep_names() { keeps_names_ = true; }

 private:
  // Kernels that the host launches ahead of the device: then it waits, and what collectives read
  // until then is done. The depth of CUDA's launch queue and the launches of a layer are recalled
  // and guessed: 512 instead of 1,024 moves predictions by about 1 %.
  static constexpr int launch_queue = 1024;
  static constexpr int launches_forward = 40;
  static constexpr int launches_backward = 60;

  void record(const StepTape::Place& place, StepTape::Event event) {
    const auto id = static_cast<std::size_t>(event.id);
    const BlockView view = allocator_.block(blocks_[id]);
    step_->events.push_back(
        {{tape_.tensors[id], event.id, event.allocates, place.phase, place.pass, place.block},
         view.address,
         view.size});
  }

  void count_launches(const StepTape::Place& place) {
    if (place.block == last_block_ && place.pass == last_pass_) return;
    if (place.pass != last_pass_ && place.phase == Phase::backward) settle();
    last_block_ = place.block;
    last_pass_ = place.pass;
    launches_ += place.phase == Phase::forward ? launches_forward : launches_backward;
    if (launches_ >= launch_queue) settle();
  }

  void settle() {
    launches_ = 0;
    allocator_.complete_events();
  }

  void free(const TensorSpec& tensor, BlockId block) {
    constexpr int communication = 3;  // beside the streams that allocate
    if (tensor.lingers) allocator_.record_stream(block, communication);
    allocator_.free(block);
  }

  BlockId allocate(const TensorSpec& spec) {
    const auto block = allocator_.allocate(spec.bytes, static_cast<int>(spec.stream));
    failed_ |= !block.has_value() || allocator_.peak_reserved() > most_;
    rise(spec.name);
    if (keeps_names_ && block) names_[allocator_.block(*block).address] = spec.name;
    return block.value_or(BlockId::none);
  }

  void rise(std::string_view tensor) {
    PhasePeak& peak = phases_[peak_];
    peak.reserved = allocator_.peak_reserved();
    if (allocator_.allocated() <= peak.allocated) return;
    peak.allocated = allocator_.allocated();
    peak.tensor = tensor;
  }

  // Where the peak of a phase is kept.
  std::size_t peak_of(Phase phase) {
    std::size_t i = 0;
    while (i < phases_.size() && phases_[i].phase != phase) ++i;
    if (i == phases_.size()) phases_.push_back({.phase = phase});
    return i;
  }

  const StepTape tape_;
  CachingAllocator allocator_;
  Bytes most_;
  std::vector<PhasePeak> phases_{{.phase = Phase::init}};
  std::size_t peak_ = 0;         // of the phase that runs
  std::vector<BlockId> blocks_;  // by allocation of the playback
  std::map<std::int64_t, std::string_view> names_;
  PlacedStep* step_ = nullptr;
  int launches_ = 0;
  std::int32_t last_block_ = -1;
  std::int32_t last_pass_ = -1;
  bool keeps_names_ = false;
  bool failed_ = false;
};

// Everything up to the steady step.
void warm_up(Replayer& replayer, const Startup& startup, Start start = Start::fresh) {
  replayer.run(startup.construction);
  if (startup.empties_cache) replayer.empty_cache();
  if (start == Start::resumed) {
    replayer.enter(Phase::resume);
    const std::vector<BlockId> held = replayer.allocate(startup.loading);
    replayer.allocate(startup.moments);
    replayer.free(held);
  }
  replayer.play(Phase::first_step);
  if (start == Start::fresh) replayer.allocate(startup.moments);
}

}  // namespace

std::vector<PhasePeak> phases_of(const std::vector<PhasePeak>& fresh, const Replay& resumed) {
  std::vector<PhasePeak> phases = fresh;
  for (const PhasePeak& phase : resumed.phases) {
    if (phase.phase == Phase::resume) phases.push_back(phase);
  }
  return phases;
}

Bytes Replay::peak_allocated() const {
  Bytes peak;
  for (const PhasePeak& phase : phases) peak = std::max(peak, phase.allocated);
  return peak;
}

Bytes Replay::peak_reserved() const {
  Bytes peak;
  for (const PhasePeak& phase : phases) peak = std::max(peak, phase.reserved);
  return peak;
}

Replay replay(const StageProgram& program,
              const Startup& startup,
              const std::vector<Pass>& order,
              const AllocatorConfig& config,
              Start start,
              Bytes most) {
  Replayer replayer(program, order, config, most);
  warm_up(replayer, startup, start);
  replayer.play();
  return replayer.result();
}

PlacedStep placed_step(const StageProgram& program,
                       const Startup& startup,
                       const std::vector<Pass>& order,
                       const AllocatorConfig& config) {
  Replayer replayer(program, order, config, unlimited);
  replayer.keep_names();
  warm_up(replayer, startup);
  PlacedStep step;
  replayer.record(step);
  replayer.play();
  step.totals = replayer.result();
  step.segments = replayer.segments();
  step.names = replayer.names();
  return step;
}

}  // namespace zeroplan
