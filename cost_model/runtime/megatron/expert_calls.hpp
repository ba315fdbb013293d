#pragma once
// What travels around the experts of a Megatron layer.

#include "cost_model/runtime/megatron/shape.hpp"

namespace zeroplan {

/// Brings tokens to their experts or back: all-to-all, then among the ranks that divide an expert,
/// which gather each other's tokens and add up what they made of them (Megatron-LM
/// core/transformer/moe/token_dispatcher.py). The flex dispatcher sends a token once over the
/// network to each node that holds an expert of it, and from there once to each rank that does
/// (DeepEP csrc/kernels/internode.cu; HybridEP docs/README_Hybrid-EP.md). HybridEP's first call
/// gathers the map of all ranks' tokens and all experts, a byte each, and sends beside a token its
/// probabilities, or, backward, their gradients, of all experts in the node, in fp32 (DeepEP's
/// branch hybrid-ep, csrc/hybrid_ep/executor/executor.cu allgather_routing_map, hybrid_ep.cu
/// allocate_buffer_for_dispatch).
class ExpertCalls {
 public:
  ExpertCalls(BlockWriter& w, const MegatronShape& s) : w_(w), s_(s) {}

  void dispatch() const;
  void combine() const;
  void dispatch_gradients() const;
  void combine_gradients() const;

 private:
  bool is_hybrid() const;
  std::int64_t ranks_of_node() const;
  void gather_map() const;
  std::int64_t probabilities() const;
  Bytes rows(std::int64_t tokens) const;
  void exchange(std::int64_t beside = 0) const;
  std::int64_t once_each(std::int64_t places) const;
  void inside(Collective what) const;

  BlockWriter& w_;
  const MegatronShape& s_;
};

}  // namespace zeroplan
