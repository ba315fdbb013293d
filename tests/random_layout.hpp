#pragma once
// Random layouts that a runtime can execute, for properties that hold for all of them.

#include <numeric>
#include <optional>
#include <random>

#include "cost_model/legality/legality.hpp"
#include "cost_model/question/layer_width.hpp"
#include "tests/specs.hpp"

namespace zeroplan::tests {

class Draw {
 public:
  explicit Draw(std::mt19937& random) : random_(random) {}

  std::int64_t pick(std::initializer_list<std::int64_t> list) {
    return *(list.begin() +
             std::uniform_int_distribution<long>(0, static_cast<long>(list.size()) - 1)(random_));
  }
  bool coin() { return pick({0, 1}) == 1; }

  // A random layout; empty when the runtime cannot execute this draw.
  std::optional<Problem> problem(std::initializer_list<std::int64_t> runtimes = {0, 0, 1, 1, 2, 3,
                                                                                 3, 6}) {
    const auto runtime = static_cast<Runtime>(pick(runtimes));
    Problem p = layout(runtime);
    p.training.sequence_length = pick({256, 512, 1000});
    p.training.precision = static_cast<Precision>(pick({0, 0, 1, 2, 3}));
    const bool unfused = pick({0, 0, 1}) == 1;
    const bool fused_alone = runtime == Runtime::megatron && p.layout.cp > 1;
    if (unfused && !fused_alone) p.training.attention = AttentionKernel::unfused;
    p.training.global_batch =
        p.layout.dp * p.layout.micro_batch * p.layout.pp * pick({1, 1, 2, 3, 5});
    p.runtime.megatron.pipeline_code = p.layout.schedule == Schedule::dualpipe
                                           ? PipelineCode::dualpipe
                                           : static_cast<PipelineCode>(pick({0, 1}));
    set(p.runtime.megatron);
    const bool own_layers = runtime == Runtime::megatron && p.runtime.megatron.local_layers();
    if (own_layers && !fused_alone) p.training.attention = AttentionKernel::unfused;
    if (runtime == Runtime::megatron && pick({0, 1, 1}) == 1) fit_ends(p);
    if (runtime == Runtime::megatron && pick({0, 0, 1}) == 1) draw_chunks(p);
    const bool to_host = runtime == Runtime::megatron && p.layout.recompute == Recompute::none &&
                         p.layout.pp == 1 &&
                         p.runtime.megatron.recompute_num_layers < p.model.layers;
    if (to_host) {
      p.runtime.megatron.cpu_offloading_num_layers = p.runtime.megatron.recompute_num_layers;
    }
    if (runtime == Runtime::megatron && pick({0, 0, 1}) == 1) draw_groups(p);
    if (p.layout.recompute == Recompute::selective) {  // which takes neither
      p.runtime.megatron.recompute_method = RecomputeMethod::uniform;
      p.runtime.megatron.recompute_num_layers = 0;
    }
    set(p.runtime.fsdp2);
    draw_layers(p);
    p.runtime.ddp.gradient_as_bucket_view = coin();
    p.runtime.deepspeed.version = pick({5, 19});
    p.runtime.deepspeed.partition_activations = coin();
    p.runtime.deepspeed.cpu_checkpointing = coin();
    p.runtime.deepspeed.partition_method = static_cast<PartitionMethod>(pick({0, 1, 2}));
    p.runtime.deepspeed.overlap_comm = coin();
    p.runtime.deepspeed.contiguous_checkpoints = coin();
    p.runtime.deepspeed.number_checkpoints = pick({0, 100});
    p.runtime.deepspeed.gathers_on_save = coin();
    p.runtime.fsdp2.full_state_dict = coin();
    p.runtime.deepspeed.fp32_grad_accumulation = coin();
    p.runtime.deepspeed.reduce_bucket_size = pick({500'000'000, 20'000'000, 1'000'000});
    if (runtime == Runtime::nanotron) set(p.runtime.nanotron);
    p.runtime = own_settings(p.runtime);
    const bool transformers = p.runtime.kind == Runtime::ddp ||
                              p.runtime.kind == Runtime::deepspeed ||
                              p.runtime.fsdp2.layers == LayerCode::huggingface;
    if (transformers) p.runtime.attn_implementation = static_cast<AttnImplementation>(pick({0, 1}));
    if ((transformers || runtime == Runtime::megatron) && pick({0, 0, 0, 1}) == 1) {
      const std::string_view names[] = {"qwen3.5-9b", "qwen3-next-80b-a3b",
                                        "nemotron-3.5-lightning-30b-a3b"};
      p.model = tests::problem(runtime, names[pick({0, 1, 2})], p.layout).model;
      if (p.model.moe && runtime == Runtime::megatron && coin()) p.model.moe->latent_size = 1024;
    }
    if (runtime == Runtime::megatron && is_quantized(p.training.precision) && coin()) {
      draw_ends(p);
    }
    if (first_violation(p)) return std::nullopt;
    return p;
  }

