#pragma once
// What DeepSpeed's reduction buckets make of gradients, whose `sizes` are those of the tensors of
// the flat buffer, in elements; a bucket holds so many too.

#include <cstdint>
#include <vector>

namespace zeroplan {

/// The most elements of whole tensors that touch the part of one rank.
struct Owned {
  struct Most {
    std::int64_t elements = 0;
    std::int64_t rank = 0;  // the first rank that has so many
  };
  Most any;
  Most beside;  // less gradients that buckets have taken in when they get room
  Most early;   // of the ranks that have their own when the last tensor's gradient comes
  Most early_without_last;  // as `early`, of ranks that own nothing of the last tensor
};

/// The most elements of gradients that a rank owns: it makes room for its own when the first of
/// them is reduced (runtime/zero/stage_1_and_2.py @edaa72212).
Owned owned_elements(const std::vector<std::int64_t>& sizes,
                     std::int64_t ranks,
                     std::int64_t bucket);

/// The most that a rank has of `owned` times the elements that it owns, and of `slice` times those
/// of the largest slice of a tensor that is in its part.
std::int64_t most_with_slice(const std::vector<std::int64_t>& sizes,
                             std::int64_t ranks,
                             std::int64_t owned,
                             std::int64_t slice);

/// The copy of a bucket that is full: the tensor whose gradient finds no room, and elements.
struct BucketCopy {
  std::size_t hand;
  std::int64_t elements;
};

/// Elements of the copies that are made of buckets to reduce them.
struct Copies {
  std::int64_t most = 0;
  std::vector<BucketCopy> earlier;  // while another gradient than the first tensor's finds no room
  std::int64_t beside_last = 0;     // while the first tensor's, the last one made, finds none
  std::int64_t at_end = 0;          // when all gradients are done
};

/// Stage 3 gives each rank its part of all of a bucket's tensors at once; of one tensor that
/// divides it makes no copy (DeepSpeed 0.19.8 runtime/comm/coalesced_collectives.py
/// reduce_scatter_coalesced).
Copies scattered_elements(const std::vector<std::int64_t>& sizes,
                          std::int64_t ranks,
                          std::int64_t bucket);

/// The most elements that are reduced at once.
struct AtOnce {
  std::int64_t any = 0;
  std::int64_t of_several = 0;  // ranks: they are copied together
};

/// The most elements of [from, to) of the flat buffer that are reduced at once, where each rank
/// owns a `part` of the buffer (DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py
/// allreduce_and_scatter).
AtOnce reduced_at_once(std::int64_t from, std::int64_t to, std::int64_t part, std::int64_t bucket);

/// Stage 2 reduces at once what several ranks own: all of a bucket, or slices of a gradient larger
/// than one, until they are more than one. What one rank owns is reduced where it is
/// (DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py average_tensor, allreduce_and_scatter,
/// allreduce_bucket).
Copies copied_elements(const std::vector<std::int64_t>& sizes,
                       std::int64_t ranks,
                       std::int64_t bucket);

}  // namespace zeroplan
