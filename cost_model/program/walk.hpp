#pragma once
// One steady step of a pipeline rank: which chunk passes run when, and how long the tensors at the
// borders of a chunk live. Written once; folding and playing are two sinks of the same walk.
//
// A sink has a type Handle and
//   void begin(const Pass&)                  the events that follow are of this pass
//   Handle allocate_border(name, category)   a tensor of StageProgram::boundary bytes
//   void free_border(Handle)
//   std::optional<Handle> forward(chunk, micro_batch)
//                                            its blocks; gives the output to send, unless the
//                                            chunk keeps it
//   std::optional<Handle> backward(chunk, micro_batch, part)
//                                            in reverse; gives the gradient to send, if the part
//                                            makes one
//   void end_of_step(Block, phase)           the optimizer's step, or a checkpoint

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "cost_model/program/borders.hpp"
#include "cost_model/program/early_walk.hpp"
#include "cost_model/program/schedule.hpp"

namespace zeroplan {

/// Plays the part of the schedule's variables, each under the name it has there, since what they
/// refer to stays in memory. Source: Megatron-LM core/pipeline_parallel/schedules.py and
/// core/transformer/transformer_block.py set_input_tensor.
template <class Sink>
class StepWalk {
 public:
  StepWalk(const StageProgram& program, Sink& sink)
      : program_(program), sink_(sink), borders_(sink), chunks_(program.chunks.size()) {
    // The step before left each decoder its last input, and the gradient that this input owns.
    for (std::size_t c = 0; c < chunks_.size() && !program.forgets_borders; ++c) {
      if (!program.chunks[c].receives || program.borders_resident) continue;
      chunks_[c].decoder_input = borders_.finished_leaf();
    }
  }

  void run(const Pass& pass) {
    sink_.begin(pass);
    switch (pass.kind) {
      case PassKind::forward:
        return forward(pass);
      case PassKind::backward:
        return backward(pass, BackwardPart::whole);
      case PassKind::input_gradient:
        return backward(pass, BackwardPart::input_gradient);
      case PassKind::weight_gradient:
        return weight_gradient(pass);
    }
  }

 private:
  using Handle = typename Sink::Handle;

  using Held = typename Borders<Sink>::Held;
  using HeldLeaf = typename Borders<Sink>::HeldLeaf;

  struct Chunk {
    std::deque<HeldLeaf> in_flight;
    HeldLeaf decoder_input;
  };

  void forward(const Pass& pass) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    HeldLeaf leaf;
    if (program_.chunks[static_cast<std::size_t>(pass.chunk)].receives) {
      leaf = borders_.leaf();
      if (!program_.borders_resident) {
        leaf->tensor = borders_.input();
        if (!program_.forgets_borders) chunk.decoder_input = leaf;
      }
    }
    if (program_.forgets_borders) input_tensor_grad_ = Held();   // sent before this pass received
    borders_.hold(sink_.forward(pass.chunk, pass.micro_batch));  // sent at once
    chunk.in_flight.push_back(leaf);
    if (program_.forgets_borders) return;
    output_tensor_ = leaf;  // the graph of a sent output still leads to its input
  }

  void backward(const Pass& pass, BackwardPart part) {
    Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    const HeldLeaf leaf = chunk.in_flight.front();
    chunk.in_flight.pop_front();
    if (!program_.forgets_borders) output_tensor_ = leaf;
    const bool sends = program_.chunks[static_cast<std::size_t>(pass.chunk)].sends;
    output_tensor_grad_ =
        sends && !program_.borders_resident ? borders_.received_gradient() : Held();
    if (part == BackwardPart::input_gradient && weights_read_output_grad(pass)) {
      put_off_[{pass.chunk, pass.micro_batch}] = output_tensor_grad_;
    }
    const std::optional<Handle> gradient = sink_.backward(pass.chunk, pass.micro_batch, part);
    if (leaf && gradient) {
      leaf->gradient = borders_.hold(gradient);
      input_tensor_grad_ = leaf->gradient;
    } else {
      input_tensor_grad_ = Held();
    }
    if (program_.forgets_borders) output_tensor_grad_ = Held();
  }

  void weight_gradient(const Pass& pass) {
    sink_.backward(pass.chunk, pass.micro_batch, BackwardPart::weight_gradient);
    put_off_.erase({pass.chunk, pass.micro_batch});
  }

  // Whether the last linear of the chunk reads the received gradient itself.
  bool weights_read_output_grad(const Pass& pass) const {
    const ChunkProgram& chunk = program_.chunks[static_cast<std::size_t>(pass.chunk)];
    constexpr std::int32_t none = -1;
    const Block& last = chunk.runs_of(pass.micro_batch, none).back().block->block();
    for (const Event& event : last.backward) {
      if (event.is_of_tensor() && event.index == Block::output_grad && event.of_weights)
        return true;
    }
    return false;
  }

  const StageProgram& program_;
  Sink& sink_;
  Borders<Sink> borders_;
  std::vector<Chunk> chunks_;
  std::map<std::pair<std::int32_t, std::int32_t>, Held> put_off_;  // by chunk and micro-batch
  HeldLeaf output_tensor_;
  Held output_tensor_grad_;
  Held input_tensor_grad_;
};

/// Runs one steady step, whose variables end with it, and saves a checkpoint. Where nothing is
/// gathered for it, what is saved goes to the host tensor by tensor and takes no memory here.
template <class Sink>
void walk_step(const StageProgram& program, const std::vector<Pass>& order, Sink& sink) {
  if (program.early) {
    EarlyWalk<Sink> walk(program, order, sink);
    for (const Pass& pass : order) walk.run(pass);
  } else {
    StepWalk<Sink> walk(program, sink);
    for (const Pass& pass : order) walk.run(pass);
  }
  sink.end_of_step(program.step, Phase::optimizer_step);
  sink.end_of_step(program.checkpoint, Phase::checkpoint);
}

}  // namespace zeroplan
