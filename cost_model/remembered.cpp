// What was made before? Front door: Remembered.
#include "cost_model/remembered.hpp"

#include <algorithm>

#include "cost_model/program/deepspeed/startup.hpp"

namespace zeroplan {

namespace {

// What a block of a rank depends on.
BlockKey block_key(const Problem& problem) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {l.tp,
          l.cp,
          l.etp,
          l.micro_batch,
          number(l.sequence_parallel),
          number(l.recompute),
          number(l.recompute_modules),
          t.sequence_length,
          number(t.precision),
          number(t.attention)};
}

// Experts and whose layers run matter to time alone.
Numbers<12> times_key(const Problem& problem) {
  Numbers<12> key;
  const BlockKey block = block_key(problem);
  std::copy(block.begin(), block.end(), key.begin());
  key[10] = problem.layout.ep;
  key[11] = runs_megatron_layers(problem);
  return key;
}

}  // namespace

const MegatronBlocks& Remembered::blocks(const Problem& problem) const {
  const auto [found, added] = blocks_.try_emplace(block_key(problem));
  if (added) found->second = megatron_blocks(problem);
  return found->second;
}

const BlockTimes& Remembered::block_times(const Problem& problem) const {
  const auto [found, added] = times_.try_emplace(times_key(problem));
  if (added) found->second = zeroplan::block_times(problem);
  return found->second;
}

const PassesOfStage& Remembered::megatron_stage_passes(const Problem& problem,
                                                       std::size_t index) const {
  SharedPieces& shared = pieces_.of(problem);
  shared.passes.resize(shared.stages().size());
  std::optional<PassesOfStage>& known = shared.passes[index];
  if (!known) {
    const StageProgram program =
        megatron_passes(problem, weights_, blocks(problem), shared.stages()[index]);
    const auto rank = static_cast<std::int64_t>(index);
    known = {sum(program.resident), fold_passes(program, representative_passes(problem, rank))};
  }
  return *known;
}

const PassProfile& Remembered::profile(const Problem& problem,
                                       std::size_t index,
                                       const StageProgram& program) const {
  const auto rank = static_cast<std::int64_t>(index);
  const Pipeline p = pipeline_of(problem, representative_micro_batches(problem, rank));
  std::vector<std::int64_t> key{
      static_cast<std::int64_t>(p.schedule), p.ranks, p.chunks, p.micro_batches, p.group, rank};
  const std::vector<std::int32_t> kinds = chunk_kinds(program.chunks);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    key.push_back(4 * kinds[i] + 2 * program.chunks[i].receives + program.chunks[i].sends);
  }
  const auto known = profiles_.find(key);
  if (known != profiles_.end()) return known->second;
  return profiles_.try_emplace(std::move(key), program, representative_passes(problem, rank))
      .first->second;
}

Bytes Remembered::megatron_passes_peak(const Problem& problem, std::size_t index) const {
  SharedPieces& shared = pieces_.of(problem);
  std::optional<Bytes>& known = shared.highest[index];
  if (known) return *known;
  if (problem.layout.schedule <= Schedule::interleaved) {
    const StageProgram program = megatron_chunks(problem, blocks(problem), shared.stages()[index]);
    std::vector<ChunkBytes> sizes;
    const std::vector<std::int32_t> kinds = chunk_kinds(program.chunks);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (static_cast<std::size_t>(kinds[i]) == sizes.size()) {
        sizes.push_back(chunk_bytes(program.chunks[i]));
      }
    }
    known = profile(problem, index, program).highest(sizes, program.boundary);
  }
  if (!known) known = megatron_stage_passes(problem, index).passes.peak.live.allocated();
  return *known;
}

const StagePasses& Remembered::stage_passes(const Problem& problem, std::size_t index) const {
  SharedPieces& shared = pieces_.of(problem);
  const std::size_t first = shared.first_alike()[index];
  shared.times.resize(shared.stages().size());
  std::optional<StagePasses>& known = shared.times[first];
  if (!known) {
    known = zeroplan::stage_passes(problem, block_times(problem), shared.stages()[first]);
  }
  return *known;
}

StateShare& Remembered::made_share(const Problem& problem, std::size_t index) const {
  SharedPieces& shared = pieces_.of(problem);
  StateShare*& known = shared.of_stages->column(problem.layout).shares[shared.first_alike()[index]];
  if (known == nullptr) {
    const Stage& stage = shared.stages()[shared.first_alike()[index]];
    const auto [found, added] = shares_.try_emplace(state_key(problem, stage));
    if (added) found->second = state_share(problem, weights_, stage);
    known = &found->second;
  }
  return *known;
}

const StateShare& Remembered::share(const Problem& problem, std::size_t index) const {
  constexpr std::size_t most = 40'000;
  if (shares_.size() > most) {
    pieces_.forget_shares();
    shares_.clear();
  }
  return made_share(problem, index);
}

const StageUpdate& Remembered::update(const Problem& problem, std::size_t index) const {
  StateShare& share = made_share(problem, index);
  if (!share.update) {
    const SharedPieces& shared = pieces_.of(problem);
    share.update = stage_update(problem, weights_, shared.stages()[shared.first_alike()[index]]);
  }
  return *share.update;
}

double Remembered::message(const Problem& problem) const {
  SharedStages& shared = *pieces_.of(problem).of_stages;
  if (!shared.message) shared.message = message_seconds(problem);
  return *shared.message;
}

const std::vector<double>& Remembered::finished(const Problem& problem,
                                                const std::vector<PassTime>& passes) const {
  if (!passes.empty()) return clock_.finished(problem, passes, message(problem));
  SharedPieces& shared = pieces_.of(problem);
  if (shared.finished.empty()) {
    std::vector<PassTime> own;
    for (std::size_t i = 0; i < shared.stages().size(); ++i) {
      const std::vector<PassTime>& chunks = stage_passes(problem, i).chunks;
      own.insert(own.end(), chunks.begin(), chunks.end());
    }
    shared.finished = clock_.finished(problem, own, message(problem));
  }
  return shared.finished;
}

StageProgram Remembered::stage_program(const Problem& problem, const Stage& stage) const {
  switch (problem.runtime.kind) {
    case Runtime::fsdp2:
      return fsdp2_stage(problem, weights_, stage);
    case Runtime::ddp:
      return ddp_stage(problem, weights_, stage);
    case Runtime::nanotron:
      return nanotron_stage(problem, weights_, stage);
    case Runtime::zeroplan:
      return zeroplan_stage(problem, weights_, stage);
    case Runtime::deepspeed: {
      if (!runs_megatron_layers(problem)) return deepspeed_stage(problem, weights_, stage);
      const Problem early = with_early_layers(problem);
      return megatron_deepspeed_stage(early, weights_, blocks(early), stage);
    }
    default:
      return megatron_stage(problem, weights_, blocks(problem), stage);
  }
}

Startup Remembered::startup(const Problem& problem,
                            const Stage& stage,
                            const StageProgram& program) const {
  switch (problem.runtime.kind) {
    case Runtime::fsdp2:
      return fsdp2_startup(problem, weights_, stage, program);
    case Runtime::nanotron:
      return nanotron_startup(problem, weights_, stage, program);
    case Runtime::deepspeed:
      return deepspeed_startup(problem, weights_, stage, program);
    case Runtime::ddp:
    case Runtime::zeroplan:
      return plain_startup(program);
    default:
      return megatron_startup(problem, weights_, stage, program);
  }
}

}  // namespace zeroplan