 private:
  // Layers at the ends in 16 bits.
  void draw_ends(Problem& p) {
    MegatronSettings& m = p.runtime.megatron;
    m.fp8_recipe = Fp8Recipe::tensorwise;
    m.first_last_layers_bf16 = true;
    m.num_layers_at_start_in_bf16 = pick({0, 1, 2});
    m.num_layers_at_end_in_bf16 = pick({0, 1, 2});
    widen_ends(p.model, m);
  }

  static RuntimeSpec own_settings(const RuntimeSpec& drawn) {
    RuntimeSpec own{.kind = drawn.kind};
    if (own.kind == Runtime::megatron) own.megatron = drawn.megatron;
    if (own.kind == Runtime::fsdp2) own.fsdp2 = drawn.fsdp2;
    if (own.kind == Runtime::ddp) own.ddp = drawn.ddp;
    if (own.kind == Runtime::deepspeed) own.deepspeed = drawn.deepspeed;
    if (own.kind == Runtime::zero_paper) own.zero_paper = drawn.zero_paper;
    if (own.kind == Runtime::zeroplan) own.zeroplan = drawn.zeroplan;
    if (own.kind == Runtime::nanotron) own.nanotron = drawn.nanotron;
    return own;
  }

  Problem layout(Runtime runtime) {
    const std::string_view models[] = {"llama3-8b", "llama3-70b",       "mixtral-8x7b",
                                       "gpt2-xl",   "deepseek-v2-lite", "qwen3-30b-a3b",
                                       "gemma2-9b", "gpt-neox-20b"};
    Layout l{.dp = pick({1, 2, 4}),
             .tp = pick({1, 1, 2, 4, 8}),
             .pp = pick({1, 1, 2, 4, 8}),
             .cp = pick({1, 1, 2})};
    l.ep = pick({1, 1, 2, 4});
    l.etp = pick({1, 1, l.tp});
    l.micro_batch = pick({1, 2});
    l.zero = static_cast<ZeroStage>(pick({0, 1, 2, 3}));
    l.sequence_parallel = pick({0, 1, 1}) == 1;
    l.recompute = static_cast<Recompute>(pick({0, 0, 1, 2}));
    l.vpp = pick({1, 1, 2, 3});
    l.offload = static_cast<Offload>(pick({0, 0, 0, 1, 2, 3}));
    if (runtime == Runtime::megatron && l.zero >= ZeroStage::gradients) l.pp = l.vpp = 1;
    if (l.vpp > 1) l.schedule = Schedule::interleaved;
    if (l.pp > 1 && coin()) {
      l.schedule = static_cast<Schedule>(pick({3, 4, 5, 6}));
      l.vpp = l.schedule == Schedule::zb_v ? 2 : 1;
    }
    return tests::problem(runtime, models[pick({0, 1, 2, 3, 4, 5, 6, 7})], l, "H100-80GB");
  }

  void set(NanotronSettings& n) {
    n.version = static_cast<NanotronVersion>(pick({0, 1}));
    n.tp_recompute_allgather = coin();
    n.log_attn_probs = coin();
    n.z_loss = n.version == NanotronVersion::of_2025_06 && coin();
  }

  void set(MegatronSettings& m) {
    m.hidden_dropout = coin() ? 0.15 : 0;
    m.mtp_num_layers = pick({0, 0, 0, 1, 2});
    m.mtp_use_repeated_layer = coin();
    m.megatron_fsdp_main_grads_dtype = static_cast<GradientType>(pick({0, 0, 1, 2}));
    m.megatron_fsdp_grad_comm_dtype = static_cast<GradientType>(pick({0, 0, 1, 2}));
    m.account_for_embedding_in_pipeline_split = pick({0, 0, 1}) == 1;
    m.account_for_loss_in_pipeline_split = pick({0, 0, 1}) == 1;
    m.attention_dropout = coin() ? 0.1 : 0;
    m.cross_entropy_loss_fusion = coin();
    m.cross_entropy_fusion_impl = static_cast<CrossEntropy>(pick({0, 1}));
    m.transformer_engine_version = pick({0, 202, 211, 219});
    m.attention_backend = static_cast<AttentionLibrary>(pick({0, 1}));
    m.masked_softmax_fusion = coin();
    m.bias_activation_fusion = coin();
    m.gradient_accumulation_fusion = coin();
    m.moe_pad_to_capacity = coin();
    m.cp_comm_type = static_cast<ContextTransport>(pick({0, 1, 2}));
    m.recompute_method = static_cast<RecomputeMethod>(pick({0, 1}));
    m.recompute_num_layers = pick({0, 1, 2, 3});
    m.recompute_modules =
        static_cast<unsigned>(pick({1, 2, 4, 8, 15, 16, 32, 64, 76, 127, 128, 130}));
  }

