// What does a pipeline rank of Megatron-DeepSpeed hold and run? Front door:
// megatron_deepspeed_stage.
#include "cost_model/runtime/deepspeed/megatron_stage.hpp"

#include <algorithm>

#include "cost_model/program/layer_shape.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/deepspeed/step.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

// Between the wire and the first layer: what is received is made whole.
Block receive_block(const LayerShape& s) {
  BlockWriter w(Bytes{}, s.residual());
  w.allocate(Block::output);
  w.begin_backward();
  w.free(Block::output_grad);
  return w.finish();
}

// Between the last layer and the wire: a copy of this rank's part stays until the backward pass,
// which makes output and gradient whole again. Without tensor parallelism the output itself stays.
Block send_block(const LayerShape& s) {
  const std::int64_t tp = s.problem.layout.tp;
  BlockWriter w(s.residual(), Bytes{});
  Tensor part = BlockWriter::none;
  if (tp > 1) {
    part = w.save("part of the output", Bytes{ceil_div(s.residual().count(), tp)});
    w.free(Block::input);
  }
  w.begin_backward();
  const Tensor whole = w.temporary("whole output", tp > 1 ? s.residual() : Bytes{});
  w.free(w.temporary("gathered parts", tp > 1 ? s.residual() : Bytes{}));
  w.allocate(Block::input_grad);
  w.free(whole);
  w.free(part);
  if (tp == 1) w.free(Block::input);
  return w.finish();
}

// Checkpoints that the first block makes for every layer at once.
constexpr Carried contiguous_checkpoint{"contiguous checkpoint", Category::activations};

// Where the part of a checkpoint that stays is made: by its layer, or with all others.
enum class CheckpointMemory { own, contiguous };

// How parts of a checkpoint that ranks of tensor parallelism keep become the whole (DeepSpeed
// runtime/activation_checkpointing/checkpointing.py gather_partitioned_activations); nothing where
// each keeps it.
Call gathered_checkpoint(const LayerShape& s) {
  const bool divides = s.problem.runtime.deepspeed.partition_activations;
  return {"tp", Collective::all_gather, During::backward, divides ? s.residual() : Bytes{}};
}

// A recomputed layer of which a checkpoint keeps `part` of its input instead: the whole is built
// again when its backward pass begins.
Block partitioned(Block block, Bytes part, const Call& gathered, CheckpointMemory memory) {
  const Bytes whole = block.tensors[Block::input].bytes;
  const auto first = static_cast<Tensor>(block.tensors.size());
  const Tensor kept = first;
  const Tensor rebuilt = first + 1;
  const bool contiguous = memory == CheckpointMemory::contiguous;
  block.tensors.push_back(
      {.name = contiguous ? contiguous_checkpoint.name : "part of the checkpoint",
       .bytes = Bytes{round_up(part.count(), allocation_unit)},
       .category = Category::activations,
       .carried = contiguous});
  block.tensors.push_back({"rebuilt checkpoint", whole, Category::temporaries});
  using enum Event::Kind;
  if (!contiguous) block.forward.push_back({kept, allocate});
  block.forward.push_back({Block::input, free});
  std::vector<Event> backward{{rebuilt, allocate}};
  backward.push_back({static_cast<std::int32_t>(block.calls.size()), call});
  block.calls.push_back(gathered);
  for (const Event& event : block.backward) {
    if (event.is_of_tensor() && event.index == Block::input) {
      backward.insert(backward.end(), {{rebuilt, free}, {kept, free}});
    } else {
      backward.push_back(event);
    }
  }
  block.backward = std::move(backward);
  return block;
}

// What DeepSpeed adds around a block of Megatron-LM's.
struct Around {
  std::vector<Bytes> gradients;  // of the block's weights, left behind
  bool first = false;            // of the rank: its backward pass is the last
  bool last = false;
  std::vector<Bytes> made = {};    // contiguous checkpoints, in its forward pass
  std::vector<Bytes> unused = {};  // contiguous checkpoints that no layer takes
};

