// What happens when the program runs? Front door: play_step.
#include "cost_model/program/play.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <stdexcept>

#include "cost_model/program/walk.hpp"

namespace zeroplan {
namespace {

// A block while one micro-batch passes it: which allocation each of its tensors is, -1 while not
// live.
using Instance = std::vector<std::int64_t>;
constexpr std::int64_t not_live = -1;

class PlayingSink {
 public:
  using Handle = std::int64_t;  // of an allocation

  PlayingSink(const StageProgram& program, const Visitors& visit, std::int32_t last)
      : program_(program), visit_(visit), last_(last) {
    for (const TensorSpec& spec : program.resident) allocate(spec);
    border_specs_.reserve(border_kinds);
  }

  void begin(const Pass&) {
    ++pass_;
    block_ = at_border;
  }

  Handle allocate_border(std::string_view name, Category category) {
    return allocate(border_spec(name, category));
  }
  void free_border(Handle handle) { free(handle); }

  std::optional<Handle> forward(std::int32_t chunk_index, std::int32_t micro_batch) {
    const ChunkProgram& chunk = program_.chunks[static_cast<std::size_t>(chunk_index)];
    std::vector<Instance>& instances = in_flight_[{chunk_index, micro_batch}];
    phase_ = Phase::forward;
    const Handle batch = chunk.batch.bytes > Bytes{} ? allocate(chunk.batch) : not_live;
    for (const Run& run : chunk.runs_of(micro_batch, last_)) {
      phase_ = forward_phase(*run.block);
      const Block& block = run.block->block();
      for (std::int64_t i = 0; i < run.count; ++i) {
        block_ = static_cast<std::int32_t>(instances.size());
        const std::int64_t input =
            instances.empty() ? not_live : take(instances.back()[Block::output]);
        instances.emplace_back(block.tensors.size(), not_live);
        instances.back()[Block::input] = input;
        play(block, block.forward, instances.back());
      }
    }
    block_ = at_border;
    if (batch != not_live) {
      if (chunk.keeps_batch) {
        batches_[{chunk_index, micro_batch}] = batch;
      } else {
        free(batch);
      }
    }
    if (!hands_over(program_, chunk_index)) return std::nullopt;
    return take(instances.back()[Block::output]);
  }

  std::optional<Handle> backward(std::int32_t chunk_index,
                                 std::int32_t micro_batch,
                                 BackwardPart part) {
    const ChunkProgram& chunk = program_.chunks[static_cast<std::size_t>(chunk_index)];
    const auto found = in_flight_.find({chunk_index, micro_batch});
    assert(found != in_flight_.end());  // a backward pass follows its forward pass
    std::vector<Instance>& instances = found->second;
    const bool ends = part != BackwardPart::input_gradient;
    const bool makes_gradient = part != BackwardPart::weight_gradient;
    const std::int64_t output = ends ? take(instances.back()[Block::output]) : not_live;
    std::int64_t gradient = not_live;  // the last block's is the schedule's
    const Runs& runs = chunk.runs_of(micro_batch, last_);
    const auto drop_batch = [&] {
      const auto held = batches_.find({chunk_index, micro_batch});
      if (held == batches_.end()) return;
      free(held->second);
      batches_.erase(held);
    };
    std::size_t at = instances.size();
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      phase_ = backward_phase(*run->block);
      const Block& block = run->block->block();
      for (std::int64_t i = 0; i < run->count; ++i) {
        Instance& instance = instances[--at];
        block_ = static_cast<std::int32_t>(at);
        if (chunk.drops_batch_before(at)) drop_batch();
        if (makes_gradient) instance[Block::output_grad] = gradient;
        play(block, block.backward, instance, part);
        if (makes_gradient) gradient = take(instance[Block::input_grad]);
        if (ends) {
          for ([[maybe_unused]] const std::int64_t id : instance)
            assert(id == not_live);  // nothing is left behind
        }
      }
    }
    block_ = at_border;
    drop_batch();
    if (output != not_live) free(output);
    if (ends) in_flight_.erase(found);
    if (!makes_gradient || !chunk.receives) return std::nullopt;
    return gradient;
  }

  void end_of_step(const Block& block, Phase phase) {
    phase_ = phase;
    block_ = at_border;
    Instance instance(block.tensors.size(), not_live);
    play(block, block.forward, instance);
  }

  Playback playback() const { return {peak_, live_, events_}; }

 private:
  static constexpr std::size_t border_kinds = 8;
  static constexpr std::int32_t at_border = -1;

  static std::int64_t take(std::int64_t& slot) {
    const std::int64_t id = slot;
    slot = not_live;
    return id;
  }

