// How many bytes does a rank of FSDP2 need? Front door: Fsdp2PeakBytes::highest.
#include "cost_model/runtime/fsdp2/peak_bytes.hpp"

#include <boost/container/small_vector.hpp>

#include "cost_model/program/fold.hpp"
#include "cost_model/rank/loss_parts.hpp"

namespace zeroplan {
namespace {

// Some 10 KB each.
constexpr std::size_t most_pieces = 500;
// Some 2 KB each.
constexpr std::size_t most_update_calls = 1'000;

template <class T>
std::int64_t number(T value) {
  return static_cast<std::int64_t>(value);
}

// A number that no other flags have.
std::int64_t flags(std::initializer_list<bool> all) {
  std::int64_t bits = 0;
  for (const bool flag : all) bits = bits << 1 | std::int64_t{flag};
  return bits;
}

// What blocks and units depend on, but for what their places tell. `has_head`: of a chunk with it.
// `divided`: units are; the others are the same for any tokens.
Numbers<14> pieces_key(const Problem& p, MicroBatch micro_batch, bool has_head, bool divided) {
  const Layout& l = p.layout;
  // The later micro-batches of a pipeline find everything gathered, and reduce nothing; but for a
  // loss in parts.
  const bool parts = has_head && loss_parts(p).of_hidden();
  const bool shards = divided && (micro_batch == MicroBatch::first || !is_pipelined(p) || parts);
  const bool replicated = shards && l.hsdp > 0;
  const ShardWidths widths = shards ? shard_widths(p) : ShardWidths{};
  return {number(micro_batch),
          l.tp,
          divided ? l.cp : 0,
          l.ep,
          l.etp,
          divided ? l.micro_batch : 0,
          number(l.sequence_parallel),
          flags({divided, defers_reduction(p), replicated, shards, parts && !head_alternates(p),
                 is_pipelined(p), l.offload == Offload::parameters}),
          p.training.sequence_length,
          number(p.training.precision),
          number(p.training.attention),
          has_head ? loss_parts(p).count : 0,
          widths.dense,
          widths.expert};
}

// What calls that gather and reduce units depend on: which they are and who divides them. Neither
// on tokens nor on recompute, and of the schedule on no more than when a loss in parts runs.
Numbers<17> update_key(const Problem& p, const Stage& stage) {
  const Layout& l = p.layout;
  const ShardWidths widths = shard_widths(p);
  const bool always = p.runtime.fsdp2.reshard_after_forward == Reshard::always;
  const StageContent content = content_of(p.model, stage);
  return {l.tp,
          l.pp,
          l.cp,
          l.ep,
          l.etp,
          number(l.sequence_parallel),
          l.hsdp,
          number(l.zero),
          number(l.offload),
          flags({always, defers_reduction(p)}),
          p.runtime.fsdp2.no_reshard_layers,
          widths.dense,
          widths.expert,
          number(p.training.precision),
          stage.head ? 2 * loss_parts(p).count + number(head_alternates(p)) : 0,
          content[0],
          content[1]};  // the others count layers in 16 bits, which FSDP2 has not
}

Bytes bytes_of(const std::vector<TensorSpec>& tensors) {
  Bytes sum;
  for (const TensorSpec& tensor : tensors) sum += tensor.bytes;
  return sum;
}

// Without a pipeline, one after the other.
PassBytes first_and_last(const ChunkBytes& first, const ChunkBytes& last) {
  PassBytes passes;
  for (const ChunkBytes& own : {first, last}) {
    for (const auto& [left, peak] : {std::pair(own.forward_left, own.forward_peak),
                                     std::pair(own.backward_left, own.backward_peak)}) {
      PassBytes pass;
      pass.left = left;
      pass.peak = peak;
      add_run(passes, pass, 1);
    }
  }
  return passes;
}

// Whether it does not matter which of the model's layers a chunk of a pipeline holds.
bool are_layers_alike(const Problem& p) {
  return p.model.layer_kinds.empty() && p.model.attention.windowed_layers == 0 && is_pipelined(p);
}

// What chunks of the same pieces depend on.
Numbers<7> chunk_key(const Problem& p, const LayerRange& range, const ChunkProgram& place) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const bool always = set.reshard_after_forward == Reshard::always;
  return {are_layers_alike(p) ? 0 : range.first,
          range.last - range.first,
          flags({place.receives, place.sends}),
          number(p.layout.zero),
          4 * number(p.layout.recompute) + 2 * number(set.selective_rest) + number(always),
          set.recompute_num_layers,
          set.no_reshard_layers};
}

}  // namespace

Fsdp2PeakBytes::Pieces& Fsdp2PeakBytes::pieces(const Problem& problem,
                                               MicroBatch micro_batch,
                                               bool has_head) {
  const auto [found, added] = pieces_.try_emplace(pieces_key(problem, micro_batch, has_head, true));
  if (added) found->second.units = fsdp2_units(problem, inventory_);
  return found->second;
}

