// What do the ranks of one layer send each other? Front doors: layer_calls, add_blocks.
#include "cost_model/network/layer_collectives.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "cost_model/network/program_calls.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;  // bytes

class Calls {
 public:
  explicit Calls(const Problem& problem)
      : p_(problem),
        groups_(problem),
        token_(token_shape(problem)),
        tokens_(local_tokens(problem)),
        tp_(groups_.group("tp")) {}

  void add_layer(LayerKind kind, LayerPart part) {
    constexpr std::size_t usual_calls = 32;
    calls_.reserve(usual_calls);
    if (has_rest(part)) add_rest(kind);
    if (kind == LayerKind::moe && has_routed(part)) experts();
  }

  // The projection of a multi-token-prediction module: column-parallel over two inputs side by
  // side, its output gathered (Megatron-Core core/transformer/multi_token_prediction.py eh_proj).
  void add_mtp_projection() {
    const std::int64_t inputs = 2 * token_.hidden;
    if (divided()) {
      call(tp_, Collective::all_gather, During::forward, features(inputs));
      call_beside(Collective::reduce_scatter, features(inputs));
      call_beside(Collective::all_gather, features(inputs));
    } else {
      call_beside(Collective::all_reduce, features(inputs));
    }
    call(tp_, Collective::all_gather, During::forward, features(token_.hidden));
  }

  // The sum of the parts of the table.
  void add_embedding() {
    using enum Collective;
    const Bytes residual = features(token_.hidden);
    call(tp_, divided() ? reduce_scatter : all_reduce, During::forward, residual);
    if (divided()) call(tp_, all_gather, During::backward, residual);
  }

  // Head: as a column-parallel linear. Loss: the maximum, the target's logit and the sum of
  // exponentials, fp32 (Megatron-Core core/tensor_parallel/cross_entropy.py).
  void add_head() {
    using enum Collective;
    const Bytes residual = features(token_.hidden);
    if (divided()) call(tp_, all_gather, During::forward, residual);
    constexpr std::int64_t sums = 3;
    call(tp_, all_reduce, During::forward, Bytes{fp32 * tokens_}, sums);
    if (divided()) call(tp_, all_gather, During::backward, residual);
    call(tp_, divided() ? reduce_scatter : all_reduce, During::backward, residual);
  }

  std::vector<BlockCall> take() { return std::move(calls_); }

 private:
  // Attention, and all of the MLP that is not routed.
  void add_rest(LayerKind kind) {
    checkpoint();
    tensor_attention();
    context();
    const bool moe = kind == LayerKind::moe;
    if (moe && p_.model.moe->shared_intermediate_size == 0) return;
    const RepeatSet again =
        repeated_by(moe ? RecomputeModule::shared_experts : RecomputeModule::mlp);
    tensor_block({token_.hidden}, {again, again});
  }

  bool megatron() const { return p_.runtime.kind == Runtime::megatron; }
  // Of a linear's input or of its output's gradient, which Transformer Engine quantizes before it
  // gathers them (pytorch/module/linear.py gather_along_first_dim with a quantizer).
  Bytes gathered(std::int64_t width) const {
    const Bytes wide = features(width);
    const bool narrow = megatron() && divided() && is_quantized(p_.training.precision);
    return narrow ? quantized_bytes(p_, wide.count() / token_.element) : wide;
  }
  Bytes features(std::int64_t width) const { return Bytes{token_.element * width * tokens_}; }
  // By sequence parallelism, outside the linears.
  bool divided() const { return token_.norm_rows > 1; }

  void add(const CollectiveLoad& load, RepeatSet repeated_by = 0) {
    if (load.is_sent()) calls_.push_back({load, repeated_by});
  }

  void call(
      const RankGroup& group, Collective what, During during, Bytes b, std::int64_t calls = 1) {
    add({group, what, during, calls, b});
  }

  // What recompute makes again before the backward pass.
  void repeat(
      const RankGroup& group, Collective what, Bytes b, RepeatSet again, std::int64_t calls = 1) {
    add({group, what, During::backward, calls, b}, again);
  }

  // Beside a product that does not need it: the input's gradients travel while the weight's are
  // computed, the input while the input's gradients are (Megatron-Core
  // core/tensor_parallel/layers.py LinearWithGradAccumulationAndAsyncCommunication; nanotron
  // parallel/tensor_parallel/functional.py).
  void call_beside(Collective what, Bytes b) {
    const bool beside = p_.runtime.kind == Runtime::nanotron ||
                        (megatron() && p_.runtime.megatron.async_tensor_allreduce);
    add({tp_, what, During::backward, 1, b, beside, in_parts()});
  }
  // Transformer Engine's user buffers (pytorch/module/base.py initialize_ub).
  bool in_parts() const { return megatron() && p_.runtime.megatron.tp_comm_overlap && divided(); }

