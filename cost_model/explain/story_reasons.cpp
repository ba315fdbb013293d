// Why does a step go so? Front door: reasons_of.
#include "cost_model/explain/story_reasons.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zeroplan {
namespace {

enum class When { forward, backward, end };

When when(const StoryPhase& phase) {
  if (phase.ends_step) return When::end;
  return phase.kind == PassKind::forward ? When::forward : When::backward;
}

// What a rank and its replicas exchange of gradients and parameters in one part of the step.
struct Exchange {
  Bytes payload;  // of all calls
  Bytes largest;  // payload of one
  std::int64_t ranks = 0;

  bool is_there() const { return ranks > 0; }
};

Exchange exchanged(const Story& story, Collective what, When part) {
  Exchange sum;
  for (const StoryPhase& phase : story.phases) {
    if (when(phase) != part || phase.alike) continue;
    const auto add = [&](const TimedLoad& call, std::int64_t blocks) {
      const CollectiveLoad& load = call.load;
      if (load.collective != what || !holds_states(load.group.name)) return;
      sum.payload += blocks * load.calls * load.payload;
      sum.largest = std::max(sum.largest, load.payload);
      sum.ranks = std::max(sum.ranks, load.group.ranks);
    };
    for (const TimedLoad& call : phase.calls) add(call, 1);
    for (const StoryScene& scene : phase.scenes) {
      for (const TimedLoad& call : scene.calls) add(call, scene.blocks);
    }
  }
  return sum;
}

std::string gib(Bytes bytes) {
  return fmt::format("{:.2f} GiB", gibibytes(bytes));
}

std::string slices_not_owners(const Exchange& gathered) {
  const auto n = static_cast<double>(gathered.ranks);
  const auto largest = static_cast<double>(gathered.largest.count()) / static_cast<double>(gibi);
  return fmt::format(
      "Each rank holds 1/{0} of every unit, not whole blocks: in an all-gather all links carry "
      "(n-1)/n of it at once. Where one owner broadcasts a whole block, as popular texts tell it, "
      "each rank receives as much, but the owner alone sends: {1:.2f} GiB of the largest unit here "
      "against {2:.2f} GiB a rank; and ranks that own larger blocks hold more.",
      gathered.ranks, largest, largest * (n - 1) / n);
}

}  // namespace

std::vector<std::string> reasons_of(const Problem& problem, const Story& story) {
  std::vector<std::string> reasons;
  const Exchange forward = exchanged(story, Collective::all_gather, When::forward);
  const Exchange backward = exchanged(story, Collective::all_gather, When::backward);
  const Exchange updated = exchanged(story, Collective::all_gather, When::end);
  const bool scatters = exchanged(story, Collective::reduce_scatter, When::backward).is_there() ||
                        exchanged(story, Collective::reduce_scatter, When::end).is_there();
  const bool sums = exchanged(story, Collective::all_reduce, When::backward).is_there() ||
                    exchanged(story, Collective::all_reduce, When::end).is_there();
  const Layout& l = problem.layout;

  if (forward.is_there()) {
    reasons.push_back(fmt::format(
        "Parameters are whole one unit at a time: the largest gathered here is {} of {} that a "
        "forward pass gathers. The complete model never stands on one GPU.",
        gib(forward.largest), gib(forward.payload)));
    reasons.push_back(slices_not_owners(forward));
  }
  if (forward.is_there() && backward.is_there()) {
    reasons.push_back(
        "Backward gathers again what forward dropped: with the gradients' reduce-scatter that is "
        "3 x Psi a micro-batch, where stages 0 to 2 send 2 x Psi a step (ZeRO, section 7.2.2).");
  }
  if (scatters) {
    reasons.push_back(
        "Gradients are reduce-scattered: each rank computes all of them from its own samples, and "
        "keeps the sum of the part that it updates. An all-reduce would send twice as much, and "
        "leave every rank with what it does not need.");
  } else if (sums) {
    reasons.push_back(
        "Gradients are all-reduced, since every rank updates every parameter: a reduce-scatter and "
        "an all-gather in one, 2 x Psi x (n-1)/n a rank.");
  }
  if (updated.is_there()) {
    reasons.push_back(fmt::format(
        "After the update {} travel: the working copy of the parameters. Master copy and moments "
        "never leave the rank that owns them.",
        gib(updated.payload)));
  }
  if (l.zero != ZeroStage::none || l.dp > 1) {
    reasons.push_back(
        "The optimizer runs once, when all micro-batches are reduced: not during backward, since "
        "a clipped gradient's norm needs all of them.");
  }
  if (l.recompute == Recompute::full) {
    reasons.push_back(
        "That forward runs again before backward is --recompute, which any stage of ZeRO can have "
        "or not.");
  }
  if (l.tp * l.pp == 1 && (forward.is_there() || sums)) {
    reasons.push_back("Psi is the model's parameters, in the bytes in which they travel.");
  } else if (l.tp * l.pp > 1) {
    reasons.push_back(fmt::format(
        "Psi is this rank's part of the model, about 1/{} of it: ZeRO divides what tensor and "
        "pipeline parallelism left on a GPU.",
        l.tp * l.pp));
  }
  return reasons;
}

}  // namespace zeroplan
