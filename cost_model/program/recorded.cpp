// How is a recorded step a program? Front door: program_of.
#include "cost_model/program/recorded.hpp"

#include <map>

namespace zeroplan {
namespace {

constexpr std::int32_t never = -1;

// A block of the program: those of the micro-batches, then the optimizer's.
using BlockIndex = std::int32_t;

// Calls `visit` with each event of the step in order, and the block that it belongs to.
template <class Visit>
void visit_events(const RecordedProgram& r, Visit&& visit) {
  for (std::size_t i = 0; i < r.passes.size(); ++i) {
    for (const Event& event : r.passes[i]) visit(event, static_cast<BlockIndex>(i / 2));
  }
  for (const Event& event : r.step) visit(event, static_cast<BlockIndex>(r.micro_batches()));
}

// The tensors that pass through a slot, one after another.
struct Lives {
  std::vector<bool> begins_resident;              // by slot
  std::vector<bool> ends_resident;                // never freed
  std::vector<std::vector<BlockIndex>> freed_in;  // by slot, of each allocation; never: at no time
  std::vector<std::vector<BlockIndex>> made_in;   // by slot, of each free; never: before the step

  explicit Lives(const RecordedProgram& r)
      : begins_resident(r.slots.size()),
        ends_resident(r.slots.size()),
        freed_in(r.slots.size()),
        made_in(r.slots.size()) {
    std::vector<BlockIndex> made(r.slots.size(), never);
    for (const std::int32_t slot : r.resident) {
      begins_resident[static_cast<std::size_t>(slot)] = true;
      ends_resident[static_cast<std::size_t>(slot)] = true;
    }
    visit_events(r, [&](const Event& event, BlockIndex block) {
      if (!event.is_of_tensor()) return;
      const auto slot = static_cast<std::size_t>(event.index);
      if (event.allocates()) {
        made[slot] = block;
        freed_in[slot].push_back(never);
        return;
      }
      made_in[slot].push_back(made[slot]);
      if (made[slot] == never) ends_resident[slot] = false;
      if (made[slot] != never) freed_in[slot].back() = block;
      made[slot] = never;
    });
  }
};

class BlocksOfStep {
 public:
  explicit BlocksOfStep(const RecordedProgram& recorded)
      : r_(recorded),
        lives_(recorded),
        blocks_(static_cast<std::size_t>(recorded.micro_batches() + 1)),
        places_(blocks_.size()),
        made_(recorded.slots.size()),
        freed_(recorded.slots.size()) {
    for (Block& block : blocks_) {
      block.tensors.resize(Block::input + 1);  // none of a chain
      block.operators = &r_.operators;
    }
    take_over();
    for (std::size_t i = 0; i < r_.passes.size(); ++i) {
      Block& block = blocks_[i / 2];
      const bool forward = i % 2 == 0;
      during_ = forward ? During::forward : During::backward;
      write(r_.passes[i], static_cast<BlockIndex>(i / 2), forward ? block.forward : block.backward);
    }
    during_ = During::step;
    write(r_.step, last(), blocks_.back().forward);
    hand_over();
  }

  std::vector<Block> take() { return std::move(blocks_); }

 private:
  BlockIndex last() const { return static_cast<BlockIndex>(blocks_.size() - 1); }

  // What the step found and will free.
  void take_over() {
    for (std::size_t slot = 0; slot < r_.slots.size(); ++slot) {
      if (lives_.begins_resident[slot] && !lives_.ends_resident[slot]) {
        blocks_.front().forward.push_back({place(0, slot, true), Event::Kind::allocate});
      }
    }
  }

  // What it made and leaves to the next one.
  void hand_over() {
    for (std::size_t slot = 0; slot < r_.slots.size(); ++slot) {
      if (!lives_.freed_in[slot].empty() && lives_.freed_in[slot].back() == never) {
        blocks_.back().forward.push_back({place(last(), slot, true), Event::Kind::free});
      }
    }
  }

  void write(const std::vector<Event>& events, BlockIndex own, std::vector<Event>& out) {
    Block& block = blocks_[static_cast<std::size_t>(own)];
    for (const Event& event : events) {
      const auto index = static_cast<std::size_t>(event.index);
      if (event.is_of_tensor()) {
        const BlockIndex other = event.allocates() ? lives_.freed_in[index][made_[index]++]
                                                   : lives_.made_in[index][freed_[index]++];
        out.push_back({place(own, index, other != own), event.kind});
      } else if (event.calls()) {
        Call call = r_.calls[index];
        call.during = during_;
        out.push_back({static_cast<std::int32_t>(block.calls.size()), event.kind});
        block.calls.push_back(call);
      } else {
        out.push_back(event);
      }
    }
  }

  // The tensor of a block that stands for the slot; `carried`: another block frees or made it.
  std::int32_t place(BlockIndex own, std::size_t slot, bool carried) {
    Block& block = blocks_[static_cast<std::size_t>(own)];
    const auto next = static_cast<std::int32_t>(block.tensors.size());
    const auto [found, added] =
        places_[static_cast<std::size_t>(own)].try_emplace({slot, carried}, next);
    if (added) {
      block.tensors.push_back(r_.slots[slot]);
      block.tensors.back().carried = carried;
    }
    return found->second;
  }

  const RecordedProgram& r_;
  Lives lives_;
  std::vector<Block> blocks_;
  std::vector<std::map<std::pair<std::size_t, bool>, std::int32_t>> places_;  // by block
  std::vector<std::size_t> made_, freed_;  // so often yet, by slot
  During during_ = During::forward;
};

}  // namespace

StageProgram program_of(const RecordedProgram& recorded) {
  StageProgram program;
  const Lives lives(recorded);
  for (const std::int32_t slot : recorded.resident) {
    const auto index = static_cast<std::size_t>(slot);
    if (lives.ends_resident[index]) program.resident.push_back(recorded.slots[index]);
  }
  std::vector<Block> blocks = BlocksOfStep(recorded).take();
  program.step = std::move(blocks.back());
  blocks.pop_back();
  ChunkProgram& chunk = program.chunks.emplace_back();
  for (Block& block : blocks) append(chunk.each.emplace_back(), folded(std::move(block)));
  chunk.runs = chunk.each.front();
  return program;
}

ModelStates states_of(const RecordedProgram& recorded) {
  MemoryBreakdown sums;
  for (const std::int32_t slot : recorded.resident) {
    const TensorSpec& spec = recorded.slots[static_cast<std::size_t>(slot)];
    sums[spec.category] += spec.bytes;
  }
  return {.parameters = sums[Category::parameters],
          .gradients = sums[Category::gradients],
          .master_parameters = sums[Category::master_parameters],
          .optimizer_states = sums[Category::optimizer_states],
          .step_gradients = {}};
}

}  // namespace zeroplan
