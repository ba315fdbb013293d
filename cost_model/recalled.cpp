// What is known of a layout? Front door: Recalled.
#include "cost_model/recalled.hpp"

#include <boost/container/small_vector.hpp>

#include "cost_model/program/fold.hpp"

namespace zeroplan {

const PassesOfStage& Recalled::megatron_passes(std::size_t stage) const {
  pieces_.passes.resize(stages().size());
  std::optional<PassesOfStage>& known = pieces_.passes[stage];
  if (!known) {
    const StageProgram program = zeroplan::megatron_passes(
        problem_, remembered_.weights_, remembered_.blocks(problem_), stages()[stage]);
    const auto rank = static_cast<std::int64_t>(stage);
    known = {sum(program.resident), fold_passes(program, representative_passes(problem_, rank))};
  }
  return *known;
}

const PassProfile& Recalled::profile(std::size_t stage) const {
  const PassProfile*& known = shared_.profiles[stage];
  if (known != nullptr) return *known;
  const StageProgram program =
      megatron_chunks(problem_, remembered_.blocks(problem_), stages()[stage]);
  const std::vector<std::int32_t>& kinds = pieces_.list().kinds[stage].of_chunks;
  const auto rank = static_cast<std::int64_t>(stage);
  const Pipeline p = pipeline_of(problem_, representative_micro_batches(problem_, rank));
  std::vector<std::int64_t> key{
      static_cast<std::int64_t>(p.schedule), p.ranks, p.chunks, p.micro_batches, p.group, rank};
  key.reserve(key.size() + kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    key.push_back(4 * kinds[i] + 2 * program.chunks[i].receives + program.chunks[i].sends);
  }
  const auto found = remembered_.profiles_.find(key);
  if (found != remembered_.profiles_.end()) return *(known = &found->second);
  const auto made = remembered_.profiles_.try_emplace(std::move(key), program, kinds,
                                                      representative_passes(problem_, rank));
  return *(known = &made.first->second);
}

const ChunkBytes& Recalled::chunk_bytes(std::size_t kind) const {
  std::optional<ChunkBytes>& known = pieces_.chunks[kind];
  if (!known) {
    const StageProgram program =
        megatron_chunks(problem_, remembered_.blocks(problem_), pieces_.list().chunks[kind]);
    known = zeroplan::chunk_bytes(program.chunks.front());
  }
  return *known;
}

const ChunkTime& Recalled::chunk_time(std::size_t kind) const {
  std::optional<ChunkTime>& known = pieces_.chunk_times[kind];
  if (!known) {
    known = zeroplan::chunk_time(problem_, remembered_.block_times(problem_),
                                 pieces_.list().chunks[kind]);
  }
  return *known;
}

Bytes Recalled::boundary() const {
  if (!shared_.boundary) shared_.boundary = megatron_boundary(problem_);
  return *shared_.boundary;
}

Bytes Recalled::megatron_peak(std::size_t stage) const {
  std::optional<Bytes>& known = pieces_.highest[stage];
  if (known) return *known;
  if (problem_.layout.schedule <= Schedule::interleaved) {
    boost::container::small_vector<ChunkBytes, 4> sizes;
    for (const std::size_t kind : pieces_.list().kinds[stage].in_list) {
      sizes.push_back(chunk_bytes(kind));
    }
    known = profile(stage).highest({sizes.data(), sizes.size()}, boundary());
  }
  if (!known) known = megatron_passes(stage).passes.peak.live.allocated();
  return *known;
}

Bytes Recalled::megatron_buffer_bytes(std::size_t stage) const {
  const std::size_t first = first_alike(stage);
  std::optional<Bytes>& known = shared_.buffers[first];
  if (!known) {
    known = sum(megatron_buffers(problem_, remembered_.weights_, stages()[first])).allocated();
  }
  return *known;
}

const StagePasses& Recalled::passes(std::size_t stage) const {
  std::optional<StagePasses>& known = pieces_.times[pieces_.list().run_of[stage]];
  if (!known) {
    const ChunkKinds& kinds = pieces_.list().kinds[stage];
    boost::container::small_vector<ChunkTime, 8> chunks;
    for (const std::int32_t kind : kinds.of_chunks) {
      chunks.push_back(chunk_time(kinds.in_list[static_cast<std::size_t>(kind)]));
    }
    known = stage_passes(problem_, {chunks.data(), chunks.size()});
  }
  return *known;
}

StateShare& Recalled::own_share(std::size_t stage) const {
  const std::size_t first = first_alike(stage);
  StateShare*& known = shared_.column(problem_.layout).shares[first];
  if (known == nullptr) {
    const Stage& own = stages()[first];
    const auto [found, added] = remembered_.shares_.try_emplace(state_key(problem_, own));
    if (added) found->second = state_share(problem_, remembered_.weights_, own);
    known = &found->second;
  }
  return *known;
}

const StageUpdate& Recalled::update(std::size_t stage) const {
  StateShare& share = own_share(stage);
  if (!share.update) {
    share.update = stage_update(problem_, remembered_.weights_, stages()[first_alike(stage)]);
  }
  return *share.update;
}

const UpdateLoads& Recalled::update_loads(std::size_t stage) const {
  StateShare& share = own_share(stage);
  std::optional<UpdateLoads>& known =
      share.loads[static_cast<std::size_t>(problem_.layout.overlap)];
  if (!known) known = zeroplan::update_loads(problem_, update(stage));
  return *known;
}

double Recalled::message() const {
  if (!shared_.message) shared_.message = message_seconds(problem_);
  return *shared_.message;
}

const std::vector<double>& Recalled::finished(const PassesOfRanks& with_update) const {
  if (!with_update.ranks.empty()) {
    return remembered_.clock_.finished(problem_, with_update, message());
  }
  if (pieces_.finished.empty()) {
    PassesOfRanks& own = remembered_.passes_;
    own.clear();
    for (std::size_t run = 0; run < firsts().size(); ++run) {
      own.ranks.push_back(length_of_run(run));
      const std::vector<PassTime>& chunks = passes(firsts()[run]).chunks;
      own.passes.insert(own.passes.end(), chunks.begin(), chunks.end());
    }
    pieces_.finished = remembered_.clock_.finished(problem_, own, message());
  }
  return pieces_.finished;
}

}  // namespace zeroplan
