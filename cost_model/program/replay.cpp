// What does the allocator reserve for a program? Front door: replay.
#include "cost_model/program/replay.hpp"

namespace zeroplan {
namespace {

class Replayer {
 public:
  Replayer(const AllocatorConfig& config, std::vector<Played> events)
      : allocator_(config), events_(std::move(events)), blocks_(events_.size(), BlockId::none) {}

  std::vector<BlockId> allocate(const std::vector<TensorSpec>& specs) {
    std::vector<BlockId> blocks;
    blocks.reserve(specs.size());
    for (const TensorSpec& spec : specs) blocks.push_back(allocate(spec.bytes));
    return blocks;
  }

  void free(const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) allocator_.free(block);
  }

  // Events [first, end) of the playback.
  void play(std::size_t first) {
    for (std::size_t i = first; i < events_.size() && !failed_; ++i) {
      BlockId& block = blocks_[static_cast<std::size_t>(events_[i].id)];
      if (events_[i].allocates) {
        block = allocate(events_[i].tensor.bytes);
      } else {
        allocator_.free(block);
      }
    }
  }

  Replay result() const {
    return {allocator_.peak_allocated(), allocator_.peak_reserved(), failed_};
  }

 private:
  BlockId allocate(Bytes bytes) {
    const auto block = allocator_.allocate(bytes);
    failed_ |= !block.has_value();
    return block.value_or(BlockId::none);
  }

  CachingAllocator allocator_;
  std::vector<Played> events_;
  std::vector<BlockId> blocks_;  // by allocation of the playback
  bool failed_ = false;
};

std::vector<TensorSpec> of(const std::vector<TensorSpec>& specs, bool (*wanted)(Category)) {
  std::vector<TensorSpec> list;
  for (const TensorSpec& spec : specs) {
    if (wanted(spec.category)) list.push_back(spec);
  }
  return list;
}

bool is_buffer(Category c) {
  return c == Category::parameters || c == Category::gradients;
}
bool is_other(Category c) {
  return !is_buffer(c) && c != Category::master_parameters && c != Category::optimizer_states;
}

}  // namespace

Replay replay(const StageProgram& program,
              const StateTensors& states,
              const std::vector<Pass>& order,
              const AllocatorConfig& config) {
  std::vector<Played> events;
  play_step(program, order, &events);
  const std::size_t step = program.resident.size();  // which come first in a playback

  Replayer replayer(config, std::move(events));
  // The buffers that take the weights over are made while the modules still hold theirs.
  const std::vector<BlockId> modules = replayer.allocate(states.modules);
  replayer.allocate(of(program.resident, is_buffer));
  replayer.free(modules);
  replayer.allocate(states.masters);
  replayer.allocate(of(program.resident, is_other));
  replayer.play(step);
  replayer.allocate(states.moments);
  replayer.play(step);
  return replayer.result();
}

}  // namespace zeroplan