  // As many layers as divide once the ends count; with one each the ends may be alone.
  void fit_ends(Problem& p) {
    const MegatronSettings& m = p.runtime.megatron;
    const std::int64_t ends =
        m.account_for_embedding_in_pipeline_split + m.account_for_loss_in_pipeline_split;
    const std::int64_t layers = p.layout.pp * p.layout.vpp * pick({1, 1, 2}) - ends;
    if (ends == 0 || layers < 1) return;
    set_layers(p.model, layers);
  }

  // Modules whose saved tensors wait on the host.
  void draw_groups(Problem& p) {
    MegatronSettings& m = p.runtime.megatron;
    if (m.local_layers() || p.layout.recompute == Recompute::full ||
        m.pipeline_code != PipelineCode::megatron) {
      return;
    }
    m.cpu_offloading_num_layers = 0;
    const unsigned moe = bit_of(RecomputeModule::moe);
    const bool again =
        p.layout.recompute == Recompute::selective && (m.recompute_modules & moe) != 0;
    m.offload_modules =
        static_cast<unsigned>(pick({2, 4, 12, 17, 31, again ? 14 : 96, again ? 30 : 127}));
    m.min_offloaded_tensor_size = pick({0, 0, 1 << 20, 1 << 23});
    m.activation_offload_fraction = pick({1, 1, 0}) == 1 ? 1 : 0.5;
  }

  // Chunks of any size, without layers too.
  void draw_chunks(Problem& p) {
    MegatronSettings& m = p.runtime.megatron;
    if (p.layout.schedule > Schedule::interleaved) return;
    PipelineLayout chunks{.mtp_modules = m.mtp_num_layers};
    for (std::int64_t i = 0; i < p.layout.pp * p.layout.vpp; ++i) {
      chunks.layers.push_back(pick({0, 1, 1, 2, 4}));
    }
    const std::int64_t layers =
        std::accumulate(chunks.layers.begin(), chunks.layers.end(), std::int64_t{0});
    if (layers == 0) return;
    set_layers(p.model, layers);
    m.account_for_embedding_in_pipeline_split = m.account_for_loss_in_pipeline_split = false;
    m.pipeline_model_parallel_layout = chunks;
    m.pipeline_code = PipelineCode::megatron;
  }

  static void set_layers(ModelSpec& model, std::int64_t layers) {
    model.layers = layers;
    if (model.layer_kinds.empty()) return;
    model.layer_kinds.resize(static_cast<std::size_t>(layers), model.layer_kinds.back());
  }

  // Those that are treated apart.
  void draw_layers(Problem& p) {
    Fsdp2Settings& f = p.runtime.fsdp2;
    const std::int64_t some = pick({0, 1, 2});
    const std::int64_t last = pick({0, 0, 1, 2});
    const Recompute policy = p.layout.recompute;
    const bool by_number = policy == Recompute::selective && f.selective_ac_layers > 0;
    if (policy != Recompute::none && !by_number) f.recompute_num_layers = some;
    if (policy == Recompute::full && some > 0) f.selective_rest = coin();
    const bool reshards = p.layout.zero == ZeroStage::parameters && p.layout.pp == 1 &&
                          f.reshard_after_forward == Reshard::by_default;
    if (reshards) f.no_reshard_layers = last;
  }

  void set(Fsdp2Settings& f) {
    f.recipe_date = pick({20240328, 20241226, 20250206, 20250324, 20250620, 20250917, 20260821});
    f.layers = static_cast<LayerCode>(pick({0, 0, 1}));
    f.parameter_bytes = pick({4, 4, 2});
    f.loss_chunks = pick({0, 0, 1, 8});
    f.compile = coin();
    f.compile_components = static_cast<CompiledParts>(pick({0, 1, 2}));
    f.selective_ac_layers = pick({0, 0, 2});
    f.reshard_after_forward = static_cast<Reshard>(pick({0, 1}));
    f.float8_recipe = static_cast<Float8Recipe>(pick({0, 0, 1, 2, 3, 4}));
    f.float8_all_gather = coin();
    f.async_tensor_parallel = f.compiles_layers() && coin();
    f.loss_parallel = coin();
    f.disable_cuda_graphs = static_cast<RecipeSwitch>(pick({0, 0, 1, 2}));
    f.optimizer_code = static_cast<OptimizerCode>(pick({0, 1, 2, 3}));
    f.reduce_format = static_cast<ReduceFormat>(pick({0, 0, 1, 2}));
    f.torch_version = pick({0, 214, 215});
    f.accelerate_version = pick({113, 115});
    f.transformers_version = pick({453, 523});
    f.logits = static_cast<Logits>(pick({0, 1}));
    f.sync_each_batch = coin();
  }

  std::mt19937& random_;
};

}  // namespace zeroplan::tests
