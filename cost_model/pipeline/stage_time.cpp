// How long is a pipeline rank busy? Front door: stage_time.
#include "cost_model/pipeline/stage_time.hpp"

#include <algorithm>

#include "cost_model/pipeline/optimizer_time.hpp"
#include "cost_model/pipeline/sharding_copies.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

// The work of one chunk and one micro-batch, in seconds.
struct Work {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  Directions attention;
  HostTime host;    // of the layers
  Directions ends;  // of the passes' seconds, those of embedding and head
  LoadSeconds loads;

  double backward() const { return input_gradient + weight_gradient; }
  // Seconds of a pass with what layers wait for. While the host issues layers too slowly the GPU
  // has caught up: the head and the embedding come on top.
  double forward_with(double waited) const {
    return std::max(forward - ends.forward + waited, host.forward) + ends.forward;
  }
  double backward_with(double waited) const {
    return std::max(backward() - ends.backward + waited, host.backward) + ends.backward;
  }
};

void add_blocks(Work& work,
                const TimedBlock& block,
                std::int64_t count,
                std::int64_t recomputed = 0) {
  const auto n = static_cast<double>(count);
  const auto again = static_cast<double>(recomputed);
  const BlockTime& time = block.kernels;
  work.forward += n * time.forward.total();
  work.input_gradient += n * time.input_gradient.total() + again * time.recompute.total();
  work.weight_gradient += n * time.weight_gradient.total();
  work.attention += {n * time.forward.attention,
                     n * time.input_gradient.attention + again * time.recompute.attention};
  work.host.forward += n * time.host.forward;
  work.host.backward += n * time.host.backward;
  work.loads += n * block.loads;
  if (recomputed > 0) work.loads += again * block.repeated;
  if (!block.lesser) return;
  const double lesser = n - again;
  work.input_gradient += lesser * block.lesser->kernels.total();
  work.attention.backward += lesser * block.lesser->kernels.attention;
  work.loads += lesser * block.lesser->loads;
}

void add_end(Work& work, const TimedBlock& block) {
  add_blocks(work, block, 1);
  const BlockTime& time = block.kernels;
  work.ends += {time.forward.total(), time.input_gradient.total() + time.weight_gradient.total()};
}

Work work_of(const Problem& p, const BlockTimes& blocks, const Stage& chunk) {
  Work work;
  if (chunk.embedding) add_end(work, blocks.embedding);
  const LayerRange& layers = chunk.chunks.front();
  const ByKind<std::int64_t> counts = layers_by_kind(p.model, layers.first, layers.last);
  for (const LayerKind kind : all_layer_kinds) {
    const std::int64_t count = counts[kind];
    if (count == 0) continue;
    add_blocks(work, blocks.layer(kind), count, recomputed_layers(p, layers, kind, count));
  }
  if (!chunk.head) return work;
  for (std::int64_t i = 0; i < trained_mtp_modules(p); ++i) {
    for (const auto& [kind, repeated] : mtp_layers(p)) {
      add_blocks(work, blocks.layer(kind), 1, repeated ? 1 : 0);
    }
    add_end(work, blocks.mtp_ends);
  }
  add_end(work, blocks.head);
  return work;
}

// What the loads of one chunk add to each of its passes.
Directions exposed_by_layers(const Work& work, const Problem& p) {
  const GpuSpec& gpu = p.cluster.gpu;
  Directions waited = work.loads.waited;
  const Directions passes{work.forward, work.backward()};
  for (const During during : {During::forward, During::backward}) {
    waited.at(during) += exposed_in_parts(work.loads.parts.at(during), passes.at(during), p) +
                         exposed_beside(work.loads.other_pass.at(during), passes.at(during), gpu);
  }
  waited += {exposed_beside(work.loads.ring.forward, work.attention.forward, gpu),
             exposed_beside(work.loads.ring.backward, work.attention.backward, gpu) +
                 exposed_beside(work.loads.products.backward, work.weight_gradient, gpu)};
  return waited;
}

// Seconds of the loads that run beside the same work in the same part of a step.
double seconds(const std::vector<TimedLoad>& loads, Behind behind, During during) {
  double sum = 0;
  for (const TimedLoad& load : loads) {
    if (load.behind == behind && load.load.during == during) sum += load.seconds;
  }
  return sum;
}

