// How many bytes does a rank of nanotron need? Front door: NanotronPeakBytes::highest.
#include "cost_model/runtime/nanotron/peak_bytes.hpp"

#include "cost_model/program/fold.hpp"

namespace zeroplan {

std::optional<Bytes> NanotronPeakBytes::highest(const Problem& problem,
                                                const Stage& stage,
                                                std::int64_t rank,
                                                const ModelStates& states) {
  const Layout& l = problem.layout;
  if (splits_backward(l.schedule)) return std::nullopt;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const StageProgram frame = nanotron_frame(problem, inventory_, stage, states);
  const auto [found, added] = chunks_.try_emplace(
      {l.tp, l.cp, l.micro_batch, 2 * number(l.recompute) + number(l.sequence_parallel),
       problem.training.sequence_length, number(problem.training.precision),
       number(problem.training.attention), layer_count(stage),
       2 * number(stage.embedding) + number(stage.head)});
  if (added) {
    found->second = chunk_bytes(frame.chunks.front(), nanotron_runs(problem, inventory_, stage));
  }
  const RankInFlight& profile =
      in_flight_.find_or_make(problem, stage, rank, frame, FirstMicroBatch::alike);
  const std::optional<PassBytes> passes = profile.passes({&found->second, 1}, frame.boundary);
  if (!passes) return std::nullopt;
  return highest_bytes(sum(frame.resident).allocated(), *passes, forward_bytes(frame.step));
}

}  // namespace zeroplan