  // A collective of the forward pass, with its counterpart of the backward pass.
  void both(const RankGroup& group, Collective there, Collective back, RepeatSet again, Bytes b) {
    call(group, there, During::forward, b);
    repeat(group, there, b, again);
    call(group, back, During::backward, b);
  }

  // Divided checkpoints are whole again before their layer runs again (DeepSpeed
  // runtime/activation_checkpointing/checkpointing.py gather_partitioned_activations; ZeRO section
  // 8).
  void checkpoint() {
    if (p_.runtime.kind != Runtime::deepspeed || !p_.runtime.deepspeed.partition_activations)
      return;
    repeat(tp_, Collective::all_gather, features(token_.hidden), whole_layer);
  }

  // The same of a linear's input or output: in parts where user buffers move them.
  void call_of_linear(Collective what, During during, Bytes b, RepeatSet again = 0) {
    add({tp_, what, during, 1, b, false, in_parts()}, again);
  }

  struct Again {
    RepeatSet inputs = whole_layer;
    RepeatSet output = whole_layer;
  };

  // Column-parallel linears that read these widths, then a row-parallel one.
  void tensor_block(std::initializer_list<std::int64_t> inputs, Again again) {
    using enum Collective;
    const Bytes output = features(token_.hidden);
    if (!divided()) {
      // Forward the sum of the outputs; backward the sum of the inputs' gradients.
      call(tp_, all_reduce, During::forward, output);
      repeat(tp_, all_reduce, output, again.output);
      for (const std::int64_t width : inputs) call_beside(all_reduce, features(width));
      return;
    }
    for (const std::int64_t width : inputs) {
      call_of_linear(all_gather, During::forward, gathered(width));
      call_of_linear(all_gather, During::backward, gathered(width), again.inputs);
      call_beside(reduce_scatter, features(width));
      call_beside(all_gather, gathered(width));  // for the weights
    }
    call_of_linear(reduce_scatter, During::forward, output);
    call_of_linear(reduce_scatter, During::backward, output, again.output);
    call_of_linear(all_gather, During::backward, gathered(token_.hidden));
  }

  // Latent attention divides the up-projections, which read the latents; each rank has the whole
  // down-projections. The rotary part of the keys, which all heads share, is no linear's input
  // (Megatron-Core @d98e8a64dd core/transformer/multi_latent_attention.py).
  void tensor_attention() {
    const auto& mla = p_.model.attention.mla;
    if (!mla) return tensor_block({token_.hidden}, {});
    const std::int64_t queries = mla->q_lora_rank > 0 ? mla->q_lora_rank : token_.hidden;
    if (divided()) {
      both(tp_, Collective::all_gather, Collective::reduce_scatter, whole_layer,
           features(mla->qk_rope_head_dim));
    }
    tensor_block({queries, mla->kv_lora_rank},
                 {.inputs = repeated_by(RecomputeModule::mla_up_proj)});
  }

  ContextTransport transport() const {
    switch (p_.runtime.kind) {
      case Runtime::megatron:
        return p_.runtime.megatron.cp_comm_type;
      default:  // Ulysses
        return ContextTransport::a2a;
    }
  }

