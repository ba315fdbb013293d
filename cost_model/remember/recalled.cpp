// What is known of a layout? Front door: Recalled.
#include "cost_model/remember/recalled.hpp"

#include <boost/container/small_vector.hpp>

#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/straggling.hpp"
#include "cost_model/program/fold.hpp"

namespace zeroplan {

const PassesOfStage& Recalled::megatron_passes(std::size_t stage) const {
  pieces_.passes.resize(stages().size());
  std::optional<PassesOfStage>& known = pieces_.passes[stage];
  if (!known) {
    const StageProgram program =
        zeroplan::megatron_passes(problem_, remembered_.weights_, blocks(), stages()[stage]);
    const auto rank = static_cast<std::int64_t>(stage);
    known = {sum(program.resident), fold_passes(program, representative_passes(problem_, rank))};
  }
  return *known;
}

const PassProfile& Recalled::profile(std::size_t run) const {
  const PassProfile*& known = shared_.profiles[run];
  if (known != nullptr) return *known;
  const std::size_t stage = firsts()[run];
  const ChunkKinds& kinds = pieces_.list().kinds[stage];
  const auto rank = static_cast<std::int64_t>(stage);
  const Pipeline p = pipeline_of(problem_, representative_micro_batches(problem_, rank));
  std::vector<std::int64_t> key{
      static_cast<std::int64_t>(p.schedule), p.ranks, p.chunks, p.micro_batches, p.group, rank};
  key.insert(key.end(), kinds.places.begin(), kinds.places.end());
  const auto found = remembered_.profiles_.find(key);
  if (found != remembered_.profiles_.end()) return *(known = &found->second);
  const StageProgram program = megatron_chunks(problem_, blocks(), stages()[stage]);
  const auto made = remembered_.profiles_.try_emplace(std::move(key), program, kinds.of_chunks,
                                                      representative_passes(problem_, rank));
  return *(known = &made.first->second);
}

const ChunkBytes& Recalled::chunk_bytes(std::size_t kind) const {
  std::optional<ChunkBytes>& known = pieces_.chunks[kind];
  if (!known) {
    const Stage& chunk = pieces_.list().chunks[kind];
    known = zeroplan::chunk_bytes(megatron_chunk(problem_, blocks(), chunk, 0));
  }
  return *known;
}

const MegatronBlocks& Recalled::blocks() const {
  if (blocks_ == nullptr) blocks_ = &remembered_.find_or_make(problem_);
  return *blocks_;
}

Bytes Recalled::boundary() const {
  if (!shared_.boundary) shared_.boundary = megatron_boundary(problem_);
  return *shared_.boundary;
}

Bytes Recalled::find_megatron_peak(std::size_t run) const {
  const std::size_t stage = firsts()[run];
  std::optional<Bytes>& known = pieces_.highest[run];
  if (problem_.layout.schedule <= Schedule::interleaved) {
    boost::container::small_vector<ChunkBytes, 4> sizes;
    for (const std::size_t kind : pieces_.list().kinds[stage].in_list) {
      sizes.push_back(chunk_bytes(kind));
    }
    known = profile(run).highest({sizes.data(), sizes.size()}, boundary());
  }
  if (!known) known = megatron_passes(stage).passes.peak.live.allocated();
  return *known;
}

Bytes Recalled::find_megatron_buffer_bytes(std::size_t run) const {
  const Stage& own = stages()[firsts()[run]];
  const Bytes bytes = sum(megatron_buffers(problem_, remembered_.weights_, own)).allocated();
  return *(shared_.buffers[run] = bytes);
}

void Recalled::find_passes() const {
  const StageList& list = pieces_.list();
  const BlockTimes blocks = remembered_.times_.times(problem_);
  boost::container::small_vector<ChunkTime, 4> times;  // of each kind
  for (const Stage& chunk : list.chunks) times.push_back(chunk_time(problem_, blocks, chunk));
  boost::container::small_vector<const ChunkTime*, 8> chunks;
  for (const std::size_t first : firsts()) {
    const ChunkKinds& kinds = list.kinds[first];
    chunks.clear();
    for (const std::int32_t kind : kinds.of_chunks) {
      chunks.push_back(&times[kinds.in_list[static_cast<std::size_t>(kind)]]);
    }
    pieces_.times.push_back(stage_passes(problem_, {chunks.data(), chunks.size()}));
  }
}

void Recalled::find_states(std::size_t run, ExchangeOfStages::States& states) const {
  const Stage& own = stages()[firsts()[run]];
  const Exchange exchange = exchange_of(problem_.layout);
  const auto [found, added] = remembered_.shares_.try_emplace(
      state_key(problem_, exchange, content_of(problem_.model, own)));
  if (added) found->second = state_share(problem_, remembered_.weights_, own);
  states = {&found->second, found->second.sums};
  ++remembered_.updates_;
}

const StageUpdate& Exchanged::update(std::size_t run) const {
  std::optional<StageUpdate>& known = exchange_.updates[contents_[run]];
  if (!known) {
    const Stage& first = known_.stages()[known_.firsts()[run]];
    const Remembered& remembered = known_.remembered();
    known = stage_update(known_.problem(), remembered.weights(), first,
                         remembered.update_loads(known_.problem(), first));
  }
  return *known;
}

const UpdateLoads& Exchanged::find_loads(std::size_t run) const {
  return *(exchange_.loads[overlap_][contents_[run]] = update_loads(known_.problem(), update(run)));
}

double Recalled::message() const {
  if (!shared_.message) shared_.message = message_seconds(problem_);
  return *shared_.message;
}

const std::vector<double>& Recalled::find_finished() const {
  const boost::container::small_vector<Directions, 4> nothing(runs());
  return pieces_.finished = finished<double>({nothing.data(), nothing.size()});
}

template <class Seconds>
const std::vector<Seconds>& Recalled::finished(std::span<const DirectionsOf<Seconds>> added) const {
  auto& all = std::get<PassesOfRanks<Seconds>>(remembered_.passes_);
  all.clear();
  for (std::size_t run = 0; run < runs(); ++run) {
    all.ranks.push_back(length_of_run(run));
    for (const PassTime& chunk : passes(run).chunks) {
      all.passes.push_back(longer(chunk, added[run]));
    }
  }
  const std::vector<Seconds>& ends = remembered_.clock_.finished(problem_, all, message());
  if constexpr (std::is_same_v<Seconds, Several>) keep_if_alone(added, ends);
  return ends;
}

// What the last of several timings tells, where nothing is added to it.
void Recalled::keep_if_alone(std::span<const DirectionsOf<Several>> added,
                             const std::vector<Several>& ends) const {
  if (!pieces_.finished.empty()) return;
  for (const DirectionsOf<Several>& part : added) {
    if (part.forward.each.back() > 0 || part.backward.each.back() > 0) return;
  }
  for (const Several& end : ends) pieces_.finished.push_back(end.each.back());
}

template const std::vector<double>& Recalled::finished(std::span<const DirectionsOf<double>>) const;
template const std::vector<Several>& Recalled::finished(
    std::span<const DirectionsOf<Several>>) const;

double Recalled::find_straggling() const {
  return *(shared_.straggling = straggling_part(problem_.cluster));
}

}  // namespace zeroplan
