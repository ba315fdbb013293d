#pragma once
// What the ranks that divide one layer send each other: tensor, context and expert parallelism.

#include <vector>

#include "cost_model/network/load_list.hpp"
#include "cost_model/rank/layer_part.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {

/// A collective of one block of the model (embedding, layer, head) and one micro-batch, which is
/// what its `calls` count.
struct BlockCall {
  CollectiveLoad load;
  RepeatSet repeated_by = 0;  // not empty: made by recompute alone, for one of these reasons
};

/// Each micro-batch, of one layer; payloads for 16-bit activations:
///   tensor         2 all-reduces forward, 2 backward, of 2 T h bytes (Narayanan et al. 2021,
///                  section 3.2)
///   with sequence  each a reduce-scatter and an all-gather of 2 T h, and backward one all-gather
///   parallelism    more for each column-parallel linear, whose input was kept divided (Korthikanti
///                  et al. 2022, section 4.2.2; Megatron-Core core/tensor_parallel/layers.py)
///   context        p2p: keys and values to the next rank c - 1 times forward; backward with their
///                  gradients. all-gather: forward and backward, and a reduce-scatter of the
///                  gradients. a2a: queries, keys, values, then the output, and back (Transformer
///                  Engine context_parallel.py; DeepSpeed-Ulysses, arXiv 2309.14509)
///   expert         2 all-to-alls forward, 2 backward, of 2 T k h bytes for k experts a token
///                  (Megatron-Core MoE report; DeepSpeed moe/sharded_moe.py)
/// Full recompute repeats the forward part. Does not read the layout's recompute policy.
std::vector<BlockCall> layer_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   LayerKind kind,
                                   LayerPart part = LayerPart::whole);

/// The vocabulary divided by tensor parallelism: word embedding; head and loss.
std::vector<BlockCall> embedding_calls(const Problem& problem, const WeightInventory& inventory);
std::vector<BlockCall> head_calls(const Problem& problem, const WeightInventory& inventory);

/// What a multi-token-prediction module adds to a layer, an embedding and a head: its projection.
std::vector<BlockCall> mtp_projection_calls(const Problem& problem);

/// All of these of the blocks of a stage, in one step.
void add_blocks(LoadList& loads,
                const Problem& problem,
                const WeightInventory& inventory,
                const Stage& stage);

}  // namespace zeroplan