  void context() {
    using enum Collective;
    const RankGroup cp = groups_.group("cp");
    const RepeatSet again = repeated_by(RecomputeModule::core_attn);
    const std::int64_t values = p_.model.attention.mla ? token_.output : token_.key_value;
    const Bytes own = features(token_.key_value + values);
    switch (transport()) {
      case ContextTransport::p2p: {
        // Backward keys and values go round again, and their gradients with them.
        const std::int64_t steps = cp.ranks - 1;
        call(cp, send_recv, During::forward, own, steps);
        repeat(cp, send_recv, own, again, steps);
        call(cp, send_recv, During::backward, 2 * own, steps);
        break;
      }
      case ContextTransport::all_gather:
        call(cp, all_gather, During::forward, cp.ranks * own);
        call(cp, all_gather, During::backward, cp.ranks * own);
        repeat(cp, all_gather, cp.ranks * own, again);
        call(cp, reduce_scatter, During::backward, cp.ranks * own);
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
    const RankGroup etp{"etp", p_.layout.etp, 1};
    const RepeatSet again = repeated_by(RecomputeModule::moe);
    exchange(again, routed);
    both(etp, all_gather, reduce_scatter, again, etp.ranks * routed);
    both(etp, reduce_scatter, all_gather, again, etp.ranks * routed);
    exchange(again, routed);
  }

  // There or back. The flex dispatcher sends a token once over the network to each node that holds
  // an expert of it, and from there once to each rank that does (DeepEP csrc/kernels/internode.cu;
  // HybridEP docs/README_Hybrid-EP.md).
  void exchange(RepeatSet again, Bytes routed) {
    using enum Collective;
    const RankGroup ep = groups_.group("ep");
    const bool flex =
        megatron() && p_.runtime.megatron.moe_token_dispatcher_type == TokenDispatcher::flex;
    if (!flex || ep.ranks == 1) return both(ep, all_to_all, all_to_all, again, routed);
    const std::int64_t local = placement(p_.cluster, ep).ranks_per_node;
    const std::int64_t nodes = ceil_div(ep.ranks, local);
    const auto sent = [&](std::int64_t places) {
      const double copies = reached_places(places, p_.model.moe->experts_per_token);
      const auto rows = static_cast<double>(routed_tokens(p_).local);
      return Bytes{token_.element * token_.hidden * std::llround(rows * copies)};
    };
    both({"ep", nodes, ep.stride * local}, all_to_all, all_to_all, again, sent(nodes));
    both({"ep", local, ep.stride}, all_to_all, all_to_all, again, sent(ep.ranks));
  }

  const Problem& p_;
  LoadList groups_;
  TokenShape token_;
  std::int64_t tokens_;
  RankGroup tp_;
  std::vector<BlockCall> calls_;
};

// Of `blocks` blocks, of which recompute runs `recomputed` again, in so many micro-batches.
class Blocks {
 public:
  Blocks(LoadList& loads, const Problem& problem) : loads_(loads), repeats_(repeats(problem)) {}

  void add(const std::vector<BlockCall>& calls, std::int64_t blocks, std::int64_t recomputed = 0) {
    for (BlockCall call : calls) {
      const bool again = (call.repeated_by & repeats_) != 0;
      call.load.calls *= call.repeated_by == 0 ? blocks : again ? recomputed : 0;
      loads_.add(call.load);
    }
  }

 private:
  LoadList& loads_;
  RepeatSet repeats_;
};

template <class Add>
std::vector<BlockCall> made_by(const Problem& problem, Add&& add) {
  Calls calls(problem);
  add(calls);
  return calls.take();
}

}  // namespace

std::vector<BlockCall> layer_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   LayerKind kind,
                                   LayerPart part) {
  if (has_calls(problem)) {
    return block_calls(problem, inventory, BlockKind::layer, kind, part);
  }
  return made_by(problem, [&](Calls& calls) { calls.add_layer(kind, part); });
}

std::vector<BlockCall> embedding_calls(const Problem& problem, const WeightInventory& inventory) {
  if (has_calls(problem)) return block_calls(problem, inventory, BlockKind::embedding);
  return made_by(problem, [](Calls& calls) { calls.add_embedding(); });
}

std::vector<BlockCall> head_calls(const Problem& problem, const WeightInventory& inventory) {
  if (has_calls(problem)) return block_calls(problem, inventory, BlockKind::head);
  return made_by(problem, [](Calls& calls) { calls.add_head(); });
}

std::vector<BlockCall> mtp_projection_calls(const Problem& problem) {
  return made_by(problem, [](Calls& calls) { calls.add_mtp_projection(); });
}

void add_blocks(LoadList& loads,
                const Problem& problem,
                const WeightInventory& inventory,
                const Stage& stage) {
  if (has_calls(problem)) {
    return loads.add_calls(calls_of(step_calls(problem, inventory, stage), false));
  }
  Blocks all(loads, problem);
  const std::int64_t m = forward_passes(problem);
  // The last stage embeds once more, and passes the head once more, for each module of
  // multi-token prediction.
  const std::int64_t modules = stage.head ? m * trained_mtp_modules(problem) : 0;
  all.add(embedding_calls(problem, inventory), modules + (stage.embedding ? m : 0));
  if (stage.head) all.add(head_calls(problem, inventory), m + modules);
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const std::int64_t count = layer_count(problem.model, stage, kind);
    if (count == 0) continue;
    all.add(layer_calls(problem, inventory, kind), m * count,
            m * recomputed_layers(problem, stage, kind));
  }
  if (modules == 0) return;
  all.add(mtp_projection_calls(problem), modules);
  const LayerKind last = kind_of(problem.model, problem.model.layers - 1);
  all.add(layer_calls(problem, inventory, last), modules, modules);
}

}  // namespace zeroplan