  // Specs of the borders' tensors, each made once; reserved, so that pointers to them stay.
  const TensorSpec& border_spec(std::string_view name, Category category) {
    for (const TensorSpec& spec : border_specs_) {
      if (spec.name == name) return spec;
    }
    assert(border_specs_.size() < border_kinds);
    border_specs_.push_back({name, program_.boundary, category});
    return border_specs_.back();
  }

  void play(const Block& block,
            const std::vector<Event>& events,
            Instance& instance,
            BackwardPart part = BackwardPart::whole) {
    for (const Event& event : events) {
      if (!belongs(event, part)) continue;
      if (event.computes()) {
        tell_kernel(event.kernel(), &events == &block.backward);
        continue;
      }
      if (event.operates()) {
        tell_operator(block.operator_of(event));
        continue;
      }
      if (event.begins_phase()) {
        phase_ = static_cast<Phase>(event.index);
        continue;
      }
      const auto tensor = static_cast<std::size_t>(event.index);
      if (event.calls()) {
        if (visit_.call) visit_.call({block.calls[tensor], phase_, pass_, block_});
        continue;
      }
      const bool allocates = event.allocates();
      const TensorSpec& spec = block.tensors[tensor];
      if (spec.carried) {
        allocates ? carried_[spec.name].push_back(allocate(spec)) : free(oldest(spec));
      } else if (allocates) {
        assert(instance[tensor] == not_live);
        instance[tensor] = allocate(spec);
      } else if (instance[tensor] == not_live) {
        // The schedule's to free.
        assert(event.index == Block::output_grad || event.index == Block::input);
      } else {
        free(take(instance[tensor]));
      }
    }
  }

  void tell_kernel(const Kernel& kernel, bool backward) const {
    const bool repeats = backward && kernel.product == Product::forward;
    if (visit_.kernel) visit_.kernel({kernel, repeats, pass_, block_});
  }

  // Tells of an operator; those of the optimizer are of no pass.
  void tell_operator(const Operator& op) const {
    const std::int32_t pass = phase_ < Phase::optimizer_step ? pass_ : -1;
    if (visit_.kernel) visit_.kernel({{}, false, pass, block_, &op});
  }

  // The tensor of this name and size that was handed to the rank first.
  Handle oldest(const TensorSpec& spec) {
    std::deque<Handle>& list = carried_[spec.name];
    const auto found = std::find_if(list.begin(), list.end(), [&](Handle id) {
      return live_specs_[static_cast<std::size_t>(id)]->bytes == spec.bytes;
    });
    if (found == list.end()) {
      throw std::logic_error(fmt::format("a program takes '{}' of {} bytes that nobody put there",
                                         spec.name, spec.bytes.count()));
    }
    const Handle id = *found;
    list.erase(found);
    return id;
  }

  Handle allocate(const TensorSpec& spec) {
    ++events_;
    live_specs_.push_back(&spec);
    const auto id = static_cast<Handle>(live_specs_.size() - 1);
    live_[spec.category] += spec.bytes;
    if (live_.allocated() > peak_.live.allocated()) peak_ = {live_, phase_, spec.name};
    if (visit_.tensor) visit_.tensor({spec, id, true, phase_, pass_, block_});
    return id;
  }

  void free(Handle id) {
    ++events_;
    const TensorSpec*& spec = live_specs_.at(static_cast<std::size_t>(id));
    assert(spec != nullptr);  // freed twice
    live_[spec->category] -= spec->bytes;
    if (visit_.tensor) visit_.tensor({*spec, id, false, phase_, pass_, block_});
    spec = nullptr;
  }

  const StageProgram& program_;
  const Visitors& visit_;
  std::int32_t last_;  // micro-batch
  std::vector<TensorSpec> border_specs_;
  std::vector<const TensorSpec*> live_specs_;  // by allocation; null once freed
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Instance>> in_flight_;
  std::map<std::pair<std::int32_t, std::int32_t>, Handle> batches_;  // that are kept
  std::map<std::string_view, std::deque<Handle>> carried_;
  MemoryBreakdown live_;
  Moment peak_;
  Phase phase_ = Phase::forward;
  std::int32_t pass_ = -1;
  std::int32_t block_ = at_border;
  std::int64_t events_ = 0;
};

}  // namespace

Playback play_step(const StageProgram& program,
                   const std::vector<Pass>& order,
                   const Visitors& visit) {
  PlayingSink sink(program, visit, last_micro_batch(order));
  walk_step(program, order, sink);
  return sink.playback();
}

std::vector<Played> played_events(const StageProgram& program, const std::vector<Pass>& order) {
  std::vector<Played> events;
  play_step(program, order, {.tensor = [&](const Played& event) { events.push_back(event); }});
  return events;
}

}  // namespace zeroplan
