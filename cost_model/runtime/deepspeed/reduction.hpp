#pragma once
// Which gradients does stage 2 reduce together, what does it copy for that, and when does a rank
// take its own?

#include <cstdint>
#include <vector>

namespace zeroplan {

/// In elements. A gradient goes into the bucket, which is emptied when the next one does not fit;
/// one that is larger than the bucket waits by itself. What reaches into several ranks' parts is
/// concatenated to be reduced. A rank's own gradients get their memory, all of it, when the first
/// of them is reduced.
struct Reduction {
  std::int64_t copy_in_head = 0;       // most, when a gradient of the head comes
  std::int64_t copy_in_layers = 0;     // of a layer
  std::int64_t copy_at_embedding = 0;  // of the word embedding, which is the last
  std::int64_t copy_at_end = 0;        // of the bucket with which the backward pass ends
  bool emptied_at_embedding = false;
  std::int64_t owned = 0;        // most of a rank
  std::int64_t owned_early = 0;  // of those that take theirs before the word embedding's comes

  std::int64_t most_copied() const;
};

/// One backward pass over tensors of `sizes`, in the order of the flat buffer: the word embedding
/// first, `head_tensors` last. Source: deepspeedai/DeepSpeed 0.19.6 runtime/zero/stage_1_and_2.py
/// reduce_independent_p_g_buckets_and_remove_grads, average_tensor, allreduce_and_scatter,
/// copy_grads_in_partition.
Reduction gradient_reduction(const std::vector<std::int64_t>& sizes,
                             std::size_t head_tensors,
                             std::int64_t ranks,
                             std::int64_t bucket);

}  // namespace zeroplan
