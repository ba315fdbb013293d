#pragma once
// What DeepSpeed's reduction buckets make of gradients, whose `sizes` are those of the tensors of
// the flat buffer, in elements; a bucket holds so many too.

#include <cstdint>
#include <vector>

namespace zeroplan {

/// Elements of whole tensors that touch the part of one rank.
struct Owned {
  std::int64_t most = 0;    // of any rank
  std::int64_t beside = 0;  // the most that stands beside gradients that no bucket has taken in
  std::int64_t early = 0;   // of a rank that has its own when the last tensor's gradient comes
};

/// A rank makes room for its own when the first of them is reduced (runtime/zero/
/// stage_1_and_2.py @edaa72212).
Owned owned_elements(const std::vector<std::int64_t>& sizes,
                     std::int64_t ranks,
                     std::int64_t bucket);

/// The first of the ranks that own most.
std::int64_t rank_that_owns_most(const std::vector<std::int64_t>& sizes, std::int64_t ranks);

/// The most that a rank has of `owned` times the elements that it owns, and of `slice` times those
/// of the largest slice of a tensor that is in its part.
std::int64_t most_with_slice(const std::vector<std::int64_t>& sizes,
                             std::int64_t ranks,
                             std::int64_t owned,
                             std::int64_t slice);

/// Elements of the copies that are made of buckets to reduce them.
struct Copies {
  std::int64_t most = 0;
  // Of them, while the gradient that finds no room is not the first tensor's, the last made; while
  // it is that one; and when all are done:
  std::int64_t earlier = 0, beside_last = 0, at_end = 0;
  // Of the `earlier` ones that which with the gradient that found no room is most, and that
  // gradient:
  std::int64_t beside_hand = 0, at_hand = 0;
  std::size_t first_hand = 0;  // the tensor that found no room before the first of them
  std::int64_t live = 0;       // parameters that are gathered beside the `earlier` ones
};

/// Stage 3 gives each rank its part of all of a bucket's tensors at once; of one tensor that
/// divides it makes no copy (DeepSpeed 0.19.8 runtime/comm/coalesced_collectives.py
/// reduce_scatter_coalesced). `live`: parameters that are gathered while each tensor's gradient is
/// made.
Copies scattered_elements(const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& live,
                          std::int64_t ranks,
                          std::int64_t bucket);

/// The most elements that are reduced at once.
struct AtOnce {
  std::int64_t any = 0;
  std::int64_t of_several = 0;  // ranks: they are copied together
};

/// Of [from, to) of the flat buffer, of which each rank owns a `part` (DeepSpeed 0.19.8
/// runtime/zero/stage_1_and_2.py allreduce_and_scatter).
AtOnce reduced_at_once(std::int64_t from, std::int64_t to, std::int64_t part, std::int64_t bucket);

/// Stage 2 reduces at once what several ranks own: all of a bucket, or slices of a gradient larger
/// than one, until they are more than one. What one rank owns is reduced where it is
/// (DeepSpeed 0.19.8 runtime/zero/stage_1_and_2.py average_tensor, allreduce_and_scatter,
/// allreduce_bucket).
Copies copied_elements(const std::vector<std::int64_t>& sizes,
                       std::int64_t ranks,
                       std::int64_t bucket);

}  // namespace zeroplan
