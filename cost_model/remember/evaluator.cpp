// What was made before? Front door: Evaluator.
#include "cost_model/remember/evaluator.hpp"

#include "cost_model/network/load_list.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/megatron/mtp.hpp"

namespace zeroplan {

namespace {

// The entries remembered at most, some 15 MB of shares, as a few hundred shapes use.
constexpr std::size_t most_blocks = 3'000;
constexpr std::size_t most_shares = 30'000;

}  // namespace

void Evaluator::trim() const {
  if (blocks_.size() > most_blocks) blocks_.clear();
  if (shares_.size() + updates_ <= most_shares) return;
  pieces_.forget_shares();
  shares_.clear();
  updates_ = 0;
}

const MegatronBlocks& Evaluator::blocks(const Problem& problem) const {
  require_same(only_, problem);
  return find_or_make(problem);
}

const MegatronBlocks& Evaluator::find_or_make(const Problem& problem) const {
  const auto [found, added] = blocks_.try_emplace(BlocksInputs(problem).with(
      counted_expert_ranks(problem), handed_by_tied_head(problem), embedding_gathers(problem)));
  if (added) found->second = known_blocks_.find_or_make(problem);
  return found->second;
}

StageProgram Evaluator::stage_program(const Problem& problem, const Stage& stage) const {
  require_same(only_, problem);
  return code_of(problem).stage(problem, weights_, stage, *this);
}

PeakBytes* Evaluator::peak_bytes(const Problem& problem) const {
  const RuntimeCode& code = code_of(problem);
  if (*code.peak_bytes != nullptr && !peak_bytes_) peak_bytes_ = code.peak_bytes(weights_);
  return peak_bytes_.get();
}

std::optional<Bytes> Evaluator::highest_of_step(const Problem& problem,
                                                const Stage& stage,
                                                std::int64_t rank,
                                                const ModelStates& states) const {
  require_same(only_, problem);
  if (PeakBytes* own = peak_bytes(problem)) return own->highest(problem, stage, rank, states);
  // Nothing without an allocator: the band asks for activations of the paper's arithmetic too.
  if (!has_allocator(problem) || splits_backward(problem.layout.schedule)) return {};
  const StageProgram program = stage_program(problem, stage);
  if (program.passes_differ) return {};
  const bool alike = program.chunks.front().first_runs.empty();
  const RankInFlight& profile = in_flight_.find_or_make(
      problem, stage, rank, program, alike ? FirstMicroBatch::alike : FirstMicroBatch::apart);
  const std::optional<PassBytes> passes = profile.passes(program);
  if (!passes) return std::nullopt;
  return highest_bytes(sum(program.resident).allocated(), *passes, forward_bytes(program.step),
                       forward_bytes(program.checkpoint));
}

std::vector<CollectiveLoad> Evaluator::update_loads(const Problem& problem,
                                                    const Stage& stage) const {
  require_same(only_, problem);
  PeakBytes* own = peak_bytes(problem);
  const auto calls = own != nullptr ? own->update_calls(problem, stage) : std::nullopt;
  if (!calls) return update_collectives(problem, weights_, stage);
  LoadList loads(problem);
  loads.add_calls(*calls);
  return loads.take();
}

Startup Evaluator::startup(const Problem& problem,
                           const Stage& stage,
                           const StageProgram& program) const {
  require_same(only_, problem);
  return code_of(problem).startup(problem, weights_, stage, program);
}

}  // namespace zeroplan