Fsdp2PeakBytes::Pieces& Fsdp2PeakBytes::whole_pieces(const Problem& problem, bool has_head) {
  const auto [found, added] =
      pieces_.try_emplace(pieces_key(problem, MicroBatch::first, has_head, false));
  if (added) found->second.units = fsdp2_units(problem, inventory_, ShardWidths{});
  return found->second;
}

Fsdp2PeakBytes::Chunk& Fsdp2PeakBytes::chunk(Pieces& known,
                                             const Problem& problem,
                                             const LayerRange& range,
                                             const ChunkProgram& place) {
  const auto [found, added] = known.chunks.try_emplace(chunk_key(problem, range, place));
  Chunk& chunk = found->second;
  if (!added) return chunk;
  chunk.links =
      Fsdp2Rank(problem, inventory_, known.units).links(range, !place.receives, !place.sends);
  for (const Fsdp2Link& link : chunk.links) {
    // Without a pipeline the backward pass of the head is over when that of a layer begins.
    const bool stays = is_pipelined(problem) ? link.output == nullptr
                                             : link.kept && link.kind != EagerLink::Kind::head;
    if (stays && link.unit != nullptr)
      chunk.gathered += link.count * bytes_of(link.unit->parameters);
    if (link.reduced != nullptr && leaves_whole(problem, MicroBatch::first)) {
      chunk.accumulated += link.count * link.reduced->accumulated;
    }
  }
  return chunk;
}

const Fsdp2PeakBytes::Chunk& Fsdp2PeakBytes::weighed_chunk(const Problem& problem,
                                                           const LayerRange& range,
                                                           const ChunkProgram& place,
                                                           MicroBatch micro_batch) {
  Pieces& known = pieces(problem, micro_batch, !place.sends);
  Chunk& chunk = this->chunk(known, problem, range, place);
  if (chunk.bytes) return chunk;
  const Fsdp2Rank rank(problem, inventory_, known.units);
  const Fsdp2Chain chain = rank.chain();
  RunsOfBytes runs;
  for (const Fsdp2Place& one : chain.places(chunk.links)) {
    const auto [block, is_new] = known.blocks.try_emplace(one.key());
    if (is_new) {
      const Block written = chain.block(one, micro_batch);
      block->second = {block_bytes(written), calls_of(written.calls, true)};
    }
    runs.push_back({&block->second.bytes, one.count});
  }
  chunk.bytes = chunk_bytes(place, runs);
  return chunk;
}

template <class Write>
const Fsdp2PeakBytes::StepPiece& Fsdp2PeakBytes::step_piece(Pieces& known,
                                                            const Fsdp2StepPart& part,
                                                            const Write& write) {
  const auto [found, added] = known.step.try_emplace(part.key());
  if (!added) return found->second;
  BlockWriter w;
  write(w);
  Block written = w.finish();
  found->second = {forward_bytes(written), std::move(written.calls)};
  return found->second;
}

Fsdp2PeakBytes::UpdateCalls Fsdp2PeakBytes::find_update_calls(const Problem& problem,
                                                              const Stage& stage) {
  Pieces& first = pieces(problem, MicroBatch::first, stage.head);
  const Fsdp2Rank rank(problem, inventory_, first.units);
  const StageProgram program = rank.places(stage);
  UpdateCalls sum;
  std::vector<const std::vector<Fsdp2Link>*> links;
  const auto add_pass = [&](MicroBatch micro_batch, std::vector<Call>& calls) {
    links.clear();
    for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
      const ChunkProgram& place = program.chunks[i];
      links.push_back(&weighed_chunk(problem, stage.chunks[i], place, micro_batch).links);
      const Pieces& known = pieces(problem, micro_batch, !place.sends);
      for (const Fsdp2Place& one : rank.chain().places(*links.back())) {
        for (const Call& call : known.blocks.at(one.key()).calls) add(calls, call, one.count);
      }
    }
  };
  add_pass(MicroBatch::later, sum.of_later);
  add_pass(MicroBatch::first, sum.of_step);
  if (defers_reduction(problem)) add_pass(MicroBatch::last, sum.of_step);
  rank.reductions(links, [&](const Fsdp2StepPart& part, std::int64_t times, const auto& write) {
    for (const Call& call : step_piece(first, part, write).calls) {
      add(sum.of_step, zeroplan::of_step(call), times);
    }
  });
  return sum;
}

