// What does a block take on its rank? Front door: BlockClock::times.
#include "cost_model/pipeline/block_times.hpp"

#include <algorithm>
#include <iterator>

#include "cost_model/network/layer_collectives.hpp"
#include "cost_model/rank/loss_parts.hpp"

namespace zeroplan {
namespace {

// Some 2 KB each.
constexpr std::size_t most_known = 10'000;

void add(LoadSeconds& seconds, const Problem& p, const std::vector<BlockCall>& calls) {
  for (const BlockCall& call : calls) seconds.add(timed_load(p, call.load));
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
    : kind_(kind), part_(part), kernels_(layer_kernels(problem, kind, part)) {
  timed_.kernels = kernels_.once;
  for (const BlockCall& call : layer_calls(problem, inventory, kind, part)) {
    const TimedLoad load = timed_load(problem, call.load);
    if (call.repeated_by == 0) {
      timed_.loads.add(load);
      continue;
    }
    auto alike = std::ranges::find(loads_, call.repeated_by, &RepeatedLoads::repeated_by);
    if (alike == loads_.end()) {
      loads_.push_back({.repeated_by = call.repeated_by});
      alike = std::prev(loads_.end());
    }
    alike->seconds.add(load);
  }
}

const TimedBlock& BlockClock::Layer::timed(const Problem& problem) {
  const RepeatSet set = repeats(problem);
  if (repeats_ == set) return timed_;
  repeats_ = set;
  timed_.kernels.recompute = kernels_.recompute(set);
  if (has_rest(part_)) timed_.kernels.host = layer_host_time(problem, kind_);
  timed_.repeated = {};
  for (const RepeatedLoads& part : loads_) {
    if ((part.repeated_by & set) != 0) timed_.repeated += part.seconds;
  }
  return timed_;
}

BlockClock::Common::Common(const Problem& problem, const WeightInventory& inventory) {
  // A kind that the model lacks has no sizes, and no time for them.
  if (layers_of_kind(problem.model, 0, problem.model.layers, LayerKind::dense) > 0) {
    dense.emplace(problem, inventory, LayerKind::dense, LayerPart::whole);
  }
  if (problem.model.moe) rest_of_moe.emplace(problem, inventory, LayerKind::moe, LayerPart::rest);
  embedding.kernels = embedding_time(problem);
  head.kernels = head_time(problem);
  add(embedding.loads, problem, embedding_calls(problem, inventory));
  add(head.loads, problem, head_calls(problem, inventory));
  if (trained_mtp_modules(problem) == 0) return;
  mtp_ends.kernels = mtp_ends_time(problem);
  mtp_ends.loads = embedding.loads;
  mtp_ends.loads += head.loads;
  add(mtp_ends.loads, problem, mtp_projection_calls(problem));
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
