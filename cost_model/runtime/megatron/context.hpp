#pragma once
// Private to the attention half of a Megatron layer: what ranks of context parallelism send each
// other around the kernel, and what Transformer Engine holds for it.
// Source: TransformerEngine pytorch/attention/dot_product_attention/context_parallel.py @d0067d0da.

#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {

/// Tensors until the kernel has returned, and until the half of the layer has.
struct ContextTensors {
  TensorList kernel, half;
};

class ContextCalls {
 public:
  ContextCalls(BlockWriter& w, const MegatronShape& s);

  /// Before the kernel, and after it.
  void send_forward() const;
  /// Keys and values go round again, in a ring with their gradients.
  void send_backward() const;

  /// Whether keys and values come part by part, and the kernel runs for each
  /// (AttnFuncWithCPAndKVP2P).
  bool is_ring() const { return cp_ > 1 && transport_ == ContextTransport::p2p; }

  /// Sends, and allocates what the kernel needs beside the rank's own keys and values. Of a ring
  /// these are the parts of all ranks, of which the last is kept instead of the own, and an output
  /// for each: on the first rank of half the queries after its own.
  ContextTensors forward() const;
  /// A ring's sum of outputs in fp32, before it is narrowed; none of another transport.
  Tensor sum_of_parts() const;

  /// What a ring's backward pass holds beside the gradients of one part: two buffers of keys,
  /// values and their gradients, of which one is given back as the gradients, and the queries'.
  ContextTensors backward() const;

 private:
  void call(Collective what, Bytes payload, std::int64_t times = 1) const;

  BlockWriter& w_;
  std::int64_t cp_;
  ContextTransport transport_;
  Bytes keys_, queries_, output_;  // keys and values
};

}  // namespace zeroplan
