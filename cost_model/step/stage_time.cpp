// How long is a pipeline rank busy? Front door: stage_time.
#include "cost_model/step/stage_time.hpp"

#include <algorithm>

#include "cost_model/recomputed.hpp"
#include "cost_model/step/optimizer_time.hpp"

namespace zeroplan {
namespace {

// One chunk and one micro-batch, communication apart.
struct Work {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double attention_forward = 0;
  double attention_backward = 0;
  HostTime host;            // of the layers
  double ends_forward = 0;  // of these seconds, those of embedding and head
  double ends_backward = 0;

  double backward() const { return input_gradient + weight_gradient; }
  // With what layers wait for. While the host issues layers too slowly the GPU has caught up: the
  // head and the embedding come on top.
  double forward_with(double waited) const {
    return std::max(forward - ends_forward + waited, host.forward) + ends_forward;
  }
  double backward_with(double waited) const {
    return std::max(backward() - ends_backward + waited, host.backward) + ends_backward;
  }
};

void add_blocks(Work& work, const BlockTime& time, std::int64_t count, std::int64_t recomputed) {
  const auto n = static_cast<double>(count);
  const auto again = static_cast<double>(recomputed);
  work.forward += n * time.forward.total();
  work.input_gradient += n * time.input_gradient.total() + again * time.recompute.total();
  work.weight_gradient += n * time.weight_gradient.total();
  work.attention_forward += n * time.forward.attention;
  work.attention_backward += n * time.input_gradient.attention + again * time.recompute.attention;
  work.host.forward += n * time.host.forward;
  work.host.backward += n * time.host.backward;
}

void add_end(Work& work, const BlockTime& time) {
  add_blocks(work, time, 1, 0);
  work.ends_forward += time.forward.total();
  work.ends_backward += time.input_gradient.total() + time.weight_gradient.total();
}

Work work_of(const Problem& p, const BlockTimes& blocks, const Stage& chunk) {
  Work work;
  if (chunk.embedding) add_end(work, blocks.embedding);
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const std::int64_t count = layer_count(p.model, chunk, kind);
    add_blocks(work, blocks.layer(kind), count, recomputed_layers(p, chunk, count));
  }
  if (chunk.head) add_end(work, blocks.head);
  return work;
}

// Chunks of the stage as stages of their own.
std::vector<Stage> chunks_of(const Problem& p, const Stage& stage) {
  std::vector<Stage> chunks;
  for (const LayerRange& range : stage.chunks) {
    chunks.push_back({.chunks = {range},
                      .embedding = stage.embedding && range.first == 0,
                      .head = stage.head && range.last == p.model.layers});
  }
  return chunks;
}

// Seconds of the passes of one direction.
struct Directions {
  double forward = 0;
  double backward = 0;

  double& of(During during) { return during == During::forward ? forward : backward; }
};

// What the loads of one chunk add to each of its passes.
Directions exposed_by_layers(const Problem& p, const Work& work, const Stage& chunk) {
  const auto passes = static_cast<double>(forward_passes(p));
  Directions waited;
  Directions ring;
  Directions linears;
  for (const TimedLoad& load : timed_loads(p, layer_collectives(p, chunk))) {
    Directions& sum = load.behind == Behind::attention  ? ring
                      : load.behind == Behind::products ? linears
                                                        : waited;
    sum.of(load.load.during) += load.seconds / passes;
  }
  waited.forward += exposed_beside(ring.forward, work.attention_forward);
  waited.backward += exposed_beside(ring.backward, work.attention_backward) +
                     exposed_beside(linears.backward, work.weight_gradient);
  return waited;
}

class StageClock {
 public:
  StageClock(const Problem& p,
             const WeightInventory& inventory,
             const BlockTimes& blocks,
             const Stage& stage)
      : p_(p), passes_(static_cast<double>(forward_passes(p))) {
    for (const Stage& chunk : chunks_of(p, stage)) add_chunk(work_of(p, blocks, chunk), chunk);
    time_.loads = timed_loads(p, step_collectives(p, inventory, stage));
    add_pass_loads();
    add_step_loads();
    time_.optimizer =
        optimizer_seconds(p, stage_elements(p, inventory, stage, state_recipe(p).padding));
  }

