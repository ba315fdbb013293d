// What does a pipeline rank of Megatron-Core hold and run? Front door: megatron_stage.
#include <algorithm>
#include <span>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/chunk_groups.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/mtp.hpp"
#include "cost_model/runtime/megatron/offload.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/schedule/pipeline.hpp"
#include "cost_model/states/buffers.hpp"

namespace zeroplan {
namespace {

void add(std::vector<TensorSpec>& out, std::string_view name, Bytes bytes, Category category) {
  if (bytes > Bytes{})
    out.push_back({name, Bytes{round_up(bytes.count(), allocation_unit)}, category});
}

// Buffers that stay with the modules, besides weights: rotary tables, the all-gather buffer of the
// output layer, the score buffer of local attention.
void add_module_buffers(std::vector<TensorSpec>& out, const MegatronShape& s, const Stage& stage) {
  const Problem& p = s.problem;
  const std::int64_t local_sequence = p.training.sequence_length / p.layout.cp;
  const AttentionSpec& a = p.model.attention;
  const std::int64_t layers = layer_count(stage);
  if (turns_heads(p.model)) {
    // fp32 angles, one table a chunk; latent attention has cosine and sine in 16 bits a layer.
    const auto chunks = static_cast<std::int64_t>(stage.chunks.size());
    const Bytes table = a.mla ? 4 * layers * Bytes{local_sequence * a.mla->qk_rope_head_dim}
                              : 4 * chunks * Bytes{local_sequence * a.head_dim};
    add(out, "rotary table", table, Category::workspace);
  }
  const bool local_layers = s.settings().local_layers();
  const bool unfused = p.training.attention == AttentionKernel::unfused;
  Bytes shared;
  if (stage.head) shared = s.gathered();
  if (local_layers && unfused) {
    shared = std::max(shared, Bytes{2 * s.token.heads * s.tokens * p.training.sequence_length});
  }
  add(out, "global memory buffer", shared, Category::workspace);
  if (p.model.moe) {
    add(out, "router probabilities of the dispatcher",
        Bytes{2 * p.model.moe->experts * s.tokens * expert_layers(p, stage)}, Category::workspace);
  }
}

// The dataloader's mask, of which context parallelism leaves a rank the rows of its tokens
// (core/utils.py get_batch_on_this_cp_rank). Only the ends of a pipeline read a batch (Megatron-LM
// @d98e8a64dd pretrain_gpt.py get_batch).
TensorSpec attention_mask(const Problem& p) {
  const std::int64_t local_sequence = p.training.sequence_length / p.layout.cp;
  const Bytes bytes{p.layout.micro_batch * local_sequence * p.training.sequence_length};
  return {"attention mask", Bytes{round_up(bytes.count(), allocation_unit)}, Category::workspace};
}

// Whether checkpoints save the attention mask with the other arguments of what they run again.
bool checkpoints_mask(const Problem& p) {
  return p.layout.recompute == Recompute::full ||
         (repeats(p) & bit_of(RecomputeModule::core_attn)) != 0;
}

// Groups of layers that are recomputed together; a last, shorter group of one is a single layer.
void add_groups(Runs& runs,
                const Problem& p,
                const MegatronBlocks& blocks,
                const LayerRange& range,
                std::int64_t group) {
  for (std::int64_t first = range.first; first < range.last; first += group) {
    const std::int64_t last = std::min(first + group, range.last);
    if (last - first == 1) {
      append(runs, blocks.layers[kind_of(p.model, first)].recomputed);
      continue;
    }
    std::vector<LayerKind> kinds;
    for (std::int64_t i = first; i < last; ++i) kinds.push_back(kind_of(p.model, i));
    append(runs, folded(megatron_recomputed_layers(p, kinds)));
  }
}

// Where the first of the layers [first, last) is that is not of the first one's kind.
std::int64_t end_of_kind(const ModelSpec& model, std::int64_t first, std::int64_t last) {
  if (model.layer_kinds.empty()) return last;
  const LayerKind* kinds = model.layer_kinds.data();
  const LayerKind* next = std::find_if(kinds + first, kinds + last,
                                       [&](LayerKind kind) { return kind != kinds[first]; });
  return next - kinds;
}

// Each chunk is a block of its own to recompute method `block`, which takes its first layers
// (core/transformer/transformer_block.py).
void add_layers(Runs& runs,
                const Problem& p,
                const MegatronBlocks& blocks,
                const LayerRange& range) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool full = p.layout.recompute == Recompute::full;
  if (const std::int64_t group = megatron_layers_of_block(p); group > 1) {
    add_groups(runs, p, blocks, range, group);
    return;
  }
  const bool some = set.recompute_method == RecomputeMethod::block && set.recompute_num_layers > 0;
  const std::int64_t recomputed = !full  ? 0
                                  : some ? set.recompute_num_layers
                                         : range.last - range.first;
  const auto append_layers = [&](std::int64_t first, std::int64_t last, auto which) {
    for (std::int64_t i = first; i < last;) {
      const std::int64_t next = end_of_kind(p.model, i, last);
      append(runs, blocks.layers[kind_of(p.model, i)].*which, next - i);
      i = next;
    }
  };
  const std::int64_t first_kept = std::min(range.first + recomputed, range.last);
  const std::int64_t on_device = std::clamp(offloaded_layers(p), first_kept, range.last);
  append_layers(range.first, first_kept, &MegatronLayer::recomputed);
  append_layers(first_kept, on_device, &MegatronLayer::offloaded);
  append_layers(on_device, range.last, &MegatronLayer::kept);
}

// `moved`: their layers where groups wait on the host.
void add_mtp_modules(Runs& runs,
                     const Problem& p,
                     const MegatronBlocks& blocks,
                     std::span<const LayerBlocks::value_type> moved) {
  const bool full = p.layout.recompute == Recompute::full;
  const MtpLayers layers = mtp_layers(p);
  for (std::int64_t i = 0; i < trained_mtp_modules(p); ++i) {
    const auto table = static_cast<std::size_t>(table_gradient_of_module(p, i));
    runs.push_back({blocks.mtp_inputs[table]});
    for (const auto& [kind, repeated] : layers) {
      const MegatronLayer& layer = blocks.layers[kind];
      runs.push_back({!moved.empty()     ? moved.front()
                      : full && repeated ? layer.recomputed
                                         : layer.kept});
      if (!moved.empty()) moved = moved.subspan(1);
    }
    runs.push_back({blocks.mtp_head});
  }
}

// Elements of the largest parameter as Megatron-Core holds it: fused projections are one.
std::int64_t largest_parameter(const Problem& p,
                               const WeightInventory& inventory,
                               const Stage& stage) {
  std::int64_t largest = 0;
  const std::vector<Weight>* before = nullptr;  // layers of a kind are alike
  visit_weights(p, inventory, stage, [&](const std::vector<Weight>& weights) {
    if (&weights == before) return;
    before = &weights;
    std::int64_t fused = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool joins = i > 0 && weights[i].module == weights[i - 1].module &&
                         weights[i].expert == weights[i - 1].expert;
      const LocalWeight local = local_weight(weights[i], p);
      fused = (joins ? fused : 0) + local.rows * local.columns;
      largest = std::max(largest, fused);
    }
  });
  return largest;
}