// Exposes part of the loads that run beside the same work in the same part of a step, in proportion
// to their seconds.
void expose(
    std::vector<TimedLoad>& loads, Behind behind, During during, double all, double exposed) {
  if (all <= 0) return;
  for (TimedLoad& load : loads) {
    if (load.behind != behind || load.load.during != during) continue;
    load.exposed = load.seconds / all * exposed;
  }
}

// Seconds of one layer of a load that travels beside the pass whose layers it brings; else none.
double seconds_of_layer(const TimedLoad& load, Behind behind) {
  const std::int64_t layers = load.load.layers;
  return behind == Behind::pass && layers > 0 ? load.seconds / static_cast<double>(layers) : 0;
}

void add_at_end(UpdateLoads& loads, const TimedLoad& load, Behind behind) {
  const bool gathers = load.load.collective == Collective::all_gather;
  if (behind == Behind::last_backward || behind == Behind::first_forward) {
    loads.hidden.push_back({load.seconds, gathers, behind == Behind::first_forward});
  } else {
    (gathers ? loads.at_end.gathers : loads.at_end.reductions) += load.seconds;
  }
}

// What each load adds to the passes, or to the end of the step. `update`: of all these loads.
void expose_all(const Problem& p,
                const StagePasses& passes,
                const UpdateLoads& update,
                std::vector<TimedLoad>& loads) {
  const auto times = static_cast<double>(forward_passes(p));
  for (const During during : {During::forward, During::backward}) {
    const auto beside = [&](Behind behind, double work) {
      const double all = seconds(loads, behind, during);
      expose(loads, behind, during, all, times * exposed_beside(all / times, work, p.cluster.gpu));
    };
    beside(Behind::attention, passes.attention.at(during));
    beside(Behind::products, passes.products);
    const double waited = seconds(loads, Behind::nothing, during);
    expose(loads, Behind::nothing, during, waited, waited);
    const double in_pass = seconds(loads, Behind::pass, during);
    double layer = 0;
    for (const TimedLoad& load : loads) {
      if (load.load.during == during) layer += seconds_of_layer(load, load.behind);
    }
    expose(loads, Behind::pass, during, in_pass,
           times * exposed_beside_chunks(in_pass / times, layer / times, passes.chunks.size(),
                                         passes.once.at(during), p.cluster.gpu,
                                         crowding(p.cluster, update.sent, passes.between,
                                                  {.during = during,
                                                   .seconds = passes.once.at(during),
                                                   .beside = in_pass / times})));
    beside(Behind::other_pass, passes.once.at(during));
    const double parts = seconds(loads, Behind::parts, during);
    expose(loads, Behind::parts, during, parts,
           times * exposed_in_parts(parts / times, passes.once.at(during), p));
  }
  UpdateLoads at_end{.sent = update.sent};
  for (const TimedLoad& load : loads) {
    if (load.load.during == During::step) add_at_end(at_end, load, load.behind);
  }
  const double in_forward = exposed_part(at_end, true, passes, p.cluster);
  const double in_backward = exposed_part(at_end, false, passes, p.cluster);
  for (TimedLoad& load : loads) {
    if (load.load.during != During::step) continue;
    load.exposed = load.seconds * (load.behind == Behind::first_forward   ? in_forward
                                   : load.behind == Behind::last_backward ? in_backward
                                                                          : 1);
  }
}

// Adds the messages to the neighbours and from them, one of each chunk and direction at a time.
void add_messages(const Problem& p, StagePasses& passes) {
  for (const RankGroup& group : rank_groups(p)) {
    if (group.name != "pp") continue;
    const TimedLoad message = timed_load(p, {.group = group,
                                             .collective = Collective::send_recv,
                                             .calls = 1,
                                             .payload = pipeline_message(p)});
    if (!message.between) return;
    const auto who = sending(p.cluster, group, *message.between);
    if (!who) return;
    const double seconds = static_cast<double>(passes.chunks.size()) * message.seconds;
    passes.between.add({.who = *who, .seconds = {seconds, seconds}});
  }
}

}  // namespace

double StageTime::exposed() const {
  double sum = 0;
  for (const TimedLoad& load : loads) sum += load.exposed;
  return sum;
}

