// How do Megatron-FSDP's buckets stand among the events of blocks? Front door: with_buckets.
#include <algorithm>
#include <span>

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {
namespace {

using When = BucketEvent::When;

// Those of several layers in one block, whose passes go from layer to layer.
BucketsOfBlock of_group(std::span<const BucketsOfBlock> layers) {
  BucketsOfBlock group;
  const auto append = [&](const BucketsOfBlock& layer, When from, When to) {
    for (BucketEvent event : events_at(layer, from)) {
      event.when = to;
      group.push_back(event);
    }
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const When before = i == 0 ? When::before_forward : When::after_forward;
    append(layers[i], When::before_forward, before);
    append(layers[i], When::after_forward, When::after_forward);
  }
  for (std::size_t i = layers.size(); i-- > 0;) {
    for (const When when : {When::before_backward, When::mlp_weights, When::other_weights}) {
      append(layers[i], when, i + 1 == layers.size() ? when : When::after_backward);
    }
    append(layers[i], When::after_backward, When::after_backward);
  }
  return group;
}

// By blocks of several layers.
std::vector<BucketRun> grouped(const Problem& p, const std::vector<BucketRun>& runs) {
  const auto group = static_cast<std::size_t>(megatron_layers_of_block(p));
  std::vector<BucketsOfBlock> each;
  for (const BucketRun& run : runs)
    each.insert(each.end(), static_cast<std::size_t>(run.count), run.buckets);
  std::vector<BucketRun> blocks;
  const auto layers = static_cast<std::size_t>(p.model.layers);
  for (std::size_t i = 0; i < each.size();) {
    const bool is_layer = i > 0 && i <= layers;
    const std::size_t count = is_layer ? std::min(group, layers + 1 - i) : 1;
    blocks.emplace_back(of_group(std::span(each).subspan(i, count)));
    i += count;
  }
  return blocks;
}

// Calls `visit` with each block, the run that its events are of, and how many such pairs follow one
// another.
template <class AnyRuns, class Visit>
void visit_pairs(const Problem& problem,
                 const AnyRuns& runs,
                 const std::vector<BucketRun>& layers,
                 Visit&& visit) {
  const bool together = megatron_layers_of_block(problem) > 1;
  const std::vector<BucketRun> blocks =
      together ? grouped(problem, layers) : std::vector<BucketRun>{};
  auto events = together ? blocks.begin() : layers.begin();
  std::int64_t used = 0;
  for (const auto& run : runs) {
    for (std::int64_t left = run.count; left > 0;) {
      const std::int64_t count = std::min(left, events->count - used);
      visit(*run.block, *events, count);
      left -= count;
      used += count;
      if (used == events->count) {
        ++events;
        used = 0;
      }
    }
  }
}

// Made on the stream that gathers; gradients are made where they are computed.
constexpr Carried gathered_bucket{"gathered bucket", Category::communication_buffers,
                                  Stream::gather};
constexpr Carried gradient_bucket{"bucket of gradients", Category::communication_buffers};

// What the events of one moment are in the block, whose tensors they join.
std::vector<Event> written(Block& block, const BucketsOfBlock& buckets, When moment) {
  std::vector<Event> events;
  for (const auto& [when, of, made, bytes] : events_at(buckets, moment)) {
    const auto& [name, category, stream] =
        of == BucketEvent::parameters ? gathered_bucket : gradient_bucket;
    events.push_back({.index = static_cast<Tensor>(block.tensors.size()),
                      .kind = made ? Event::Kind::allocate : Event::Kind::free});
    block.tensors.push_back({name, bytes, category, stream, true});
  }
  return events;
}

void insert(std::vector<Event>& events,
            std::vector<Event>::iterator where,
            const std::vector<Event>& more) {
  events.insert(where, more.begin(), more.end());
}

Block with_buckets(Block block, const BucketsOfBlock& buckets) {
  std::vector<Event>& forward = block.forward;
  std::vector<Event>& backward = block.backward;
  insert(forward, forward.begin(), written(block, buckets, When::before_forward));
  insert(forward, forward.end(), written(block, buckets, When::after_forward));
  const auto [mlp, other] = first_weights(block);
  const auto insert_at = [&](std::size_t where, When when) {
    insert(backward, backward.begin() + static_cast<std::ptrdiff_t>(where),
           written(block, buckets, when));
  };
  // The later place first, which the earlier one would move.
  if (mlp <= other) insert_at(other, When::other_weights);
  insert_at(mlp, When::mlp_weights);
  if (mlp > other) insert_at(other, When::other_weights);
  insert(backward, backward.begin(), written(block, buckets, When::before_backward));
  insert(backward, backward.end(), written(block, buckets, When::after_backward));
  return block;
}

// Of passes whose input is their own, since there is no pipeline.
BlockBytes with_buckets(const BlockBytes& block, const BucketRun& buckets) {
  BlockBytes bytes{.output = block.output};
  PassBytes& forward = bytes.forward[BlockBytes::index({})];
  forward = buckets.at(When::before_forward);
  add_run(forward, block.forward[BlockBytes::index({})], 1);
  add_run(forward, buckets.at(When::after_forward), 1);
  const Bytes of_mlp = buckets.at(When::mlp_weights).left;
  const Bytes of_others = buckets.at(When::other_weights).left;
  const Bytes first = block.mlp_first ? of_mlp : of_others;
  for (const Borrowed borrowed : {Borrowed{}, Borrowed{.output_grad = true}}) {
    const std::size_t i = BlockBytes::index(borrowed);
    const auto& [before, between, after] = block.around_weights[i];
    const Bytes made = of_mlp + of_others;
    const PassBytes own(block.backward[i].left + made,
                        std::max({before, first + between, made + after}));
    PassBytes& pass = bytes.backward[i];
    pass = buckets.at(When::before_backward);
    add_run(pass, own, 1);
    add_run(pass, buckets.at(When::after_backward), 1);
  }
  return bytes;
}

}  // namespace

Runs with_buckets(const Problem& problem, const Runs& runs, const std::vector<BucketRun>& blocks) {
  Runs result;
  visit_pairs(
      problem, runs, blocks,
      [&](const FoldedBlock& block, const BucketRun& buckets, std::int64_t count) {
        result.push_back({folded(with_buckets(block.block(), buckets.buckets), block.loss), count});
      });
  return result;
}

ChunkBytes chunk_bytes(const Problem& problem,
                       const ChunkProgram& chunk,
                       const RunsOfBytes& runs,
                       const std::vector<BucketRun>& blocks) {
  boost::container::small_vector<BlockBytes, 16> sizes;
  RunsOfBytes pairs;
  visit_pairs(problem, runs, blocks,
              [&](const BlockBytes& block, const BucketRun& buckets, std::int64_t count) {
                sizes.push_back(with_buckets(block, buckets));
                pairs.push_back({nullptr, count});
              });
  for (std::size_t i = 0; i < sizes.size(); ++i) pairs[i].block = &sizes[i];
  return chunk_bytes(chunk, pairs);
}

}  // namespace zeroplan
