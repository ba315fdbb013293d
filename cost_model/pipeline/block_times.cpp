// What does a block take on its rank? Front door: BlockClock::times.
#include "cost_model/pipeline/block_times.hpp"

#include <algorithm>
#include <iterator>

#include "cost_model/rank/loss_parts.hpp"

namespace zeroplan {
namespace {

// Some 2 KB each.
constexpr std::size_t most_known = 10'000;

LoadSeconds timed(const Problem& p,
                  const std::vector<Call>& calls,
                  LayerPart part = LayerPart::whole) {
  LoadSeconds seconds;
  for (const CollectiveLoad& load : loads_of(p, calls, part)) seconds.add(timed_load(p, load));
  return seconds;
}

// What blocks and the groups that divide them depend on, but for recompute. Of dp and pp nothing
// but whose layers run.
Numbers<12> key(const Problem& problem, std::int64_t ep, std::int64_t etp) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {problem.cluster.gpus,
          l.tp,
          l.cp,
          ep,
          etp,
          l.micro_batch,
          number(l.sequence_parallel),
          number(runs_megatron_layers(problem)),
          t.sequence_length,
          number(t.precision),
          number(t.attention),
          loss_parts(problem).count};
}

template <class Known, class... Arguments>
auto& find_or_make(Known& known, const Numbers<12>& key, const Arguments&... arguments) {
  if (known.size() > most_known) known.clear();
  return known.try_emplace(key, arguments...).first->second;
}

}  // namespace

void LoadSeconds::add(const TimedLoad& load) {
  Directions& sum = load.behind == Behind::attention    ? ring
                    : load.behind == Behind::products   ? products
                    : load.behind == Behind::parts      ? parts
                    : load.behind == Behind::other_pass ? other_pass
                                                        : waited;
  sum.of(load.load.during) += load.seconds;
}

BlockClock::Layer::Layer(const Problem& problem,
                         const WeightInventory& inventory,
                         LayerKind kind,
                         LayerPart part)
    : inventory_(inventory),
      kind_(kind),
      part_(part),
      kernels_(layer_kernels(problem, kind, part)),
      once_(calls_of_block(problem, inventory, BlockKind::layer, kind)) {
  timed_.kernels = kernels_.once;
  timed_.loads = zeroplan::timed(problem, once_, part);
}

const TimedBlock& BlockClock::Layer::timed(const Problem& problem) {
  const RepeatSet set = repeats(problem);
  if (repeats_ == set) return timed_;
  repeats_ = set;
  timed_.kernels.recompute = kernels_.recompute(set);
  if (has_rest(part_)) timed_.kernels.host = layer_host_time(problem, kind_);
  timed_.repeated = repeated(problem, set);
  return timed_;
}

const LoadSeconds& BlockClock::Layer::repeated(const Problem& problem, RepeatSet set) {
  const auto known = std::ranges::find(repeated_, set, &RepeatedLoads::set);
  if (known != repeated_.end()) return known->seconds;
  const auto calls =
      set == 0
          ? std::vector<Call>{}
          : calls_beyond(calls_of_block(problem, inventory_, BlockKind::layer, kind_, set), once_);
  return repeated_.emplace_back(set, zeroplan::timed(problem, calls, part_)).seconds;
}

BlockClock::Common::Common(const Problem& problem, const WeightInventory& inventory) {
  // A kind that the model lacks has no sizes, and no time for them.
  if (layers_of_kind(problem.model, 0, problem.model.layers, LayerKind::dense) > 0) {
    dense.emplace(problem, inventory, LayerKind::dense, LayerPart::whole);
  }
  if (problem.model.moe) rest_of_moe.emplace(problem, inventory, LayerKind::moe, LayerPart::rest);
  embedding.kernels = embedding_time(problem);
  head.kernels = head_time(problem);
  const auto loads = [&](BlockKind block) {
    return timed(problem, calls_of_block(problem, inventory, block));
  };
  embedding.loads = loads(BlockKind::embedding);
  head.loads = loads(BlockKind::head);
  if (trained_mtp_modules(problem) == 0) return;
  mtp_ends.kernels = mtp_ends_time(problem);
  mtp_ends.loads = loads(BlockKind::mtp_input);
  mtp_ends.loads += head.loads;
}

const TimedBlock& BlockClock::moe(const Problem& problem) {
  if (last_routed_ == nullptr) return nothing_;
  const RepeatSet set = repeats(problem);
  if (repeats_ == set) return moe_;
  repeats_ = set;
  moe_ = last_common_->rest_of_moe->timed(problem);
  return moe_ += last_routed_->timed(problem);
}

BlockTimes BlockClock::times(const Problem& problem) {
  const Layout& l = problem.layout;
  const Key asked = key(problem, l.ep, l.etp);
  if (asked != asked_) {
    last_common_ = &find_or_make(common_, key(problem, 1, 1), problem, inventory_);
    if (problem.model.moe) {
      last_routed_ =
          &find_or_make(routed_, asked, problem, inventory_, LayerKind::moe, LayerPart::routed);
    }
    repeats_.reset();
    asked_ = asked;
  }
  std::optional<Layer>& dense = last_common_->dense;
  return {.dense = dense ? dense->timed(problem) : nothing_,
          .moe = moe(problem),
          .embedding = last_common_->embedding,
          .head = last_common_->head,
          .mtp_ends = last_common_->mtp_ends};
}

}  // namespace zeroplan
