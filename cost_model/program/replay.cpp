// What does the allocator reserve for a program? Front door: replay.
#include "cost_model/program/replay.hpp"

namespace zeroplan {
namespace {

class Replayer {
 public:
  Replayer(const AllocatorConfig& config, std::vector<Played> events)
      : allocator_(config), events_(std::move(events)), blocks_(events_.size(), BlockId::none) {}

  /// From here on each event is placed in `step`.
  void record(PlacedStep& step) { step_ = &step; }

  void allocate(const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs) allocate(spec);
  }

  // The forward pass of a block by itself.
  void run(const Block& block) {
    std::vector<BlockId> placed(block.tensors.size(), BlockId::none);
    for (const Event& event : block.forward) {
      const auto tensor = static_cast<std::size_t>(event.tensor);
      if (event.allocates) {
        placed[tensor] = allocate(block.tensors[tensor]);
      } else {
        allocator_.free(placed[tensor]);
      }
    }
  }

  // The events of the playback from `first` on.
  void play(std::size_t first) {
    for (std::size_t i = first; i < events_.size() && !failed_; ++i) {
      const Played& event = events_[i];
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

  Replay result() const {
    return {allocator_.peak_allocated(), allocator_.peak_reserved(), failed_};
  }
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
    if (keeps_names_ && block) names_[allocator_.block(*block).address] = spec.name;
    return block.value_or(BlockId::none);
  }

  CachingAllocator allocator_;
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
  if (start == Start::resumed) replayer.allocate(startup.moments);
  replayer.play(first_of_step(program));
  if (start == Start::fresh) replayer.allocate(startup.moments);
}

}  // namespace

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
