// How do Megatron-FSDP's buckets stand among the events of blocks? Front door: with_buckets.
#include <algorithm>
#include <span>

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {
namespace {

void append(BucketEvents& to, const BucketEvents& events) {
  to.insert(to.end(), events.begin(), events.end());
}

// Those of several layers in one block, whose passes go from layer to layer.
BucketsOfBlock of_group(std::span<const BucketsOfBlock> layers) {
  BucketsOfBlock group{.before_forward = layers.front().before_forward,
                       .before_backward = layers.back().before_backward,
                       .at_mlp_weights = layers.back().at_mlp_weights,
                       .at_other_weights = layers.back().at_other_weights};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) append(group.after_forward, layers[i].before_forward);
    append(group.after_forward, layers[i].after_forward);
  }
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (i + 1 < layers.size()) {
      append(group.after_backward, layers[i].before_backward);
      append(group.after_backward, layers[i].at_mlp_weights);
      append(group.after_backward, layers[i].at_other_weights);
    }
    append(group.after_backward, layers[i].after_backward);
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
    blocks.push_back({of_group(std::span(each).subspan(i, count))});
    i += count;
  }
  return blocks;
}

// Calls `visit` with each block, its events, and how many such pairs follow one another.
template <class Visit>
void visit_pairs(const Problem& problem,
                 const Runs& runs,
                 const std::vector<BucketRun>& layers,
                 Visit&& visit) {
  const bool together = megatron_layers_of_block(problem) > 1;
  const std::vector<BucketRun> blocks =
      together ? grouped(problem, layers) : std::vector<BucketRun>{};
  auto events = together ? blocks.begin() : layers.begin();
  std::int64_t used = 0;
  for (const Run& run : runs) {
    for (std::int64_t left = run.count; left > 0;) {
      const std::int64_t count = std::min(left, events->count - used);
      visit(run.block, events->buckets, count);
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

// What these events are in the block, whose tensors they join.
std::vector<Event> written(Block& block, const BucketEvents& buckets) {
  std::vector<Event> events;
  for (const auto& [of, made, bytes] : buckets) {
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
  insert(forward, forward.begin(), written(block, buckets.before_forward));
  insert(forward, forward.end(), written(block, buckets.after_forward));
  const auto [mlp, other] = first_weights(block);
  const auto insert_at = [&](std::size_t place, const BucketEvents& events) {
    insert(backward, backward.begin() + static_cast<std::ptrdiff_t>(place), written(block, events));
  };
  // The later place first, which the earlier one would move.
  if (mlp <= other) insert_at(other, buckets.at_other_weights);
  insert_at(mlp, buckets.at_mlp_weights);
  if (mlp > other) insert_at(other, buckets.at_other_weights);
  insert(backward, backward.begin(), written(block, buckets.before_backward));
  insert(backward, backward.end(), written(block, buckets.after_backward));
  return block;
}

// The bytes of a pass so far, and its highest moment.
struct Height {
  Bytes live, highest;

  void move(const BucketEvents& events) {
    for (const BucketEvent& e : events) move(e.change());
  }
  void move(Bytes change) {
    live += change;
    highest = std::max(highest, live);
  }
  // What stands so high above where a pass of a block began.
  void reach(Bytes begin, Bytes above) { highest = std::max(highest, begin + above); }
};

BlockBytes with_buckets(const BlockBytes& block, const BucketsOfBlock& buckets) {
  BlockBytes bytes = block;
  for (PassBytes& pass : bytes.forward) {
    Height height;
    height.move(buckets.before_forward);
    height.reach(height.live, pass.peak);
    height.live += pass.left;
    height.move(buckets.after_forward);
    pass.left = height.live;
    pass.peak = height.highest;
  }
  for (std::size_t i = 0; i < bytes.backward.size(); ++i) {
    PassBytes& pass = bytes.backward[i];
    Height height;
    height.move(buckets.before_backward);
    const auto& [before, between, after] = block.around_weights[i];
    const auto make = [&](const BucketEvents& events) {
      for (const BucketEvent& e : events) height.live += e.bytes;
    };
    height.reach(height.live, before);
    make(block.mlp_first ? buckets.at_mlp_weights : buckets.at_other_weights);
    height.reach(height.live, between);
    make(block.mlp_first ? buckets.at_other_weights : buckets.at_mlp_weights);
    height.reach(height.live, after);
    height.live += pass.left;
    height.move(buckets.after_backward);
    pass.left = height.live;
    pass.peak = height.highest;
  }
  return bytes;
}

}  // namespace

Runs with_buckets(const Problem& problem, const Runs& runs, const std::vector<BucketRun>& blocks) {
  Runs result;
  visit_pairs(problem, runs, blocks,
              [&](const std::shared_ptr<const FoldedBlock>& block, const BucketsOfBlock& buckets,
                  std::int64_t count) {
                result.push_back({folded(with_buckets(block->block, buckets), block->loss), count});
              });
  return result;
}

ChunkBytes chunk_bytes(const Problem& problem,
                       const ChunkProgram& chunk,
                       const std::vector<BucketRun>& blocks) {
  // Each run of either list begins one, and each group of several layers.
  const std::size_t usual = chunk.runs.size() + blocks.size();
  std::vector<BlockBytes> sizes;
  std::vector<RunOfBytes> runs;
  sizes.reserve(usual);
  runs.reserve(usual);
  visit_pairs(problem, chunk.runs, blocks,
              [&](const std::shared_ptr<const FoldedBlock>& block, const BucketsOfBlock& buckets,
                  std::int64_t count) {
                sizes.push_back(with_buckets(block->bytes, buckets));
                runs.push_back({nullptr, count});
              });
  for (std::size_t i = 0; i < sizes.size(); ++i) runs[i].block = &sizes[i];
  return chunk_bytes(chunk, runs);
}

}  // namespace zeroplan