// Events at the start and the end of a pass.
void insert(Block& block, std::vector<Event>& pass, bool at_end, const Block& events) {
  std::vector<Event> shifted;
  const auto tensors = static_cast<std::int32_t>(block.tensors.size());
  const auto calls = static_cast<std::int32_t>(block.calls.size());
  for (Event event : events.forward) {
    if (!event.computes()) event.index += event.calls() ? calls : tensors;
    shifted.push_back(event);
  }
  block.tensors.insert(block.tensors.end(), events.tensors.begin(), events.tensors.end());
  block.calls.insert(block.calls.end(), events.calls.begin(), events.calls.end());
  pass.insert(at_end ? pass.end() : pass.begin(), shifted.begin(), shifted.end());
}

// The block with what DeepSpeed adds around it. Gradients come at the end: the memory of
// embedding's and head's is that of the temporaries they make.
std::shared_ptr<const FoldedBlock> wrapped(const std::shared_ptr<const FoldedBlock>& bare,
                                           const Around& around,
                                           const DeepspeedPlan& plan,
                                           bool first_micro_batch) {
  Block block = bare->block();
  if (around.first) {
    BlockWriter w;
    open_forward(w, plan);
    for (const Bytes bytes : around.made) w.put(contiguous_checkpoint, bytes);
    insert(block, block.forward, false, w.finish());
  }
  if (around.last) {
    BlockWriter forward, backward;
    open_head(forward, plan);
    insert(block, block.forward, false, forward.finish());
    open_backward(backward, plan, first_micro_batch);
    own_gradients(backward, plan, first_micro_batch);
    insert(block, block.backward, false, backward.finish());
  }
  BlockWriter w;
  for (const Bytes bytes : around.gradients) w.put(deepspeed_gradient, bytes);
  reduce_gradients(w, plan, plan.copy_in_backward());
  for (const Bytes bytes : around.unused) w.take(contiguous_checkpoint, bytes);
  if (around.first) {
    own_late_gradients(w, plan, first_micro_batch);
    close_backward(w, plan, first_micro_batch);
    release_gathered(w, plan);
  }
  insert(block, block.backward, true, w.finish());
  return folded(std::move(block), bare->loss);
}

class Builder {
 public:
  Builder(const Problem& problem,
          const WeightInventory& inventory,
          const MegatronBlocks& blocks,
          const Stage& stage)
      : p_(problem),
        inventory_(inventory),
        stage_(stage),
        shape_(layer_shape(p_)),
        blocks_(blocks),
        plan_(deepspeed_plan(p_, inventory, stage)) {}

  StageProgram build() {
    StageProgram program{.boundary = Bytes{round_up(shape_.residual().count(), allocation_unit)},
                         .borders_resident = true};
    program.chunks.push_back(
        {.runs = runs(MicroBatch::later), .first_runs = runs(MicroBatch::first)});
    program.step = deepspeed_step(plan_, program.chunks.front());
    add_deepspeed_states(program, plan_, model_states(p_, inventory_, stage_));
    add_plain_buffers(program, p_, inventory_, stage_);
    add_pipeline_buffers(program);
    return program;
  }

 private:
  bool pipelined() const { return p_.layout.pp > 1; }