std::optional<std::vector<Call>> Fsdp2PeakBytes::update_calls(const Problem& problem,
                                                              const Stage& stage) {
  if (update_calls_.size() > most_update_calls) update_calls_.clear();
  const auto [found, added] = update_calls_.try_emplace(update_key(problem, stage));
  if (added) found->second = find_update_calls(problem, stage);
  std::vector<Call> sum;
  const std::int64_t others = forward_passes(problem) - (defers_reduction(problem) ? 2 : 1);
  for (const Call& call : found->second.of_later) add(sum, call, others);
  for (const Call& call : found->second.of_step) add(sum, call);
  return sum;
}

const Fsdp2PeakBytes::Held& Fsdp2PeakBytes::held(Pieces& known,
                                                 const Problem& problem,
                                                 const Stage& stage,
                                                 std::int64_t index) {
  const Layout& l = problem.layout;
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  const bool always = set.reshard_after_forward == Reshard::always;
  const std::int64_t resharding = is_pipelined(problem) ? -1 : 2 * number(l.zero) + number(always);
  const auto [found, added] =
      known.held.try_emplace({index, l.pp, l.vpp, number(l.schedule), l.first_stage, l.last_stage,
                              resharding, set.no_reshard_layers});
  Held& sizes = found->second;
  if (!added) return sizes;
  const StageProgram program = Fsdp2Rank(problem, inventory_, known.units).places(stage);
  // No chunk ends the model but the one with the head.
  Pieces& inside = stage.head && stage.chunks.size() > 1 ? whole_pieces(problem, false) : known;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const ChunkProgram& place = program.chunks[i];
    const Chunk& own = chunk(place.sends ? inside : known, problem, stage.chunks[i], place);
    sizes.gathered += own.gathered;
    sizes.accumulated += own.accumulated;
  }
  return sizes;
}

LeastBytes Fsdp2PeakBytes::at_least(const Problem& problem,
                                    const Stage& stage,
                                    std::int64_t index,
                                    const ModelStates& states) {
  if (pieces_.size() > most_pieces) pieces_.clear();
  Pieces& known = whole_pieces(problem, stage.head);
  const Held& own = held(known, problem, stage, index);
  const Fsdp2Rank rank(problem, inventory_, known.units);
  StageProgram program = rank.places(stage);
  rank.add_resident_to(program, stage, {});
  const MemoryBreakdown resident = sum(program.resident);
  const Bytes gradients = rank.holds_gradients() ? states.gradients : Bytes{};
  return {.states = states.parameters + states.optimizer_states + gradients,
          .buffers = resident.allocated() - resident[Category::gradients],
          // The last micro-batch of several finds all that they add up to.
          .until_backward = own.gathered + (is_pipelined(problem) ? Bytes{} : own.accumulated),
          .at_end = is_pipelined(problem) ? own.accumulated + own.gathered : Bytes{}};
}

std::optional<Bytes> Fsdp2PeakBytes::highest(const Problem& problem,
                                             const Stage& stage,
                                             std::int64_t index,
                                             const ModelStates& states) {
  const bool parted = splits_backward(problem.layout.schedule);
  if (parted) return std::nullopt;
  if (pieces_.size() > most_pieces) pieces_.clear();
  Pieces& known = pieces(problem, MicroBatch::first, stage.head);
  const Fsdp2Rank rank(problem, inventory_, known.units);
  StageProgram program = rank.places(stage);
  const RankInFlight& profile =
      in_flight_.find_or_make(problem, stage, index, program, FirstMicroBatch::apart);

  boost::container::small_vector<const Chunk*, 8> kinds;
  boost::container::small_vector<ChunkBytes, 8> sizes;
  const auto weigh = [&](MicroBatch micro_batch) {
    kinds.clear();
    for (const std::size_t first : profile.firsts) {
      kinds.push_back(
          &weighed_chunk(problem, stage.chunks[first], program.chunks[first], micro_batch));
      sizes.push_back(*kinds.back()->bytes);
    }
  };
  const bool defers = defers_reduction(problem);
  weigh(defers ? MicroBatch::last : MicroBatch::later);
  weigh(MicroBatch::first);
  const std::optional<PassBytes> passes =
      defers ? first_and_last(sizes[1], sizes[0])
             : profile.passes({sizes.data(), sizes.size()}, program.boundary);
  if (!passes) return std::nullopt;

  boost::container::small_vector<const std::vector<Fsdp2Link>*, 8> links;
  for (const std::int32_t kind : profile.kinds) {
    links.push_back(&kinds[static_cast<std::size_t>(kind)]->links);
  }
  PassBytes step;
  rank.end_of_step(links, states.parameters,
                   [&](const Fsdp2StepPart& part, std::int64_t times, const auto& write) {
                     add_run(step, step_piece(known, part, write).bytes, times);
                   });
  rank.add_resident_to(program, stage, states);
  return highest_bytes(sum(program.resident).allocated(), *passes, step,
                       forward_bytes(rank.checkpoint(stage)));
}

}  // namespace zeroplan
