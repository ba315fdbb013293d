#pragma once
// What Megatron-FSDP gathers and reduces around the passes of a rank's blocks, bucket by bucket.
//
// A layer, of MTP modules too, is a unit of one bucket, of two where it has experts; experts that
// no other rank has a part of are in none. It is gathered ahead of its passes, as many buckets as
// hold half of the elements that may travel, and released after each. What is in no layer stays
// gathered. A bucket of gradients is made for the layer's first weight gradient, and freed when so
// many elements wait behind it; that of embedding and head waits for both.
// Source: Megatron-LM @d98e8a64dd core/distributed/fsdp/src/megatron_fsdp: megatron_fsdp.py hooks,
// param_and_grad_buffer.py AllGatherPipeline, GradReducePipeline.

#include <array>
#include <boost/container/small_vector.hpp>
#include <ranges>

#include "cost_model/program/in_flight_counts.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Whether Megatron-FSDP divides gradients, and parameters from ZeRO 3 on. It runs no pipeline
/// (M-fsdp-pipeline).
inline bool is_megatron_fsdp(const Problem& problem) {
  return problem.layout.zero >= ZeroStage::gradients && problem.layout.pp == 1;
}

/// A bucket that is made or freed, at some moment beside a block's passes; `mlp_weights`,
/// `other_weights`: before the backward pass computes the first of them (first_weights).
struct BucketEvent {
  enum class When : std::uint8_t {
    before_forward,
    after_forward,
    before_backward,
    mlp_weights,
    other_weights,
    after_backward
  } when;
  enum Of : std::uint8_t { parameters, gradients } of;
  bool made;
  Bytes bytes;
  Bytes change() const { return made ? bytes : Bytes{} - bytes; }
  friend bool operator==(const BucketEvent&, const BucketEvent&) = default;
};

/// The events beside one block's passes; those of one moment in order. A layer has as many of them.
using BucketsOfBlock = boost::container::small_vector<BucketEvent, 6>;

/// The events of one moment.
inline auto events_at(const BucketsOfBlock& buckets, BucketEvent::When when) {
  return std::views::filter(buckets, [when](const BucketEvent& e) { return e.when == when; });
}

/// Of so many blocks, one after another.
struct BucketRun {
  explicit BucketRun(const BucketsOfBlock& of_each);

  BucketsOfBlock buckets;
  std::array<PassBytes, 6> bytes;  // what the events of a moment leave, and reach above its start
  std::int64_t count = 1;

  const PassBytes& at(BucketEvent::When when) const {
    return bytes[static_cast<std::size_t>(when)];
  }
};

/// The buckets of a rank: of embedding, each layer, MTP modules with what leads in and out, head.
struct FsdpBuckets {
  std::vector<BucketRun> blocks;

  /// Of parameters and gradients, in bytes, when the last layer's backward pass begins.
  Bytes at_first_backward(std::int64_t layers) const;
};

/// Of a rank that holds the whole model, as a problem of Megatron-FSDP has it.
FsdpBuckets fsdp_buckets(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

/// Of them what is there at each moment in any sharding group that is no wider.
FsdpBuckets least_fsdp_buckets(const Problem& problem,
                               const WeightInventory& inventory,
                               const Stage& stage);

/// Parameters of what is in no layer, which stay gathered.
Bytes fsdp_gathered_ends(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

/// By how much any group that is no wider may gather less of that.
Bytes fsdp_padding_of_ends(const Problem& problem,
                           const WeightInventory& inventory,
                           const Stage& stage);

/// Parameters of the first bucket, which are there twice while it is made.
Bytes fsdp_first_bucket(const Problem& problem,
                        const WeightInventory& inventory,
                        const Stage& stage);

/// Parameters of layers that a step's end gathers for the next one, bucket by bucket.
std::vector<Bytes> fsdp_gathered_early(const Problem& problem,
                                       const WeightInventory& inventory,
                                       const Stage& stage);

/// The blocks of the rank's one chunk with these events.
Runs with_buckets(const Problem& problem, const Runs& runs, const std::vector<BucketRun>& blocks);

/// What the passes of a chunk of these blocks leave and need at most with them.
ChunkBytes chunk_bytes(const Problem& problem,
                       const ChunkProgram& chunk,
                       const RunsOfBytes& runs,
                       const std::vector<BucketRun>& blocks);

}  // namespace zeroplan