  StageTime take() { return std::move(time_); }

 private:
  void add_chunk(const Work& work, const Stage& chunk) {
    const Directions waited = exposed_by_layers(p_, work, chunk);
    const double forward = work.forward_with(waited.forward);
    const double backward = work.backward_with(waited.backward);
    time_.chunks.push_back({.forward = forward,
                            .input_gradient = backward - work.weight_gradient,
                            .weight_gradient = work.weight_gradient});
    once_.forward += forward;
    once_.backward += backward;
    time_.computed += passes_ * (forward - waited.forward + backward - waited.backward);
    attention_.forward += work.attention_forward;
    attention_.backward += work.attention_backward;
    products_ += work.weight_gradient;
  }

  // Exposes part of the loads of one direction, in proportion to their seconds.
  void expose(Behind behind, During during, double all, double exposed) {
    if (all <= 0) return;
    for (TimedLoad& load : time_.loads) {
      if (load.behind != behind || load.load.during != during) continue;
      load.exposed = load.seconds / all * exposed;
    }
  }

  double seconds(Behind behind, During during) const {
    double sum = 0;
    for (const TimedLoad& load : time_.loads) {
      if (load.behind == behind && load.load.during == during) sum += load.seconds;
    }
    return sum;
  }

  // What runs beside a pass of all chunks; each chunk gets its part of what is left.
  void add_pass_loads() {
    for (const During during : {During::forward, During::backward}) {
      const double ring = seconds(Behind::attention, during);
      expose(Behind::attention, during, ring,
             passes_ * exposed_beside(ring / passes_, attention_.of(during)));
      const double linears = seconds(Behind::products, during);
      expose(Behind::products, during, linears,
             passes_ * exposed_beside(linears / passes_, products_));
      const double waited = seconds(Behind::nothing, during);
      expose(Behind::nothing, during, waited, waited);
      const double all = seconds(Behind::pass, during);
      const double pass = once_.of(during);
      const double exposed = exposed_beside(all / passes_, pass);
      expose(Behind::pass, during, all, passes_ * exposed);
      for (PassTime& chunk : time_.chunks) {
        if (during == During::forward) {
          chunk.forward += exposed * chunk.forward / pass;
        } else {
          chunk.input_gradient += exposed * chunk.backward() / pass;
        }
      }
    }
  }

  void add_step_loads() {
    for (TimedLoad& load : time_.loads) {
      if (load.load.during != During::step) continue;
      switch (load.behind) {
        case Behind::last_backward:
          load.exposed = exposed_beside(load.seconds, once_.backward);
          break;
        case Behind::first_forward:
          load.exposed = exposed_beside(load.seconds, once_.forward);
          break;
        default:
          load.exposed = load.seconds;
      }
      const bool gather = load.load.collective == Collective::all_gather;
      (gather ? time_.gathers : time_.reductions) += load.exposed;
    }
  }

  const Problem& p_;
  double passes_;
  Directions once_;  // all chunks, one micro-batch
  Directions attention_;
  double products_ = 0;  // weight gradients of all chunks, one micro-batch
  StageTime time_;
};

}  // namespace

BlockTimes block_times(const Problem& problem) {
  const ModelSpec& model = problem.model;
  BlockTimes times{.embedding = embedding_time(problem), .head = head_time(problem)};
  // A kind that the model lacks has no sizes, and no time for them.
  if (layers_of_kind(model, 0, model.layers, LayerKind::dense) > 0) {
    times.dense = layer_time(problem, LayerKind::dense);
  }
  if (layers_of_kind(model, 0, model.layers, LayerKind::moe) > 0) {
    times.moe = layer_time(problem, LayerKind::moe);
  }
  return times;
}

double StageTime::exposed() const {
  double sum = 0;
  for (const TimedLoad& load : loads) sum += load.exposed;
  return sum;
}

StageTime stage_time(const Problem& problem,
                     const WeightInventory& inventory,
                     const BlockTimes& blocks,
                     const Stage& stage) {
  return StageClock(problem, inventory, blocks, stage).take();
}

}  // namespace zeroplan
