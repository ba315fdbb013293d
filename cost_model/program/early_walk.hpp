#pragma once
// A steady step of Megatron-Core's interleaved schedule, which receives while it computes: the
// input of a pass arrives before the pass ahead of it goes back, and what was sent stays as long.

#include <algorithm>
#include <deque>
#include <vector>

#include "cost_model/program/borders.hpp"

namespace zeroplan {

/// Plays the part of the schedule's variables, each under the name it has there. Source:
/// Megatron-LM @d98e8a64dd core/pipeline_parallel/schedules.py
/// forward_backward_pipelining_with_interleaving, where overlap_p2p_comm is on and
/// overlap_p2p_comm_warmup_flush is not.
template <class Sink>
class EarlyWalk {
 public:
  EarlyWalk(const StageProgram& program, const std::vector<Pass>& order, Sink& sink)
      : program_(program),
        sink_(sink),
        borders_(sink),
        chunks_(program.chunks.size()),
        leads_forward_(!program.chunks.front().receives),
        leads_backward_(!program.chunks.back().sends),
        fwd_recv_buffer_(buffers(leads_forward_)),
        bwd_recv_buffer_(buffers(leads_backward_)) {
    for (const Pass& pass : order) {
      (pass.kind == PassKind::forward ? forward_ : backward_).push_back(pass.chunk);
    }
    const auto first_backward = std::find_if(order.begin(), order.end(), [](const Pass& pass) {
      return pass.kind == PassKind::backward;
    });
    warm_up_ = static_cast<std::size_t>(first_backward - order.begin());
    if (warm_up_ < forward_.size()) --warm_up_;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      if (program.chunks[c].receives) chunks_[c].decoder_input = borders_.finished_leaf();
    }
  }

  void run(const Pass& pass) {
    sink_.begin(pass);
    if (pass.kind == PassKind::forward) {
      forward(pass);
      ++done_forward_;
    } else {
      backward(pass);
      ++done_backward_;
    }
  }

 private:
  using Held = typename Borders<Sink>::Held;
  using HeldLeaf = typename Borders<Sink>::HeldLeaf;

  struct Chunk {
    std::deque<HeldLeaf> received;   // of passes to come
    std::deque<HeldLeaf> in_flight;  // of passes that have not gone back
    std::deque<Held> output_tensor_grads;
    HeldLeaf decoder_input;
  };
  Chunk& at(std::int32_t chunk) { return chunks_[static_cast<std::size_t>(chunk)]; }
  const ChunkProgram& program_of(std::int32_t chunk) const {
    return program_.chunks[static_cast<std::size_t>(chunk)];
  }

  std::size_t buffers(bool leads) const {
    return leads ? static_cast<std::size_t>(program_.early->group - program_.early->ranks + 1) : 1;
  }

  // Which chunk what arrives beside pass `done` of `chunks` is for, if anything does. A rank that
  // leads is as many passes ahead of the one that sends to it as there are others.
  std::optional<std::int32_t> receiver(const std::vector<std::int32_t>& chunks,
                                       std::size_t done,
                                       bool leads,
                                       std::int32_t towards) const {
    if (done + 1 == chunks.size()) return std::nullopt;
    if (!leads) return chunks[done + 1];
    const auto ahead = static_cast<std::size_t>(program_.early->ranks - 1);
    if (done < ahead) return std::nullopt;
    const std::int32_t chunk = chunks[done - ahead] + towards;
    const bool is_there = chunk >= 0 && chunk < static_cast<std::int32_t>(chunks_.size());
    return is_there ? std::optional(chunk) : std::nullopt;
  }

  // What arrives goes into its buffer's slot, from which the schedule drops it as many passes later
  // as there are slots, less one.
  template <class Ref>
  static void put(std::vector<Ref>& buffer, std::size_t done, const Ref& arrived) {
    buffer[done % buffer.size()] = arrived;
    if (arrived) buffer[(done + 1) % buffer.size()] = Ref();
  }

  HeldLeaf receive_input() {
    const auto chunk = receiver(forward_, done_forward_, leads_forward_, 1);
    if (!chunk) return HeldLeaf();
    HeldLeaf arrived = borders_.received_leaf();
    at(*chunk).received.push_back(arrived);
    return arrived;
  }