ChunkTime chunk_time(const Problem& problem, const BlockTimes& blocks, const Stage& chunk) {
  const Work work = work_of(problem, blocks, chunk);
  const Directions waited = exposed_by_layers(work, problem);
  const double backward = work.backward_with(waited.backward);
  // The host issues both parts of a backward pass too slowly.
  const double late = std::max(0.0, backward - work.backward() - waited.backward);
  const double weights =
      late > 0 ? work.weight_gradient * (1 + late / work.backward()) : work.weight_gradient;
  ChunkTime time{.once = {work.forward_with(waited.forward), backward},
                 .waited = waited,
                 .attention = work.attention,
                 .products = work.weight_gradient,
                 .between = work.loads.between};
  time.pass = {.forward = time.once.forward,
               .input_gradient = backward - weights,
               .weight_gradient = weights};
  return time;
}

StagePasses stage_passes(const Problem& problem, std::span<const ChunkTime* const> chunks) {
  const auto passes = static_cast<double>(forward_passes(problem));
  StagePasses all;
  all.chunks.reserve(chunks.size());
  for (const ChunkTime* chunk : chunks) {
    all.chunks.push_back(chunk->pass);
    all.once += chunk->once;
    all.computed += passes * (chunk->once.forward - chunk->waited.forward + chunk->once.backward -
                              chunk->waited.backward);
    all.attention += chunk->attention;
    all.products += chunk->products;
    all.between += chunk->between;
  }
  if (problem.cluster.fabric) add_messages(problem, all);
  return all;
}

StageUpdate stage_update(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const std::vector<CollectiveLoad>& loads) {
  const StageElements elements =
      stage_elements(problem, inventory, stage, state_recipe(problem).padding);
  StageUpdate update{.loads = timed_loads(problem, loads),
                     .optimizer = optimizer_seconds(problem, inventory, stage, elements)};
  for (const During during : {During::forward, During::backward}) {
    update.copies.at(during) = sharding_copies_seconds(problem, elements.full(), during);
  }
  return update;
}

UpdateLoads update_loads(const Problem& problem, const StageUpdate& update) {
  UpdateLoads loads{.optimizer = update.optimizer};
  Directions beside, layer, waited;  // of a step
  const auto times = static_cast<double>(forward_passes(problem));
  for (const TimedLoad& load : update.loads) {
    const Behind behind = hidden_behind(problem, load.load);
    if (const auto sent = sent_beside(problem.cluster, load, behind, times)) {
      loads.sent.push_back(*sent);
    }
    if (load.load.during == During::step) {
      add_at_end(loads, load, behind);
    } else {
      (behind == Behind::pass ? beside : waited).at(load.load.during) += load.seconds;
      layer.at(load.load.during) += seconds_of_layer(load, behind);
    }
  }
  for (const During during : {During::forward, During::backward}) {
    loads.beside.at(during) = beside.at(during) / times;
    loads.layer.at(during) = layer.at(during) / times;
    loads.waited.at(during) = update.copies.at(during) + waited.at(during) / times;
    loads.in_passes |= loads.beside.at(during) > 0 || loads.waited.at(during) > 0;
  }
  return loads;
}

StageTime stage_time(const Problem& problem,
                     const StagePasses& passes,
                     const StageUpdate& update,
                     const std::vector<CollectiveLoad>& sent) {
  const UpdateLoads sums = update_loads(problem, update);
  const AtEnd at_end = exposed_at_end(sums, passes, problem.cluster);
  const double copies = update.copies.forward + update.copies.backward;
  StageTime time{
      .computed = passes.computed + static_cast<double>(forward_passes(problem)) * copies,
      .reductions = at_end.reductions,
      .optimizer = update.optimizer,
      .gathers = at_end.gathers,
      .loads = timed_loads(problem, sent)};
  const Directions part = added_part(sums, passes, problem.cluster);
  for (const PassTime& chunk : passes.chunks) time.chunks.push_back(longer(chunk, part));
  for (TimedLoad load : update.loads) {
    load.behind = hidden_behind(problem, load.load);
    time.loads.push_back(load);
  }
  expose_all(problem, passes, sums, time.loads);
  return time;
}

}  // namespace zeroplan