// overlap_p2p_comm, which is on where a rank holds several chunks (training/arguments.py).
std::optional<EarlyReceipts> early_receipts(const Problem& p) {
  if (p.layout.schedule != Schedule::interleaved || p.layout.pp == 1) return std::nullopt;
  return EarlyReceipts{.ranks = p.layout.pp, .group = pipeline_of(p, 1).interleaving.group};
}

}  // namespace

std::vector<TensorSpec> megatron_states(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage,
                                        const ModelStates& states) {
  std::vector<TensorSpec> tensors;
  tensors.reserve(5);
  add(tensors, "parameter buffer", states.parameters, Category::parameters);
  add(tensors, "gradient buffer", states.gradients, Category::gradients);
  add(tensors, "fp32 master parameters", states.master_parameters, Category::master_parameters);
  add(tensors, "optimizer states", states.optimizer_states, Category::optimizer_states);
  add(tensors, "gathered embedding and head", communication_buffers(problem, inventory, stage),
      Category::communication_buffers);
  return tensors;
}

Block megatron_optimizer_step(const Problem& problem,
                              const WeightInventory& inventory,
                              const Stage& stage,
                              const ModelStates& states,
                              Bytes kept) {
  BlockWriter step;
  const Tensor inputs = step.allocate("inputs kept", kept, Category::activations);
  if (!widens_moments(problem)) {
    const Tensor wide = step.temporary("fp32 gradients", states.step_gradients);
    // Megatron-FSDP keeps them until the next step clears them, and gathers its first layers.
    TensorList early;
    if (is_megatron_fsdp(problem)) {
      for (const Bytes bucket : fsdp_gathered_early(problem, inventory, stage)) {
        early.push_back(step.allocate("gathered early", bucket, Category::communication_buffers,
                                      Stream::gather));
      }
    }
    step.free(early);
    step.free(wide);
    step.free(inputs);
    return step.finish();
  }
  // Experts that other ranks divide are updated by an optimizer of their own, after the others
  // (core/optimizer/optimizer.py ChainedOptimizer).
  const StateRecipe recipe = state_recipe(problem);
  const StageElements elements = stage_elements(problem, inventory, stage, recipe.padding);
  const std::int64_t at_once = has_expert_buffers(problem)
                                   ? std::max(elements.dense.shard, elements.expert.shard)
                                   : elements.shard();
  const Bytes bytes{recipe.step_gradient_bytes * at_once};
  const Tensor wide = step.temporary("fp32 moments", bytes);
  const Bytes narrow{2 * largest_parameter(problem, inventory, stage)};
  step.free(step.temporary("moment on its way back", std::min(narrow, Bytes{bytes.count() / 2})));
  step.free(wide);
  step.free(inputs);
  return step.finish();
}

