// What do the ranks of one layer send each other? Front door: add_layers.
#include "cost_model/communication/layer_collectives.hpp"

#include <algorithm>
#include <initializer_list>

#include "cost_model/recomputed.hpp"
#include "cost_model/token_shape.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;  // bytes

// How often the stage's layers of one kind run in a step.
struct Passes {
  std::int64_t once = 0;        // forward, or backward
  std::int64_t recomputed = 0;  // forward again, all of it
};

class LayerLoads {
 public:
  LayerLoads(LoadList& loads, const Problem& problem)
      : loads_(loads),
        p_(problem),
        token_(token_shape(problem)),
        tokens_(local_tokens(problem)),
        tp_(loads.group("tp")) {}

  void add(LayerKind kind, const Passes& passes) {
    passes_ = passes;
    checkpoint();
    tensor_attention();
    context();
    if (kind == LayerKind::moe) {
      if (p_.model.moe->shared_intermediate_size > 0) {
        const std::int64_t again = repeats(RecomputeModule::shared_experts);
        tensor_block({token_.hidden}, {again, again});
      }
      experts();
    } else {
      const std::int64_t again = repeats(RecomputeModule::mlp);
      tensor_block({token_.hidden}, {again, again});
    }
  }

  // The projection of a multi-token-prediction module: column-parallel over two inputs side by
  // side, its output gathered (Megatron-Core core/transformer/multi_token_prediction.py eh_proj).
  void add_mtp_input(std::int64_t times) {
    passes_ = {.once = times};
    const std::int64_t inputs = 2 * token_.hidden;
    if (token_.norm_rows > 1) {
      call(tp_, Collective::all_gather, During::forward, times, features(inputs));
      call_beside(Collective::reduce_scatter, times, features(inputs));
      call_beside(Collective::all_gather, times, features(inputs));
    } else {
      call_beside(Collective::all_reduce, times, features(inputs));
    }
    call(tp_, Collective::all_gather, During::forward, times, features(token_.hidden));
  }

 private:
  Bytes features(std::int64_t width) const { return Bytes{token_.element * width * tokens_}; }

  void call(const RankGroup& group, Collective what, During during, std::int64_t calls, Bytes b) {
    loads_.add({group, what, during, calls, b});
  }

  // Beside a product that does not need it: the input's gradients travel while the weight's are
  // computed, the input while the input's gradients are (Megatron-Core
  // core/tensor_parallel/layers.py LinearWithGradAccumulationAndAsyncCommunication; nanotron
  // parallel/tensor_parallel/functional.py).
  void call_beside(Collective what, std::int64_t calls, Bytes b) {
    const bool beside =
        p_.runtime.kind == Runtime::nanotron ||
        (p_.runtime.kind == Runtime::megatron && p_.runtime.megatron.async_tensor_allreduce);
    loads_.add({tp_, what, During::backward, calls, b, beside});
  }

  // A collective of the forward pass, with its counterpart of the backward pass.
  void both(
      const RankGroup& group, Collective there, Collective back, std::int64_t again, Bytes b) {
    call(group, there, During::forward, passes_.once, b);
    call(group, there, During::backward, passes_.recomputed + again, b);
    call(group, back, During::backward, passes_.once, b);
  }

  std::int64_t repeats(RecomputeModule module) const {
    return drops(p_, module) ? passes_.once : 0;
  }

  // Divided checkpoints are whole again before their layer runs again (DeepSpeed
  // runtime/activation_checkpointing/checkpointing.py gather_partitioned_activations; ZeRO section
  // 8).
  void checkpoint() {
    const RuntimeSpec& r = p_.runtime;
    const bool divides = (r.kind == Runtime::deepspeed && r.deepspeed.partition_activations) ||
                         (r.kind == Runtime::zeroplan && r.zeroplan.partition_activations);
    if (!divides) return;
    call(tp_, Collective::all_gather, During::backward, passes_.recomputed,
         features(token_.hidden));
  }

  // Repeats by selective recompute.
  struct Again {
    std::int64_t inputs = 0;
    std::int64_t output = 0;
  };

