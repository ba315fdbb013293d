// How many bytes does a rank of FSDP2 need? Front door: WeighedFsdp2::highest.
#include "cost_model/program/fsdp2/weighed.hpp"

#include <boost/container/small_vector.hpp>

#include "cost_model/program/fold.hpp"

namespace zeroplan {
namespace {

// Some 10 KB each.
constexpr std::size_t most_pieces = 4'000;

template <class T>
std::int64_t number(T value) {
  return static_cast<std::int64_t>(value);
}

// What blocks and units depend on, but for what their places tell.
Numbers<12> pieces_key(const Problem& p) {
  const Layout& l = p.layout;
  const ShardWidths widths = shard_widths(p);
  return {l.tp,
          l.cp,
          l.ep,
          l.etp,
          l.micro_batch,
          number(l.sequence_parallel),
          2 * number(is_pipelined(p)) + number(l.offload == Offload::parameters),
          p.training.sequence_length,
          number(p.training.precision),
          number(p.training.attention),
          widths.dense,
          widths.expert};
}

// Whether it does not matter which of the model's layers a chunk of a pipeline holds.
bool are_layers_alike(const Problem& p) {
  return p.model.layer_kinds.empty() && p.runtime.fsdp2.selective_ac_layers == 0 && is_pipelined(p);
}

}  // namespace

WeighedFsdp2::Pieces& WeighedFsdp2::pieces(const Problem& problem) {
  if (pieces_.size() > most_pieces) pieces_.clear();
  const auto [found, added] = pieces_.try_emplace(pieces_key(problem));
  if (added) found->second.units = fsdp2_units(problem, inventory_);
  return found->second;
}

const WeighedFsdp2::Chunk& WeighedFsdp2::chunk(const Problem& problem,
                                               const Stage& stage,
                                               std::size_t index,
                                               const ChunkProgram& place,
                                               const Fsdp2Rank& rank,
                                               Pieces& pieces) {
  const LayerRange& range = stage.chunks[index];
  const auto [found, added] = pieces.chunks.try_emplace(
      {are_layers_alike(problem) ? 0 : range.first, range.last - range.first,
       2 * number(place.receives) + number(place.sends), number(problem.layout.zero),
       2 * number(problem.layout.recompute) +
           number(problem.runtime.fsdp2.reshard_after_forward == Reshard::always)});
  Chunk& chunk = found->second;
  if (!added) return chunk;
  chunk.links = rank.links(range, !place.receives, !place.sends);
  const Fsdp2Chain chain = rank.chain();
  const std::vector<Fsdp2Place> places = chain.places(chunk.links);
  const auto weigh = [&](MicroBatch micro_batch) {
    std::vector<RunOfBytes> runs;
    for (const Fsdp2Place& one : places) {
      const auto [block, is_new] = pieces.blocks.try_emplace({one.key(), micro_batch});
      if (is_new) block->second = block_bytes(chain.block(one, micro_batch));
      runs.push_back({&block->second, one.count});
    }
    return chunk_bytes(place, runs);
  };
  chunk.first = weigh(MicroBatch::first);
  chunk.later = weigh(MicroBatch::later);
  return chunk;
}

std::optional<Bytes> WeighedFsdp2::highest(const Problem& problem,
                                           const Stage& stage,
                                           std::int64_t index,
                                           const ModelStates& states) {
  const bool parted = problem.layout.schedule > Schedule::interleaved;
  // Every Nth layer stands elsewhere in each chunk.
  const bool uneven = problem.runtime.fsdp2.selective_ac_layers > 0 && problem.layout.vpp > 1;
  if (parted || uneven) return std::nullopt;
  Pieces& known = pieces(problem);
  const Fsdp2Rank rank(problem, inventory_, known.units);
  StageProgram program = rank.places(stage);
  const ProfileOfRank& profile =
      profiles_.of(problem, stage, index, program, FirstMicroBatch::apart);

  boost::container::small_vector<const Chunk*, 8> kinds;
  boost::container::small_vector<ChunkBytes, 8> sizes;
  for (const std::size_t first : profile.firsts) {
    kinds.push_back(&chunk(problem, stage, first, program.chunks[first], rank, known));
    sizes.push_back(kinds.back()->later);
  }
  for (const Chunk* kind : kinds) sizes.push_back(kind->first);
  const std::optional<PassBytes> passes =
      profile.passes({sizes.data(), sizes.size()}, program.boundary);
  if (!passes) return std::nullopt;

  boost::container::small_vector<const std::vector<Fsdp2Link>*, 8> links;
  for (const std::int32_t kind : profile.kinds) {
    links.push_back(&kinds[static_cast<std::size_t>(kind)]->links);
  }
  PassBytes step;
  rank.end_of_step(links, states.parameters,
                   [&](const Fsdp2StepPart& part, std::int64_t times, const auto& write) {
                     const auto [found, added] = known.step.try_emplace(part.key());
                     if (added) {
                       BlockWriter w;
                       write(w);
                       found->second = forward_bytes(w.finish());
                     }
                     add_run(step, found->second, times);
                   });
  rank.add_resident_to(program, stage, states);
  return highest_bytes(sum(program.resident).allocated(), *passes, step,
                       forward_bytes(rank.checkpoint(stage)));
}

}  // namespace zeroplan
