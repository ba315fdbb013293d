// What does the allocator reserve for a program? Front door: replay.
#include "cost_model/allocator/replay.hpp"

#include <algorithm>
#include <optional>

namespace zeroplan {
namespace {

class Replayer {
 public:
  Replayer(const AllocatorConfig& config, std::vector<Played> events)
      : allocator_(config), events_(std::move(events)), blocks_(events_.size(), BlockId::none) {}

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

  // The forward pass of a block by itself.
  void run(const Block& block) {
    std::vector<BlockId> placed(block.tensors.size(), BlockId::none);
    for (const Event& event : block.forward) {
      if (event.calls()) continue;
      const auto tensor = static_cast<std::size_t>(event.index);
      if (event.allocates()) {
        placed[tensor] = allocate(block.tensors[tensor]);
      } else {
        allocator_.free(placed[tensor]);
      }
    }
  }

  // The events of the playback from `first` on; of `phase`, or each of its own.
  void play(std::size_t first, std::optional<Phase> phase = {}) {
    if (phase) enter(*phase);
    for (std::size_t i = first; i < events_.size() && !failed_; ++i) {
      const Played& event = events_[i];
      if (!phase && phases_[peak_].phase != event.phase) enter(event.phase);
      BlockId& block = blocks_[static_cast<std::size_t>(event.id)];
      if (event.allocates) block = allocate(event.tensor);
      if (step_ != nullptr) {
        const BlockView view = allocator_.block(block);
        step_->events.push_back({event, view.address, view.size});
      }
      count_launches(event);
      if (!event.allocates) free(event, block);
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

  void count_launches(const Played& event) {
    if (event.block == last_block_ && event.pass == last_pass_) return;
    if (event.pass != last_pass_ && event.phase == Phase::backward) settle();
    last_block_ = event.block;
    last_pass_ = event.pass;
    launches_ += event.phase == Phase::forward ? launches_forward : launches_backward;
    if (launches_ >= launch_queue) settle();
  }

  void settle() {
    launches_ = 0;
    allocator_.complete_events();
  }

  void free(const Played& event, BlockId block) {
    constexpr int communication = 3;  // beside the streams that allocate
    if (event.tensor.lingers) allocator_.record_stream(block, communication);
    allocator_.free(block);
  }

  BlockId allocate(const TensorSpec& spec) {
    const auto block = allocator_.allocate(spec.bytes, static_cast<int>(spec.stream));
    failed_ |= !block.has_value();
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

  CachingAllocator allocator_;
  std::vector<PhasePeak> phases_{{.phase = Phase::init}};
  std::size_t peak_ = 0;  // of the phase that runs
  std::vector<Played> events_;
  std::vector<BlockId> blocks_;  // by allocation of the playback
  std::map<std::int64_t, std::string_view> names_;
  PlacedStep* step_ = nullptr;
  int launches_ = 0;
  std::int32_t last_block_ = -1;
  std::int32_t last_pass_ = -1;
  bool keeps_names_ = false;
  bool failed_ = false;
};

// Where the events of a step begin in a playback: what is resident comes first.
std::size_t first_of_step(const StageProgram& program) {
  return program.resident.size();
}

Replayer replayer_of(const StageProgram& program,
                     const std::vector<Pass>& order,
                     const AllocatorConfig& config) {
  std::vector<Played> events;
  play_step(program, order, &events);
  return {config, std::move(events)};
}

// Everything up to the steady step.
void warm_up(Replayer& replayer,
             const StageProgram& program,
             const Startup& startup,
             Start start = Start::fresh) {
  replayer.run(startup.construction);
  if (start == Start::resumed) {
    replayer.enter(Phase::resume);
    const std::vector<BlockId> held = replayer.allocate(startup.loading);
    replayer.allocate(startup.moments);
    replayer.free(held);
  }
  replayer.play(first_of_step(program), Phase::first_step);
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
              Start start) {
  Replayer replayer = replayer_of(program, order, config);
  warm_up(replayer, program, startup, start);
  replayer.play(first_of_step(program));
  return replayer.result();
}

PlacedStep placed_step(const StageProgram& program,
                       const Startup& startup,
                       const std::vector<Pass>& order,
                       const AllocatorConfig& config) {
  Replayer replayer = replayer_of(program, order, config);
  replayer.keep_names();
  warm_up(replayer, program, startup);
  PlacedStep step;
  replayer.record(step);
  replayer.play(first_of_step(program));
  step.totals = replayer.result();
  step.segments = replayer.segments();
  step.names = replayer.names();
  return step;
}

}  // namespace zeroplan