  // Column-parallel linears that read these widths, then a row-parallel one.
  void tensor_block(std::initializer_list<std::int64_t> inputs, Again again) {
    using enum Collective;
    const Bytes output = features(token_.hidden);
    if (token_.norm_rows == 1) {
      // Forward the sum of the outputs; backward the sum of the inputs' gradients.
      call(tp_, all_reduce, During::forward, passes_.once, output);
      call(tp_, all_reduce, During::backward, passes_.recomputed + again.output, output);
      for (const std::int64_t width : inputs) {
        call_beside(all_reduce, passes_.once, features(width));
      }
      return;
    }
    for (const std::int64_t width : inputs) {
      // torchtitan's selective recompute keeps what was scattered, not what was gathered.
      const bool titan = p_.runtime.kind == Runtime::fsdp2;
      const bool regathers = titan && p_.layout.recompute == Recompute::selective &&
                             p_.runtime.fsdp2.selective_ac_layers == 0;
      call(tp_, all_gather, During::forward, passes_.once, features(width));
      call(tp_, all_gather, During::backward,
           passes_.recomputed + (regathers ? passes_.once : again.inputs), features(width));
      call_beside(reduce_scatter, passes_.once, features(width));
      // Autograd's own linear keeps the gathered input; Megatron's gathers it for the weights.
      if (!titan) call_beside(all_gather, passes_.once, features(width));
    }
    both(tp_, reduce_scatter, all_gather, again.output, output);
  }

  // Latent attention divides the up-projections, which read the latents; each rank has the whole
  // down-projections (Megatron-Core core/transformer/multi_latent_attention.py).
  void tensor_attention() {
    const auto& mla = p_.model.attention.mla;
    if (!mla) return tensor_block({token_.hidden}, {});
    const std::int64_t queries = mla->q_lora_rank > 0 ? mla->q_lora_rank : token_.hidden;
    tensor_block({queries, mla->kv_lora_rank + mla->qk_rope_head_dim},
                 {.inputs = repeats(RecomputeModule::mla_up_proj)});
  }

  ContextTransport transport() const {
    switch (p_.runtime.kind) {
      case Runtime::megatron:
        return p_.runtime.megatron.cp_comm_type;
      case Runtime::fsdp2:  // context_parallel_rotate_method, by default allgather
        return ContextTransport::all_gather;
      default:  // Ulysses
        return ContextTransport::a2a;
    }
  }

  void context() {
    using enum Collective;
    const RankGroup cp = loads_.group("cp");
    const std::int64_t again = repeats(RecomputeModule::core_attn);
    const std::int64_t values = p_.model.attention.mla ? token_.output : token_.key_value;
    const Bytes own = features(token_.key_value + values);
    switch (transport()) {
      case ContextTransport::p2p: {
        // Backward keys and values go round again, and their gradients with them.
        const std::int64_t steps = cp.ranks - 1;
        call(cp, send_recv, During::forward, steps * passes_.once, own);
        call(cp, send_recv, During::backward, steps * (passes_.recomputed + again), own);
        call(cp, send_recv, During::backward, steps * passes_.once, 2 * own);
        break;
      }
      case ContextTransport::all_gather:
        call(cp, all_gather, During::forward, passes_.once, cp.ranks * own);
        call(cp, all_gather, During::backward, passes_.once + passes_.recomputed + again,
             cp.ranks * own);
        if (p_.runtime.kind == Runtime::fsdp2) {
          // PyTorch's gradients go all the way round, in fp32
          // (torch/distributed/tensor/experimental/_attention.py).
          const Bytes gradients{fp32 * (token_.key_value + values) * tokens_};
          call(cp, send_recv, During::backward, cp.ranks * passes_.once, gradients);
        } else {
          call(cp, reduce_scatter, During::backward, passes_.once, cp.ranks * own);
        }
        break;
      case ContextTransport::a2a:
        both(cp, all_to_all, all_to_all, again, own + features(token_.query));
        both(cp, all_to_all, all_to_all, again, features(token_.output));
        break;
    }
  }

