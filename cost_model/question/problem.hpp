#pragma once
// One complete question: this model, on these GPUs, trained so, divided so, by this runtime.

#include <algorithm>

#include "cost_model/question/cluster.hpp"
#include "cost_model/question/layout.hpp"
#include "cost_model/question/model.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/question/training.hpp"

namespace zeroplan {

struct Problem {
  ModelSpec model;
  ClusterSpec cluster;
  RuntimeSpec runtime;
  TrainingSpec training;
  Layout layout;
};

/// Micro-batches each pipeline runs in one step (gradient accumulation steps without a pipeline).
inline std::int64_t micro_batches(const Problem& problem) {
  return problem.training.global_batch / (problem.layout.dp * problem.layout.micro_batch);
}

/// Times that each layer and each chunk of a rank runs forward in a step: once a micro-batch. A
/// rank of DualPipe holds two stages, and each micro-batch crosses one of them.
inline std::int64_t forward_passes(const Problem& problem) {
  const std::int64_t ways = problem.layout.schedule == Schedule::dualpipe ? 2 : 1;
  return micro_batches(problem) / ways;
}

/// Tokens of one micro-batch on one rank: s x b / cp.
inline std::int64_t local_tokens(const Problem& problem) {
  return problem.training.sequence_length * problem.layout.micro_batch / problem.layout.cp;
}

/// Whether DeepSpeed runs Megatron-DeepSpeed's layers, which tensor and pipeline parallelism need;
/// else Hugging Face's.
inline bool runs_megatron_layers(const Problem& problem) {
  return problem.layout.tp > 1 || problem.layout.pp > 1;
}

/// Whether Megatron-LM's own layers run, as before Transformer Engine; Megatron-DeepSpeed has them.
inline bool runs_local_layers(const Problem& problem) {
  return code_of(problem).local_layers(problem);
}

/// Whether the layers drop residuals, or attention probabilities, and keep masks of it.
inline bool drops_residuals(const Problem& problem) {
  const RuntimeSpec& set = problem.runtime;
  return set.megatron.hidden_dropout > 0 ||
         (set.deepspeed.hidden_dropout > 0 && runs_local_layers(problem));
}
inline bool drops_attention(const Problem& problem) {
  const RuntimeSpec& set = problem.runtime;
  return set.megatron.attention_dropout > 0 ||
         (set.deepspeed.attention_dropout > 0 && runs_local_layers(problem));
}

/// Multi-token-prediction modules that the last stage trains.
inline std::int64_t trained_mtp_modules(const Problem& problem) {
  return problem.runtime.megatron.mtp_num_layers;
}

/// Those whose weights it holds: one that runs as often as there are tokens to predict, or all.
inline std::int64_t held_mtp_modules(const Problem& problem) {
  const std::int64_t trained = trained_mtp_modules(problem);
  return problem.runtime.megatron.mtp_use_repeated_layer && trained > 0 ? 1 : trained;
}

/// Whether DeepSpeed keeps checkpoints on the host: by its own key, or as offload of activations.
inline bool checkpoints_on_host(const Problem& problem) {
  return problem.runtime.deepspeed.cpu_checkpointing ||
         problem.layout.offload == Offload::activations;
}

/// Replicas of hybrid sharding that divide the optimizer's states, too: Megatron-FSDP's where it is
/// told to; else 1.
inline std::int64_t outer_ranks(const Problem& problem) {
  const Layout& l = problem.layout;
  const bool divides =
      problem.runtime.megatron.outer_dp_sharding_strategy == OuterSharding::optim && l.hsdp > 0;
  return divides ? l.dp / l.hsdp : 1;
}

/// Ranks over which ZeRO divides the states of one tensor.
struct ShardWidths {
  std::int64_t dense = 1;
  std::int64_t expert = 1;  // experts have their own, smaller data-parallel group
};

/// Widths of the sharding groups. Context-parallel ranks hold the same weights, so they shard too.
/// Source: Megatron-Core core/parallel_state.py (expert-dp = world / (etp x ep x pp)); torchtitan
/// distributed/parallel_dims.py; DeepSpeed utils/groups.py. DDP shards nothing.
inline ShardWidths shard_widths(const Problem& problem) {
  const Layout& l = problem.layout;
  if (*code_of(problem).divides_states == DividesStates::never) return {};
  const std::int64_t replicas = l.hsdp > 0 ? l.dp / l.hsdp : 1;
  const std::int64_t dense = l.dp * l.cp / replicas;
  return {.dense = dense, .expert = std::max<std::int64_t>(1, dense * l.tp / (l.ep * l.etp))};
}

}  // namespace zeroplan
