// What does a block take on its rank? Front door: BlockClock::times.
#include "cost_model/step/block_times.hpp"

#include <algorithm>
#include <iterator>

#include "cost_model/communication/layer_collectives.hpp"

namespace zeroplan {
namespace {

// Some 3 KB each.
constexpr std::size_t most_known = 10'000;

void add(LoadSeconds& seconds, const Problem& p, const std::vector<BlockCall>& calls) {
  for (const BlockCall& call : calls) seconds.add(timed_load(p, call.load));
}

bool has(const ModelSpec& model, LayerKind kind) {
  return layers_of_kind(model, 0, model.layers, kind) > 0;
}

}  // namespace

void LoadSeconds::add(const TimedLoad& load) {
  Directions& sum = load.behind == Behind::attention  ? ring
                    : load.behind == Behind::products ? products
                                                      : waited;
  sum.of(load.load.during) += load.seconds;
}

// All that blocks and the groups that divide them depend on, but for recompute. Of dp and pp
// nothing but whose layers run.
BlockClock::Key BlockClock::key(const Problem& problem) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {problem.cluster.gpus,
          l.tp,
          l.cp,
          l.ep,
          l.etp,
          l.micro_batch,
          number(l.sequence_parallel),
          number(runs_megatron_layers(problem)),
          t.sequence_length,
          number(t.precision),
          number(t.attention)};
}

BlockClock::Layer BlockClock::make_layer(const Problem& problem,
                                         LayerKind kind,
                                         TimedBlock& block) {
  Layer layer{.kernels = layer_kernels(problem, kind)};
  block.kernels = layer.kernels.once;
  for (const BlockCall& call : layer_calls(problem, kind)) {
    const TimedLoad load = timed_load(problem, call.load);
    if (call.repeated_by == 0) {
      block.loads.add(load);
      continue;
    }
    auto part = std::ranges::find(layer.loads, call.repeated_by, &RepeatedLoads::repeated_by);
    if (part == layer.loads.end()) {
      layer.loads.push_back({.repeated_by = call.repeated_by});
      part = std::prev(layer.loads.end());
    }
    part->seconds.add(load);
  }
  return layer;
}

void BlockClock::repeat(const Problem& problem,
                        LayerKind kind,
                        const Layer& layer,
                        TimedBlock& block) {
  const RepeatSet set = repeats(problem);
  block.kernels.recompute = layer.kernels.recompute(set);
  block.kernels.host = layer_host_time(problem, kind);
  block.repeated = {};
  for (const RepeatedLoads& part : layer.loads) {
    if ((part.repeated_by & set) != 0) block.repeated += part.seconds;
  }
}

BlockClock::Known BlockClock::make(const Problem& problem) {
  Known known;
  BlockTimes& times = known.times;
  // A kind that the model lacks has no sizes, and no time for them.
  if (has(problem.model, LayerKind::dense)) {
    known.dense = make_layer(problem, LayerKind::dense, times.dense);
  }
  if (has(problem.model, LayerKind::moe)) {
    known.moe = make_layer(problem, LayerKind::moe, times.moe);
  }
  times.embedding.kernels = embedding_time(problem);
  times.head.kernels = head_time(problem);
  add(times.embedding.loads, problem, embedding_calls(problem));
  add(times.head.loads, problem, head_calls(problem));
  if (trained_mtp_modules(problem) > 0) {
    times.mtp_ends.kernels = mtp_ends_time(problem);
    times.mtp_ends.loads = times.embedding.loads;
    times.mtp_ends.loads += times.head.loads;
    add(times.mtp_ends.loads, problem, mtp_projection_calls(problem));
  }
  return known;
}

const BlockTimes& BlockClock::times(const Problem& problem) {
  if (known_.size() > most_known) known_.clear();
  const auto [found, added] = known_.try_emplace(key(problem));
  Known& known = found->second;
  if (added) known = make(problem);
  const RepeatSet set = repeats(problem);
  if (added || known.repeats != set) {
    if (known.dense) repeat(problem, LayerKind::dense, *known.dense, known.times.dense);
    if (known.moe) repeat(problem, LayerKind::moe, *known.moe, known.times.moe);
    known.repeats = set;
  }
  return known.times;
}

}  // namespace zeroplan