  Runs runs(MicroBatch micro_batch) const {
    const bool full = p_.layout.recompute == Recompute::full;
    const bool first_micro_batch = micro_batch == MicroBatch::first;
    const auto wrap = [&](const std::shared_ptr<const FoldedBlock>& block,
                          const std::vector<Weight>& weights, bool first, bool last) {
      Around around{gradients_of(weights, micro_batch), first, last};
      if (first && contiguous()) {
        const std::int64_t layers = layer_count(stage_);
        const std::int64_t set = p_.runtime.deepspeed.number_checkpoints;
        const std::int64_t made = std::max(layers, set);
        around.made.assign(static_cast<std::size_t>(made), checkpoint_part());
        around.unused.assign(static_cast<std::size_t>(made - layers), checkpoint_part());
      }
      return wrapped(block, around, plan_, first_micro_batch);
    };
    Runs list;
    list.push_back({stage_.embedding ? wrap(blocks_.embedding, inventory_.embedding, true, false)
                                     : wrap(folded(receive_block(shape_)), {}, true, false)});
    ByKind<std::shared_ptr<const FoldedBlock>> layers;
    const LayerRange range = stage_.chunks.front();
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const LayerKind kind = kind_of(p_.model, i);
      auto& layer = layers[kind];
      if (!layer) {
        const MegatronLayer& blocks = blocks_.layers[kind];
        layer = wrap(full ? checkpointed(blocks.recomputed) : blocks.kept, inventory_.layer(kind),
                     false, false);
      }
      append(list, layer);
    }
    const std::vector<Weight> head = stage_.embedding ? inventory_.head : tied_or_own_head();
    list.push_back({stage_.head ? wrap(blocks_.head, head, false, true)
                                : wrap(folded(send_block(shape_)), {}, false, true)});
    return list;
  }

  // ZeRO-R, section 6.1: a checkpoint divided over tensor parallelism, or moved to the host.
  std::shared_ptr<const FoldedBlock> checkpointed(
      const std::shared_ptr<const FoldedBlock>& layer) const {
    const DeepspeedSettings& set = p_.runtime.deepspeed;
    if (!set.partition_activations && !checkpoints_on_host(p_)) return layer;
    return folded(partitioned(layer->block(), checkpoint_part(), gathered_checkpoint(shape_),
                              contiguous() ? CheckpointMemory::contiguous : CheckpointMemory::own));
  }

  // What stays of a checkpoint on the GPU.
  Bytes checkpoint_part() const {
    if (checkpoints_on_host(p_)) return {};
    const std::int64_t parts = p_.runtime.deepspeed.partition_activations ? p_.layout.tp : 1;
    return Bytes{ceil_div(shape_.residual().count(), parts)};
  }
  bool contiguous() const {
    return p_.runtime.deepspeed.contiguous_checkpoints && p_.layout.recompute == Recompute::full &&
           !checkpoints_on_host(p_);
  }

  std::vector<Weight> tied_or_own_head() const {
    std::vector<Weight> weights = inventory_.head;
    weights.insert(weights.end(), inventory_.tied_head.begin(), inventory_.tied_head.end());
    return weights;
  }

  std::vector<Bytes> gradients_of(const std::vector<Weight>& weights,
                                  MicroBatch micro_batch) const {
    std::vector<Bytes> list;
    if (!plan_.keeps_gradients() || micro_batch == MicroBatch::later) return list;
    for (const Weight& w : weights) {
      list.push_back(Bytes{shape_.token.element * local_weight(w, p_).elements()});
    }
    return list;
  }

  void add_pipeline_buffers(StageProgram& program) const {
    if (!pipelined()) return;
    const Bytes part{ceil_div(shape_.residual().count(), p_.layout.tp)};
    const Bytes both = (static_cast<std::int64_t>(!stage_.embedding) + !stage_.head) * part;
    add_resident(program, "receive buffers", both, Category::communication_buffers);
    if (!stage_.head) return;
    constexpr std::int64_t slots = 2;
    constexpr std::int64_t fp32 = 4;
    const std::int64_t logits = shape_.tokens * local_weight(inventory_.embedding.front(), p_).rows;
    add_resident(program, "logits of earlier micro-batches", Bytes{slots * fp32 * logits},
                 Category::activations);
  }

  const Problem& p_;
  const WeightInventory& inventory_;
  const Stage& stage_;
  LayerShape shape_;
  const MegatronBlocks& blocks_;
  DeepspeedPlan plan_;
};

}  // namespace

Problem with_early_layers(const Problem& problem) {
  Problem p = problem;
  p.runtime.megatron = {.masked_softmax_fusion = true,
                        .bias_activation_fusion = true,
                        .hidden_dropout = problem.runtime.deepspeed.hidden_dropout,
                        .attention_dropout = problem.runtime.deepspeed.attention_dropout,
                        .cp_comm_type = ContextTransport::a2a};
  return p;
}

Block megatron_deepspeed_block(const Problem& problem,
                               const WeightInventory& inventory,
                               BlockKind block,
                               LayerKind layer,
                               RepeatSet repeated) {
  const Problem early = with_early_layers(problem);
  Block made = megatron_block(early, inventory, block, layer, repeated);
  if (repeated != whole_layer) return made;
  BlockWriter w;
  w.call(gathered_checkpoint(layer_shape(early)));
  insert(made, made.backward, false, w.finish());
  return made;
}

StageProgram megatron_deepspeed_stage(const Problem& problem,
                                      const WeightInventory& inventory,
                                      const MegatronBlocks& blocks,
                                      const Stage& stage) {
  return Builder(problem, inventory, blocks, stage).build();
}

}  // namespace zeroplan