  // Dispatch and combine; sequence parallelism has divided the tokens before. Ranks that divide an
  // expert gather each other's tokens and scatter the sums (token_dispatcher.py).
  void experts() {
    using enum Collective;
    const Bytes routed{token_.element * token_.hidden * routed_tokens(p_).sent};
    const RankGroup ep = loads_.group("ep");
    const RankGroup etp{"etp", p_.layout.etp, 1};
    const std::int64_t again = repeats(RecomputeModule::moe);
    both(ep, all_to_all, all_to_all, again, routed);
    both(etp, all_gather, reduce_scatter, again, etp.ranks * routed);
    both(etp, reduce_scatter, all_gather, again, etp.ranks * routed);
    both(ep, all_to_all, all_to_all, again, routed);
  }

  LoadList& loads_;
  const Problem& p_;
  TokenShape token_;
  std::int64_t tokens_;
  RankGroup tp_;
  Passes passes_;
};

// Layers that run forward again as a whole.
std::int64_t repeated_layers(const Problem& p, const Stage& stage, LayerKind kind) {
  const bool whole = p.layout.recompute == Recompute::full ||
                     (p.runtime.kind == Runtime::fsdp2 && p.runtime.fsdp2.selective_ac_layers > 0);
  return whole ? recomputed_layers(p, stage, kind) : 0;
}

}  // namespace

void add_layers(LoadList& loads, const Problem& problem, const Stage& stage) {
  LayerLoads layers(loads, problem);
  const std::int64_t m = forward_passes(problem);
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const std::int64_t count = layer_count(problem.model, stage, kind);
    if (count == 0) continue;
    layers.add(kind, {.once = m * count, .recomputed = m * repeated_layers(problem, stage, kind)});
  }
  const std::int64_t modules = stage.head ? m * trained_mtp_modules(problem) : 0;
  if (modules == 0) return;
  layers.add_mtp_input(modules);
  const bool full = problem.layout.recompute == Recompute::full;
  layers.add(kind_of(problem.model, problem.model.layers - 1),
             {.once = modules, .recomputed = full ? modules : 0});
}

// Embedding: the sum of the parts of the table. Head: as a column-parallel linear. Loss: the
// maximum, the target's logit and the sum of exponentials, fp32 (Megatron-Core
// core/tensor_parallel/cross_entropy.py); torchtitan without loss_parallel gathers the logits.
void add_vocabulary(LoadList& loads, const Problem& problem, const Stage& stage) {
  using enum Collective;
  const TokenShape token = token_shape(problem);
  const std::int64_t tokens = local_tokens(problem);
  const std::int64_t m = forward_passes(problem);
  const RankGroup tp = loads.group("tp");
  const Bytes residual{token.element * token.hidden * tokens};
  const bool divided = token.norm_rows > 1;
  const bool titan = problem.runtime.kind == Runtime::fsdp2;
  const auto add = [&](Collective what, During during, std::int64_t calls, Bytes payload) {
    loads.add({tp, what, during, calls, payload});
  };
  // The last stage embeds once more, and passes the head once more, for each module of
  // multi-token prediction.
  const std::int64_t modules = stage.head ? m * trained_mtp_modules(problem) : 0;
  if (const std::int64_t times = modules + (stage.embedding ? m : 0); times > 0) {
    add(divided ? reduce_scatter : all_reduce, During::forward, times, residual);
    if (divided) add(all_gather, During::backward, times, residual);
  }
  if (!stage.head) return;
  const std::int64_t heads = m + modules;
  if (divided) add(all_gather, During::forward, heads, residual);
  if (titan && !problem.runtime.fsdp2.loss_parallel) {
    const Bytes logits{token.element * problem.model.vocab_size * tokens};
    add(all_gather, During::forward, heads, logits);
  } else {
    constexpr std::int64_t sums = 3;
    add(all_reduce, During::forward, sums * heads, Bytes{fp32 * tokens});
  }
  if (divided && !titan) add(all_gather, During::backward, heads, residual);
  add(divided ? reduce_scatter : all_reduce, During::backward, heads, residual);
}

}  // namespace zeroplan