  Held receive_gradient() {
    const auto chunk = receiver(backward_, done_backward_, leads_backward_, -1);
    if (!chunk) return Held();
    Held arrived = borders_.received_gradient();
    at(*chunk).output_tensor_grads.push_back(arrived);
    return arrived;
  }

  // The first gradient comes before any pass goes back, but where another rank's leads.
  Held receive_first_gradient() {
    if (leads_backward_) return Held();
    Held arrived = borders_.received_gradient();
    at(backward_.front()).output_tensor_grads.push_back(arrived);
    return arrived;
  }

  void forward(const Pass& pass) {
    Chunk& chunk = at(pass.chunk);
    const bool warm = done_forward_ < warm_up_;
    if (done_forward_ == 0 && program_of(pass.chunk).receives) {
      chunk.received.push_back(borders_.received_leaf());
    }
    if (!warm) sent_ = Held();
    HeldLeaf leaf;
    if (program_of(pass.chunk).receives) {
      leaf = chunk.received.front();
      chunk.received.pop_front();
      chunk.decoder_input = leaf;
    }
    Held sent = borders_.hold(sink_.forward(pass.chunk, pass.micro_batch));
    chunk.in_flight.push_back(leaf);
    if (!program_of(pass.chunk).sends) leaf = HeldLeaf();  // the schedule forgets the loss
    if (!warm) {
      put(fwd_recv_buffer_, done_forward_, receive_input());
      steady_output_ = {leaf, sent};
      return;
    }
    output_tensor_ = leaf;
    input_tensor_ = receive_input();
    sent = Held();
    if (done_forward_ + 1 == warm_up_ && warm_up_ < forward_.size()) {
      bwd_recv_buffer_.back() = receive_first_gradient();
    }
  }

  void backward(const Pass& pass) {
    Chunk& chunk = at(pass.chunk);
    const bool steady = done_backward_ + warm_up_ < forward_.size();
    if (!steady) sent_ = Held();
    if (done_backward_ == 0 && warm_up_ == forward_.size()) receive_first_gradient();
    Held input_tensor_grad;
    {
      const HeldLeaf leaf = chunk.in_flight.front();
      chunk.in_flight.pop_front();
      Held output_tensor_grad;
      if (program_of(pass.chunk).sends) {
        output_tensor_grad = chunk.output_tensor_grads.front();
        chunk.output_tensor_grads.pop_front();
      }
      const auto gradient = sink_.backward(pass.chunk, pass.micro_batch, BackwardPart::whole);
      if (leaf && gradient) {
        leaf->gradient = borders_.hold(gradient);
        input_tensor_grad = leaf->gradient;
      }
    }
    if (steady) {
      put(bwd_recv_buffer_, done_backward_, receive_gradient());
      output_tensor_ = steady_output_.leaf;
      sent_ = steady_output_.sent;
      steady_output_ = {};
      input_tensor_grad_ = input_tensor_grad;
    } else {
      input_tensor_grad_ = input_tensor_grad;
      output_tensor_grad_ = receive_gradient();
    }
  }

  struct Output {
    HeldLeaf leaf;  // to which its graph leads
    Held sent;
  };

  const StageProgram& program_;
  Sink& sink_;
  Borders<Sink> borders_;
  std::vector<Chunk> chunks_;
  bool leads_forward_;                            // the first rank, to which the last sends
  bool leads_backward_;                           // the last rank
  std::vector<std::int32_t> forward_, backward_;  // the chunk of each pass
  std::size_t warm_up_ = 0;                       // forward passes before the steady state
  std::size_t done_forward_ = 0, done_backward_ = 0;
  std::vector<HeldLeaf> fwd_recv_buffer_;
  std::vector<Held> bwd_recv_buffer_;
  Output steady_output_;    // of the forward pass whose partner is yet to go back
  HeldLeaf output_tensor_;  // its graph's
  Held sent_;               // until the next steady pass begins
  HeldLeaf input_tensor_;   // the last that the warm-up received
  Held output_tensor_grad_;
  Held input_tensor_grad_;
};

}  // namespace zeroplan
