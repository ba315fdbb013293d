// What does a block take on its rank? Front door: BlockClock::times.
#include "cost_model/pipeline/block_times.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cost_model/pipeline/host_update.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

// The entries that a cache holds before it is emptied, some 2 KB each. A search asks for what is
// alike in a row, so that 4,000 took a quarter more memory and no less time.
constexpr std::size_t most_known = 1'000;

LoadSeconds timed(const Problem& p,
                  const std::vector<Call>& calls,
                  LayerPart part = LayerPart::whole) {
  LoadSeconds seconds;
  for (const CollectiveLoad& load : loads_of(p, calls, part)) {
    seconds.add(p.cluster, timed_load(p, load));
  }
  return seconds;
}

// What a block reads that expert parallelism does not divide.
using CommonInputs = Inputs<&Layout::tp,
                            &Layout::cp,
                            &Layout::micro_batch,
                            &Layout::sequence_parallel,
                            &Layout::tp_overlap,
                            &TrainingSpec::sequence_length,
                            &TrainingSpec::precision,
                            &TrainingSpec::attention>;
// What the routed experts of a block read.
using RoutedInputs = Inputs<&Layout::tp,
                            &Layout::cp,
                            &Layout::ep,
                            &Layout::etp,
                            &Layout::micro_batch,
                            &Layout::sequence_parallel,
                            &Layout::tp_overlap,
                            &TrainingSpec::sequence_length,
                            &TrainingSpec::precision,
                            &TrainingSpec::attention>;

// What the keys hold in other words: of dp and pp the number of GPUs and whose layers run, of
// recompute what it repeats; and, which no routed expert reads, of the schedule and the loss in how
// many parts it runs.
Layout base_of(const Layout& l, LayerPart part) {
  Layout base{.dp = l.dp,
              .pp = l.pp,
              .recompute = l.recompute,
              .recompute_layers = l.recompute_layers,
              .recompute_modules = l.recompute_modules};
  if (part == LayerPart::routed) return base;
  base.schedule = l.schedule;
  base.loss_chunks = l.loss_chunks;
  return base;
}

// What a layer takes to reach the host's memory, and to come back.
double copy_seconds(const Problem& p, LayerKind kind) {
  const Bytes moved = code_of(p).moved_to_host(p, kind);
  return moved == Bytes{} ? 0 : static_cast<double>(moved.count()) / host_link_bandwidth(p.cluster);
}

}  // namespace

void LoadSeconds::add(const ClusterSpec& cluster, const TimedLoad& load) {
  Directions& sum = load.behind == Behind::attention    ? ring
                    : load.behind == Behind::products   ? products
                    : load.behind == Behind::parts      ? parts
                    : load.behind == Behind::other_pass ? other_pass
                                                        : waited;
  sum.at(load.load.during) += load.seconds;
  if (!load.between) return;
  const auto who = sending(cluster, load.load.group, *load.between);
  if (!who) return;
  SentKind kind{.who = *who, .waited = &sum == &waited};
  kind.seconds.at(load.load.during) = load.seconds;
  between.add(kind);
}

BlockClock::Key BlockClock::key(const Problem& problem, LayerPart part) {
  const std::int64_t gpus = problem.cluster.gpus;
  const bool megatron = runs_megatron_layers(problem);
  if (part == LayerPart::routed) return RoutedInputs(problem).with(gpus, megatron, 0);
  return CommonInputs(problem).with(gpus, megatron, loss_parts(problem).count, 0, 0);
}

const Problem& BlockClock::only(const Problem& problem, LayerPart part) const {
  const Layout base = base_of(problem.layout, part);
  return part == LayerPart::routed ? only_(RoutedInputs(problem), base)
                                   : only_(CommonInputs(problem), base);
}

BlockClock::RepeatSets BlockClock::sets(const Problem& problem) {
  return {repeats(problem), repeated_layers(problem).others};
}

bool BlockClock::has_routed_experts(const WeightInventory& inventory, bool wide) {
  return std::ranges::any_of(all_layer_kinds, [&](LayerKind kind) {
    return has_experts(kind) && is_wide(kind) == wide && inventory.has(kind);
  });
}

BlockClock::Layer::Layer(const BlockClock& clock,
                         const Problem& problem,
                         LayerKind kind,
                         LayerPart part)
    : clock_(clock), kind_(kind), part_(part), modules_(module_times(problem, kind, part)) {
  Block block = code_of(problem).block(problem, clock.inventory_, BlockKind::layer, kind, 0);
  timed_.kernels = fold_layer(problem, block, modules_, part);
  timed_.loads = zeroplan::timed(problem, block.calls, part);
  once_ = block.calls;  // no longer than they are: thousands of layers are known
  reuse(std::move(block));
  modules_.shrink_to_fit();
}