std::vector<TensorSpec> megatron_buffers(const Problem& problem,
                                         const WeightInventory& inventory,
                                         const Stage& stage) {
  std::vector<TensorSpec> tensors;
  tensors.reserve(4);
  add(tensors, "workspaces and placeholder gradients", workspace(problem, inventory, stage),
      Category::workspace);
  add_module_buffers(tensors, megatron_shape(problem), stage);
  return tensors;
}

Bytes megatron_boundary(const Problem& problem) {
  return Bytes{round_up(megatron_shape(problem).residual().count(), allocation_unit)};
}

Runs megatron_layers(const Problem& problem,
                     const MegatronBlocks& blocks,
                     const LayerRange& range) {
  Runs runs;
  add_layers(runs, problem, blocks, range);
  return runs;
}

ChunkProgram megatron_chunk(const Problem& problem,
                            const MegatronBlocks& blocks,
                            const Stage& stage,
                            std::size_t i) {
  const bool first = begins_model(stage, i);
  const bool last = ends_model(stage, i);
  ChunkProgram chunk;
  chunk.receives = !first;
  chunk.sends = !last;
  const auto blocks_of = [&](InFlight in_flight) {
    Runs runs;
    if (first) runs.push_back({blocks.embedding});
    const LayerBlocks moved = layers_with_groups(problem, stage, i, in_flight);
    std::span<const LayerBlocks::value_type> left(moved);
    if (moved.empty()) {
      add_layers(runs, problem, blocks, stage.chunks[i]);
    } else {
      const auto own = static_cast<std::size_t>(stage.chunks[i].last - stage.chunks[i].first);
      for (const auto& layer : left.first(own)) append(runs, layer);
      left = left.subspan(own);
    }
    if (last) {
      add_mtp_modules(runs, problem, blocks, left);
      runs.push_back({blocks.head});
    }
    if (runs.empty()) runs.push_back({blocks.passed_on});
    return runs;
  };
  // What a chunk of several brings back is of another, which is not described.
  if (!megatron_passes_differ(problem) || last || forward_passes(problem) == 1) {
    chunk.runs = blocks_of(InFlight::alone);
  } else if (stage.chunks.size() == 1) {
    chunk.runs = blocks_of(InFlight::later);
    chunk.first_runs = blocks_of(InFlight::first);
    chunk.last_runs = blocks_of(InFlight::last);
  } else {
    chunk.runs = blocks_of(InFlight::apart);
    if (i + 1 == stage.chunks.size()) chunk.first_runs = blocks_of(InFlight::alone);
  }
  if (problem.runtime.megatron.create_attention_mask_in_dataloader && (first || last)) {
    chunk.batch = attention_mask(problem);
    chunk.keeps_batch = checkpoints_mask(problem);
  }
  return chunk;
}

StageProgram megatron_chunks(const Problem& problem,
                             const MegatronBlocks& blocks,
                             const Stage& stage) {
  StageProgram program{.boundary = megatron_boundary(problem), .early = early_receipts(problem)};
  program.passes_differ = megatron_passes_differ(problem);
  program.chunks.reserve(stage.chunks.size());
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    program.chunks.push_back(megatron_chunk(problem, blocks, stage, i));
  }
  return program;
}

StageProgram megatron_passes(const Problem& problem,
                             const WeightInventory& inventory,
                             const MegatronBlocks& blocks,
                             const Stage& stage) {
  StageProgram program = megatron_chunks(problem, blocks, stage);
  program.resident = megatron_buffers(problem, inventory, stage);
  return program;
}

StageProgram megatron_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const MegatronBlocks& blocks,
                            const Stage& stage) {
  StageProgram program = megatron_passes(problem, inventory, blocks, stage);
  if (is_megatron_fsdp(problem)) {
    Runs& runs = program.chunks.front().runs;  // the only chunk
    runs = with_buckets(problem, runs, fsdp_buckets(problem, inventory, stage).blocks);
  }
  const ModelStates states = model_states(problem, inventory, stage);
  const std::vector<TensorSpec> first = megatron_states(problem, inventory, stage, states);
  program.resident.insert(program.resident.begin(), first.begin(), first.end());
  program.step =
      megatron_optimizer_step(problem, inventory, stage, states,
                              megatron_kept_inputs(problem, stage, megatron_boundary(problem)));
  return program;
}

}  // namespace zeroplan
