// What is known of a layout? Front door: LayoutPieces.
#include "cost_model/remember/layout_pieces.hpp"

#include <boost/container/small_vector.hpp>

#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/straggling.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/offload.hpp"

namespace zeroplan {
namespace {

// Whether some layers' activations go to the host.
bool moves_layers(const Problem& p) {
  return offloaded_layers(p) > 0 || p.runtime.megatron.offload_modules != 0;
}

}  // namespace

const PassesOfStage& LayoutPieces::megatron_passes(std::size_t stage) const {
  pieces_.passes.resize(stages().size());
  std::optional<PassesOfStage>& known = pieces_.passes[stage];
  if (!known) {
    const StageProgram program =
        zeroplan::megatron_passes(problem_, evaluator_.weights_, blocks(), stages()[stage]);
    const auto rank = static_cast<std::int64_t>(stage);
    known = {sum(program.resident), fold_passes(program, representative_passes(problem_, rank))};
  }
  return *known;
}

const InFlightCounts& LayoutPieces::profile(std::size_t run) const {
  const InFlightCounts*& known = shared_.profiles[run];
  if (known != nullptr) return *known;
  const std::size_t stage = firsts()[run];
  const ChunkKinds& kinds = pieces_.list().kinds[stage];
  const auto rank = static_cast<std::int64_t>(stage);
  const Numbers<6> pipeline =
      numbers_of(pipeline_of(problem_, representative_micro_batches(problem_, rank)));
  std::vector<std::int64_t> key(pipeline.begin(), pipeline.end());
  key.push_back(rank);
  key.insert(key.end(), kinds.places.begin(), kinds.places.end());
  const auto found = evaluator_.counts_.find(key);
  if (found != evaluator_.counts_.end()) return *(known = &found->second);
  const StageProgram program = megatron_chunks(problem_, blocks(), stages()[stage]);
  const auto made = evaluator_.counts_.try_emplace(std::move(key), program, kinds.of_chunks,
                                                   representative_passes(problem_, rank));
  return *(known = &made.first->second);
}

const ChunkBytes& LayoutPieces::chunk_bytes(std::size_t kind) const {
  std::optional<ChunkBytes>& known = pieces_.chunks[kind];
  if (!known) {
    const Stage& chunk = pieces_.list().chunks[kind];
    known = zeroplan::chunk_bytes(megatron_chunk(problem_, blocks(), chunk, 0));
  }
  return *known;
}

const MegatronBlocks& LayoutPieces::blocks() const {
  if (blocks_ == nullptr) blocks_ = &evaluator_.find_or_make(problem_);
  return *blocks_;
}

Bytes LayoutPieces::boundary() const {
  if (!shared_.boundary) shared_.boundary = megatron_boundary(problem_);
  return *shared_.boundary;
}

Bytes LayoutPieces::find_megatron_peak(std::size_t run) const {
  const std::size_t stage = firsts()[run];
  std::optional<Bytes>& known = pieces_.highest[run];
  if (!splits_backward(problem_.layout.schedule) && !megatron_passes_differ(problem_)) {
    boost::container::small_vector<ChunkBytes, 4> sizes;
    for (const std::size_t kind : pieces_.list().kinds[stage].in_list) {
      sizes.push_back(chunk_bytes(kind));
    }
    known = profile(run).highest({sizes.data(), sizes.size()}, boundary());
  }
  if (!known) known = megatron_passes(stage).passes.peak.live.allocated();
  return *known;
}

Bytes LayoutPieces::megatron_peak(std::size_t run, const FsdpBuckets& buckets) const {
  const std::size_t stage = firsts()[run];
  ChunkProgram chunk = megatron_chunk(problem_, blocks(), stages()[stage], 0);
  const ChunkBytes size =
      zeroplan::chunk_bytes(problem_, chunk, runs_of_bytes(chunk.runs), buckets.blocks);
  if (const auto known = profile(run).highest({&size, 1}, boundary())) return *known;
  chunk.runs = with_buckets(problem_, chunk.runs, buckets.blocks);
  const StageProgram program{.chunks = {chunk}, .boundary = boundary()};
  const auto rank = static_cast<std::int64_t>(stage);
  return fold_passes(program, representative_passes(problem_, rank)).peak.live.allocated();
}

Bytes LayoutPieces::least_megatron_peak(std::size_t run, const FsdpBuckets* buckets) const {
  if (splits_backward(problem_.layout.schedule) || megatron_layers_of_block(problem_) > 1 ||
      moves_layers(problem_)) {
    return {};
  }
  ByKind<BlockBytes> either;
  for (const LayerKind kind : all_layer_kinds) {
    const MegatronLayer& layer = blocks().layers[kind];
    if (layer.kept == nullptr || layer.recomputed == nullptr) continue;
    const std::optional<BlockBytes> least = least_of(layer.kept->bytes, layer.recomputed->bytes);
    if (!least) return {};
    either[kind] = *least;
  }
  const auto least_of_block =
      [&](const std::shared_ptr<const FoldedBlock>& block) -> const BlockBytes* {
    for (const LayerKind kind : all_layer_kinds) {
      const MegatronLayer& layer = blocks().layers[kind];
      const bool may_repeat = layer.recomputed != nullptr;
      if (may_repeat && (block == layer.kept || block == layer.recomputed)) return &either[kind];
    }
    return &block->bytes;
  };
  const std::size_t stage = firsts()[run];
  boost::container::small_vector<ChunkBytes, 4> sizes;
  for (const std::size_t kind : pieces_.list().kinds[stage].in_list) {
    const ChunkProgram chunk = megatron_chunk(problem_, blocks(), pieces_.list().chunks[kind], 0);
    RunsOfBytes runs;
    for (const Run& r : chunk.runs) runs.push_back({least_of_block(r.block), r.count});
    sizes.push_back(buckets != nullptr
                        ? zeroplan::chunk_bytes(problem_, chunk, runs, buckets->blocks)
                        : zeroplan::chunk_bytes(chunk, runs));
  }
  return profile(run).highest({sizes.data(), sizes.size()}, boundary()).value_or(Bytes{});
}

Bytes LayoutPieces::find_megatron_kept(std::size_t run) const {
  return *(pieces_.kept[run] = megatron_kept_inputs(problem_, stages()[firsts()[run]], boundary()));
}

Bytes LayoutPieces::find_megatron_buffer_bytes(std::size_t run) const {
  const Stage& own = stages()[firsts()[run]];
  const Bytes bytes = sum(megatron_buffers(problem_, evaluator_.weights_, own)).allocated();
  return *(shared_.buffers[run] = bytes);
}

void LayoutPieces::find_passes() const {
  const StageList& list = pieces_.list();
  const BlockTimes blocks = evaluator_.times_.times(problem_);
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

void LayoutPieces::find_states(std::size_t run, ShardedStages::States& states) const {
  const Stage& own = stages()[firsts()[run]];
  const auto [found, added] =
      evaluator_.shares_.try_emplace(state_key(problem_, content_of(problem_.model, own)));
  if (added) {
    const Layout& l = problem_.layout;
    found->second =
        rank_states(evaluator_.only_(StateInputs(problem_),
                                     {.schedule = l.schedule, .loss_chunks = l.loss_chunks}),
                    evaluator_.weights_, own);
  }
  states = {&found->second, found->second.sums};
  ++evaluator_.updates_;
}

LeastBytes PlanPoint::least_of_step(std::size_t run) const {
  const Problem& problem = known_.problem();
  const ModelStates& states = share(run).states;
  PeakBytes* own = known_.evaluator().peak_bytes(problem);
  if (own == nullptr) return {states.total()};
  const std::size_t first = known_.firsts()[run];
  return own->at_least(problem, known_.stages()[first], static_cast<std::int64_t>(first), states);
}

const StageUpdate& PlanPoint::update(std::size_t run) const {
  return sharding_.updates.find_or_make(contents_[run], [&] {
    const Stage& first = known_.stages()[known_.firsts()[run]];
    const Evaluator& evaluator = known_.evaluator();
    return stage_update(known_.problem(), evaluator.weights(), first,
                        evaluator.update_loads(known_.problem(), first));
  });
}

const FsdpBuckets& PlanPoint::buckets(std::size_t run) const {
  return sharding_.buckets.find_or_make(contents_[run], [&] {
    const Stage& first = known_.stages()[known_.firsts()[run]];
    return fsdp_buckets(known_.problem(), known_.evaluator().weights(), first);
  });
}

const FsdpBuckets& PlanPoint::least_buckets(std::size_t run) const {
  return sharding_.least_buckets.find_or_make(contents_[run], [&] {
    const Stage& first = known_.stages()[known_.firsts()[run]];
    return least_fsdp_buckets(known_.problem(), known_.evaluator().weights(), first);
  });
}

const UpdateLoads& PlanPoint::find_loads(std::size_t run) const {
  return sharding_.loads[overlap_].add(contents_[run], update_loads(known_.problem(), update(run)));
}

double LayoutPieces::message() const {
  if (!shared_.message) shared_.message = message_seconds(problem_);
  return *shared_.message;
}

const std::vector<double>& LayoutPieces::find_finished() const {
  const boost::container::small_vector<Directions, 4> nothing(runs());
  return pieces_.finished = finished<double>({nothing.data(), nothing.size()});
}

template <class Seconds>
const std::vector<Seconds>& LayoutPieces::finished(
    std::span<const DirectionsOf<Seconds>> added) const {
  auto& all = std::get<PassesOfRanks<Seconds>>(evaluator_.passes_);
  all.clear();
  for (std::size_t run = 0; run < runs(); ++run) {
    all.ranks.push_back(length_of_run(run));
    for (const PassTime& chunk : passes(run).chunks) {
      all.passes.push_back(longer(chunk, added[run]));
    }
  }
  const std::vector<Seconds>& ends = evaluator_.clock_.finished(problem_, all, message());
  if constexpr (std::is_same_v<Seconds, Lanes>) keep_if_alone(added, ends);
  return ends;
}

// What the last of several timings tells, where nothing is added to it.
void LayoutPieces::keep_if_alone(std::span<const DirectionsOf<Lanes>> added,
                                 const std::vector<Lanes>& ends) const {
  if (!pieces_.finished.empty()) return;
  for (const DirectionsOf<Lanes>& part : added) {
    if (part.forward.each.back() > 0 || part.backward.each.back() > 0) return;
  }
  for (const Lanes& end : ends) pieces_.finished.push_back(end.each.back());
}

template const std::vector<double>& LayoutPieces::finished(
    std::span<const DirectionsOf<double>>) const;
template const std::vector<Lanes>& LayoutPieces::finished(
    std::span<const DirectionsOf<Lanes>>) const;

double LayoutPieces::find_straggling() const {
  return *(shared_.straggling = straggling_part(problem_.cluster));
}

}  // namespace zeroplan