const TimedBlock& BlockClock::Layer::timed(const Problem& problem) {
  const RepeatSets sets = BlockClock::sets(problem);
  if (repeats_ == sets) return timed_;
  repeats_ = sets;
  const RepeatTimes again = repeated(problem, sets.first);
  timed_.kernels.recompute = again.kernels;
  timed_.repeated = again.loads;
  timed_.lesser.reset();
  if (sets.second != 0) timed_.lesser = repeated(problem, sets.second);
  timed_.kernels.host = layer_host_wait(problem, kind_, modules_);
  if (has_rest(part_)) {
    timed_.kernels.host += layer_host_time(problem, kind_);
    timed_.kernels.host.raise(copy_seconds(problem, kind_));
  }
  return timed_;
}

RepeatTimes BlockClock::Layer::repeated(const Problem& asked, RepeatSet set) {
  const auto known = std::ranges::find(repeated_, set, &Repeated::set);
  if (known != repeated_.end()) return known->times;
  RepeatTimes sum;
  const RepeatSet all = repeated_in(part_, without_contained(set));
  for (RepeatSet left = all; left != 0; left &= left - 1) {
    const RepeatSet one = left & ~(left - 1);
    sum += one == set ? written(asked, one) : repeated(asked, one);
  }
  return repeated_.emplace_back(Repeated{set, sum}).times;
}

// What running `set` again takes, from the block that repeats it.
RepeatTimes BlockClock::Layer::written(const Problem& asked, RepeatSet set) const {
  const Problem& problem = clock_.only(asked, part_);
  Block block = code_of(problem).block(problem, clock_.inventory_, BlockKind::layer, kind_, set);
  const RepeatTimes times{fold_layer(problem, block, modules_, part_).recompute,
                          zeroplan::timed(problem, calls_beyond(block.calls, once_), part_)};
  reuse(std::move(block));
  return times;
}

BlockClock::Common::Common(const BlockClock& clock, const Problem& problem) {
  const WeightInventory& inventory = clock.inventory_;
  // A kind that the model lacks has no sizes, and no time for them.
  for (const LayerKind kind : all_layer_kinds) {
    if (!inventory.has(kind)) continue;
    layers[kind] = std::make_unique<Layer>(clock, problem, kind,
                                           has_experts(kind) ? LayerPart::rest : LayerPart::whole);
  }
  const auto end = [&](BlockKind kind, const ModuleTimes& times) {
    Block block = code_of(problem).block(problem, inventory, kind, LayerKind::dense, 0);
    TimedBlock timed{fold_kernels(block, times), zeroplan::timed(problem, block.calls), {}};
    reuse(std::move(block));
    return timed;
  };
  embedding = end(BlockKind::embedding, embedding_times(problem));
  head = end(BlockKind::head, head_times(problem));
  if (trained_mtp_modules(problem) == 0) return;
  mtp_ends = end(BlockKind::mtp_input, mtp_input_times(problem));
  mtp_ends += head;
}

const TimedBlock& BlockClock::layer(const Problem& problem, LayerKind kind) {
  const std::unique_ptr<Layer>& rest = last_common_->layers[kind];
  if (!has_experts(kind)) return rest->timed(problem);
  TimedBlock& whole = with_experts_[kind];
  const RepeatSets sets = BlockClock::sets(problem);
  if (repeats_[kind] == sets) return whole;
  repeats_[kind] = sets;
  whole = rest->timed(problem);
  return whole += last_routed_[is_wide(kind)]->timed(problem);
}

BlockTimes BlockClock::times(const Problem& problem) {
  const Key asked = key(problem, LayerPart::routed);
  const std::int64_t parts = loss_parts(problem).count;
  if (asked != asked_ || parts != asked_parts_) {
    const auto find = [&](auto& known, LayerPart part, auto... what) {
      if (known.size() > most_known) known.clear();
      const Key own = key(problem, part);
      const auto found = known.find(own);
      return found != known.end()
                 ? &found->second
                 : &known.try_emplace(own, *this, only(problem, part), what...).first->second;
    };
    last_common_ = find(common_, LayerPart::rest);
    for (const bool wide : {false, true}) {
      if (!routes_[wide]) continue;
      const LayerKind kind = wide ? LayerKind::wide_moe : LayerKind::moe;
      last_routed_[wide] = find(routed_[wide], LayerPart::routed, kind, LayerPart::routed);
    }
    repeats_ = {};
    asked_ = asked;
    asked_parts_ = parts;
  }
  ByKind<const TimedBlock*> layers;
  for (const LayerKind kind : all_layer_kinds) {
    layers[kind] = inventory_.has(kind) ? &layer(problem, kind) : &nothing_;
  }
  return {.layers = layers,
          .embedding = last_common_->embedding,
          .head = last_common_->head,
          .mtp_ends = last_common_->mtp_ends};
}

}  // namespace zeroplan
