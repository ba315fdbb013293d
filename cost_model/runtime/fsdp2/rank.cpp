// What does a rank of FSDP2 hold and run? Front door: Fsdp2Rank.
#include "cost_model/runtime/fsdp2/rank.hpp"

#include <algorithm>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

// torch pipelining makes a receive buffer for every micro-batch of the step.
Bytes receive_buffers(const Problem& p, const std::vector<ChunkProgram>& chunks, Bytes boundary) {
  std::int64_t count = 0;
  for (const ChunkProgram& chunk : chunks) count += chunk.receives + chunk.sends;
  return count * micro_batches(p) * boundary;
}

}  // namespace

std::vector<Fsdp2Link> Fsdp2Rank::links(const LayerRange& range,
                                        bool begins_model,
                                        bool ends_model) const {
  using Kind = EagerLink::Kind;
  const bool whole_root = root_ != nullptr;
  const Fsdp2Settings& set = p_.runtime.fsdp2;
  const bool always = set.reshard_after_forward == Reshard::always;
  const std::int64_t stays_gathered =
      std::max<std::int64_t>(keeps_last_layer(p_) && !always, set.no_reshard_layers);
  const bool never = p_.layout.zero == ZeroStage::gradients || is_pipelined(p_);
  const bool twice = p_.layout.recompute != Recompute::none;
  std::vector<Fsdp2Link> links;
  if (begins_model) {
    links.push_back({{.kind = Kind::embedding, .keeps_mask = twice},
                     whole_root ? nullptr : &units_.embedding,
                     never});
  }
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const bool kept = never || i >= p_.model.layers - stays_gathered;
    const Checkpoint checkpoint = recomputes_layer(p_, range, i) ? recipe_.code.style.checkpoint
                                  : set.selective_rest           ? Checkpoint::operators
                                                                 : Checkpoint::none;
    const EagerLink layer = layer_link(p_.model, i, checkpoint);
    const Fsdp2Link link{layer, &units_.layer(layer.layer), kept};
    if (!links.empty() && links.back().has_like(link)) {
      ++links.back().count;
    } else {
      links.push_back(link);
    }
  }
  if (ends_model) {
    // A loss that runs the output layer part by part reshards it when it is done.
    const bool in_parts = recipe_.code.loss_parts.of_hidden();
    // PyTorch kept what it shards as the root, until it could be told otherwise.
    const bool as_root = whole_root && keeps_last_layer(p_);
    const bool kept = !in_parts && (never || as_root || !(always || leaves_ends_to_root(p_)));
    Fsdp2Link head{
        {.kind = Kind::head, .keeps_mask = twice}, whole_root ? nullptr : &units_.head, kept};
    if (in_parts) head.output = &units_.output;
    if (in_parts && !whole_root) head.reduced = &units_.before_output;
    links.push_back(head);
  }
  return links;
}

StageProgram Fsdp2Rank::places(const Stage& stage) const {
  const Bytes residual = layer_shape(p_).residual();
  StageProgram program{.boundary = Bytes{round_up(residual.count(), allocation_unit)},
                       .borders_resident = true};
  program.chunks.resize(stage.chunks.size());
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    ChunkProgram& chunk = program.chunks[i];
    chunk.receives = !begins_model(stage, i);
    chunk.sends = chunk.keeps_output = !ends_model(stage, i);
  }
  return program;
}

void Fsdp2Rank::add_resident_to(StageProgram& program,
                                const Stage& stage,
                                const ModelStates& states) const {
  constexpr std::size_t most = 8;
  program.resident.reserve(most);
  add_resident(program, "sharded parameters", states.parameters, Category::parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  if (holds_gradients()) {
    const bool twice = unties_ends(p_) && stage.head;
    add_resident(program, "gradients",
                 states.gradients + (twice ? units_.output.gradient : Bytes{}),
                 Category::gradients);
  }
  add_plain_buffers(program, p_, inventory_, stage);
  const Bytes table{4 * p_.training.sequence_length * p_.model.attention.head_dim};
  if (recipe_.cosine_rotary) {
    // Cosine and sine stand there for each feature, not for each pair.
    add_resident(program, "rest of the rotary table", table, Category::workspace);
  }
  if (recipe_.rotary_in_layers && has_rotary_table(p_)) {
    std::int64_t others = -1;
    for (const LayerRange& range : stage.chunks) others += range.last - range.first;
    add_resident(program, "rotary tables of the other layers",
                 std::max<std::int64_t>(others, 0) * (recipe_.cosine_rotary ? 2 : 1) * table,
                 Category::workspace);
  }
  add_resident(program, "receive buffers", receive_buffers(p_, program.chunks, program.boundary),
               Category::communication_buffers);
}

void Fsdp2Rank::write_reduction(BlockWriter& w, const Fsdp2StepPart& part) const {
  // Gradients are cut before their parameters are resharded.
  const bool cuts = part.reduced->cut != part.reduced->accumulated;
  Tensor rows = BlockWriter::none;
  if (cuts) {
    rows = w.allocate(fsdp2_embedding_rows, part.reduced->cut, Category::gradients);
    w.take(fsdp2_accumulated, part.reduced->accumulated);
  }
  if (is_pipelined(p_)) {
    for (const TensorSpec& spec : part.unit->parameters) w.take(fsdp2_parameter, spec.bytes);
  }
  const auto free = [&] {
    cuts ? w.free(rows) : w.take(fsdp2_accumulated, part.reduced->accumulated);
  };
  write_reduce(w, *part.reduced, part.bytes, gradient_shard(), recipe_,
               all_of(*part.reduced, free));
}

Block Fsdp2Rank::checkpoint(const Stage& stage) const {
  if (!p_.runtime.fsdp2.full_state_dict) return {};
  BlockWriter w;
  Bytes largest = std::ranges::max_element(units_.layers, {}, &Fsdp2Unit::largest)->largest;
  if (stage.embedding) largest = std::max(largest, units_.embedding.largest);
  if (stage.head) largest = std::max(largest, units_.head.largest);
  w.free(w.temporary("gathered parameter", largest));
  return w.finish();
}

}  // namespace zeroplan
