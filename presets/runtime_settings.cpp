// Which settings has each runtime? Front door: runtime_settings.
#include "presets/runtime_settings.hpp"

#include "presets/setting_words.hpp"

namespace zeroplan {
namespace {

using R = RuntimeSpec;

// A member of one runtime's settings, as the words want it.
template <auto runtime, auto field>
auto& place(R& r) {
  return r.*runtime.*field;
}
template <auto field>
constexpr auto megatron = place<&R::megatron, field>;
template <auto field>
constexpr auto deepspeed = place<&R::deepspeed, field>;

template <auto field>
constexpr auto fsdp2 = place<&R::fsdp2, field>;

template <auto field>
constexpr auto nanotron = place<&R::nanotron, field>;

template <auto field>
constexpr auto own_engine = place<&R::zeroplan, field>;

template <auto... field>
Words named(std::string_view names) {
  return {take_name<field...>, say_name<field...>, names};
}
const Words attn_implementation = named<&R::attn_implementation>("sdpa or flash_attention_2");

using M = MegatronSettings;
using F = Fsdp2Settings;
using D = DeepspeedSettings;
using Z = ZeroplanSettings;
using N = NanotronSettings;

const RuntimeSetting table[] = {
    {Runtime::megatron, "container",
     Words{take_container, say_container, "none, 25.09, 25.11, 26.02, 26.04, 26.06 or 26.08"}},
    {Runtime::megatron, "make_vocab_size_divisible_by",
     Count{megatron<&M::make_vocab_size_divisible_by>, 1, 1'000'000}},
    {Runtime::megatron, "grad_reduce_in_bf16", Flag{megatron<&M::grad_reduce_in_bf16>}},
    {Runtime::megatron, "gradient_accumulation_fusion",
     Flag{megatron<&M::gradient_accumulation_fusion>}},
    {Runtime::megatron, "megatron_fsdp_main_grads_dtype",
     named<&R::megatron, &M::megatron_fsdp_main_grads_dtype>("auto, fp32, bf16 or fp16")},
    {Runtime::megatron, "megatron_fsdp_grad_comm_dtype",
     named<&R::megatron, &M::megatron_fsdp_grad_comm_dtype>("auto, fp32, bf16 or fp16")},
    {Runtime::megatron, "exp_avg_dtype", FormatBytes{megatron<&M::exp_avg_bytes>}},
    {Runtime::megatron, "exp_avg_sq_dtype", FormatBytes{megatron<&M::exp_avg_sq_bytes>}},
    {Runtime::megatron, "use_precision_aware_optimizer",
     Flag{megatron<&M::use_precision_aware_optimizer>}},
    {Runtime::megatron, "store_param_remainders", Flag{megatron<&M::store_param_remainders>}},
    {Runtime::megatron, "transformer_engine",
     Words{take_engine_version, say_engine_version, "a version, e.g. 2.11, local or none"}},
    {Runtime::megatron, "megatron_core",
     Words{take_core_version, say_core_version, "a version, e.g. 0.14"}},
    {Runtime::megatron, "attention_backend",
     named<&R::megatron, &M::attention_backend>("fused or flash")},
    {Runtime::megatron, "masked_softmax_fusion", Flag{megatron<&M::masked_softmax_fusion>}},
    {Runtime::megatron, "bias_activation_fusion", Flag{megatron<&M::bias_activation_fusion>}},
    {Runtime::megatron, "cross_entropy_loss_fusion", Flag{megatron<&M::cross_entropy_loss_fusion>}},
    {Runtime::megatron, "cross_entropy_fusion_impl",
     named<&R::megatron, &M::cross_entropy_fusion_impl>("native or te")},
    {Runtime::megatron, "hidden_dropout", Rate{megatron<&M::hidden_dropout>}},
    {Runtime::megatron, "attention_dropout", Rate{megatron<&M::attention_dropout>}},
    {Runtime::megatron, "tp_comm_overlap", Flag{megatron<&M::tp_comm_overlap>}},
    {Runtime::megatron, "scatter_gather_tensors_in_pipeline",
     Flag{megatron<&M::scatter_gather_tensors_in_pipeline>}},
    {Runtime::megatron, "async_tensor_model_parallel_allreduce",
     Flag{megatron<&M::async_tensor_allreduce>}},
    {Runtime::megatron, "moe_permute_fusion", Flag{megatron<&M::moe_permute_fusion>}},
    {Runtime::megatron, "overlap_grad_reduce", Flag{megatron<&M::overlap_grad_reduce>}},
    {Runtime::megatron, "overlap_param_gather", Flag{megatron<&M::overlap_param_gather>}},
    {Runtime::megatron, "ddp_bucket_size", Count{megatron<&M::ddp_bucket_size>}},
    {Runtime::megatron, "create_attention_mask_in_dataloader",
     Flag{megatron<&M::create_attention_mask_in_dataloader>}},
    {Runtime::megatron, "expandable_segments", Flag{megatron<&M::expandable_segments>}},
    {Runtime::megatron, "cublas_workspace_kib", Count{megatron<&M::cublas_workspace_kib>}},
    {Runtime::megatron, "cp_comm_type",
     named<&R::megatron, &M::cp_comm_type>("p2p, all_gather or a2a")},
    {Runtime::megatron, "moe_grouped_gemm", Flag{megatron<&M::moe_grouped_gemm>}},
    {Runtime::megatron, "moe_pad_expert_input_to_capacity",
     Flag{megatron<&M::moe_pad_to_capacity>}},
    {Runtime::megatron, "pipeline_code",
     named<&R::megatron, &M::pipeline_code>("megatron, zero-bubble or dualpipe")},
    {Runtime::megatron, "microbatch_group_size_per_vp_stage",
     Count{megatron<&M::microbatch_group_size_per_vp_stage>}},
    {Runtime::megatron, "recompute_method",
     named<&R::megatron, &M::recompute_method>("uniform or block")},
    {Runtime::megatron, "recompute_num_layers", Count{megatron<&M::recompute_num_layers>}},
    {Runtime::megatron, "recompute_modules",
     Words{take_modules, say_modules,
           "a list of core_attn, mlp, layernorm, moe_act, mla_up_proj, moe, shared_experts, "
           "gdn_norm_out"}},
    {Runtime::megatron, "fp8_param_gather", Flag{megatron<&M::fp8_param_gather>}},
    {Runtime::megatron, "fp8_recipe",
     named<&R::megatron, &M::fp8_recipe>("delayed, tensorwise, mxfp8 or blockwise")},
    {Runtime::megatron, "fp8_dot_product_attention", Flag{megatron<&M::fp8_dot_product_attention>}},
    {Runtime::megatron, "fp8_output_proj", Flag{megatron<&M::fp8_output_proj>}},
    {Runtime::megatron, "first_last_layers_bf16", Flag{megatron<&M::first_last_layers_bf16>}},
    {Runtime::megatron, "num_layers_at_start_in_bf16",
     Count{megatron<&M::num_layers_at_start_in_bf16>}},
    {Runtime::megatron, "num_layers_at_end_in_bf16",
     Count{megatron<&M::num_layers_at_end_in_bf16>}},
    {Runtime::megatron, "activation_func_fp8_input_store",
     Flag{megatron<&M::activation_func_fp8_input_store>}},
    {Runtime::megatron, "cuda_graph_impl",
     named<&R::megatron, &M::cuda_graph_impl>("none, local, transformer_engine or full_iteration")},
    {Runtime::megatron, "cuda_graph_scope",
     Words{take_graph_scope, say_graph_scope,
           "a list of full, attn, mlp, moe, moe_router, moe_preprocess, full_iteration, mamba"}},
    {Runtime::megatron, "moe_token_dispatcher_type",
     named<&R::megatron, &M::moe_token_dispatcher_type>("alltoall or flex")},
    {Runtime::megatron, "moe_flex_dispatcher_backend",
     named<&R::megatron, &M::moe_flex_dispatcher_backend>("deepep or hybridep")},
    {Runtime::megatron, "overlap_moe_expert_parallel_comm",
     Flag{megatron<&M::overlap_moe_expert_parallel_comm>}},
    {Runtime::megatron, "delay_wgrad_compute", Flag{megatron<&M::delay_wgrad_compute>}},
    {Runtime::megatron, "use_fused_weighted_squared_relu",
     Flag{megatron<&M::use_fused_weighted_squared_relu>}},
    {Runtime::megatron, "use_transformer_engine_op_fuser",
     Flag{megatron<&M::use_transformer_engine_op_fuser>}},
    {Runtime::megatron, "cpu_offloading_num_layers",
     Count{megatron<&M::cpu_offloading_num_layers>}},
    {Runtime::megatron, "offload_modules",
     Words{take_offloaded, say_offloaded,
           "none, or a list of attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1, "
           "moe_act, fused_group_mlp"}},
    {Runtime::megatron, "activation_offload_fraction",
     Rate{megatron<&M::activation_offload_fraction>}},
    {Runtime::megatron, "min_offloaded_tensor_size",
     Count{megatron<&M::min_offloaded_tensor_size>}},
    {Runtime::megatron, "outer_dp_sharding_strategy",
     named<&R::megatron, &M::outer_dp_sharding_strategy>("no_shard or optim")},
    {Runtime::megatron, "init_model_with_meta_device",
     Flag{megatron<&M::init_model_with_meta_device>}},
    {Runtime::megatron, "mtp_num_layers", Count{megatron<&M::mtp_num_layers>}},
    {Runtime::megatron, "mtp_use_repeated_layer", Flag{megatron<&M::mtp_use_repeated_layer>}},
    {Runtime::megatron, "account_for_embedding_in_pipeline_split",
     Flag{megatron<&M::account_for_embedding_in_pipeline_split>}},
    {Runtime::megatron, "account_for_loss_in_pipeline_split",
     Flag{megatron<&M::account_for_loss_in_pipeline_split>}},
    {Runtime::megatron, "decoder_first_pipeline_num_layers",
     Count{megatron<&M::decoder_first_pipeline_num_layers>}},
    {Runtime::megatron, "decoder_last_pipeline_num_layers",
     Count{megatron<&M::decoder_last_pipeline_num_layers>}},
    {Runtime::megatron, "pipeline_model_parallel_layout",
     Words{take_pipeline_layout, say_pipeline_layout,
           "chunks such as Et*3|(tt|)*29mL, with E first, L last and every m beside L, or none"}},

    {Runtime::fsdp2, "training.dtype", FormatBytes{fsdp2<&F::parameter_bytes>}},
    {Runtime::fsdp2, "training.mixed_precision_param",
     FormatBytes{fsdp2<&F::mixed_precision_bytes>}},
    {Runtime::fsdp2, "loss_chunks", Count{fsdp2<&F::loss_chunks>}},
    {Runtime::fsdp2, "recipe_date",
     Words{take_date, say_date, "a date, e.g. 2025-02-06, from 2024-03"}},
    {Runtime::fsdp2, "layers", named<&R::fsdp2, &F::layers>("torchtitan or huggingface")},
    {Runtime::fsdp2, "flash_attention", Count{fsdp2<&F::flash_attention>, 1}},
    {Runtime::fsdp2, "compile.enable", Flag{fsdp2<&F::compile>}},
    {Runtime::fsdp2, "compile.components",
     named<&R::fsdp2, &F::compile_components>("model,loss, model or loss")},
    {Runtime::fsdp2, "activation_checkpoint.selective_ac_option",
     Words{take_selective_option, say_selective_option, "op, or a number N for every Nth layer"}},
    {Runtime::fsdp2, "parallelism.fsdp_reshard_after_forward",
     named<&R::fsdp2, &F::reshard_after_forward>("default or always; never is --zero 2")},
    {Runtime::fsdp2, "wrap_by_layer", Flag{fsdp2<&F::wrap_by_layer>}},
    {Runtime::fsdp2, "recompute_num_layers", Count{fsdp2<&F::recompute_num_layers>}},
    {Runtime::fsdp2, "selective_rest", Flag{fsdp2<&F::selective_rest>}},
    {Runtime::fsdp2, "no_reshard_layers", Count{fsdp2<&F::no_reshard_layers>}},
    {Runtime::fsdp2, "float8.recipe_name",
     named<&R::fsdp2, &F::float8_recipe>(
         "tensorwise, rowwise, rowwise_with_gw_hp, delayed or recipe")},
    {Runtime::fsdp2, "float8.enable_fsdp_float8_all_gather", Flag{fsdp2<&F::float8_all_gather>}},
    {Runtime::fsdp2, "compile.enable_async_tensor_parallel",
     Flag{fsdp2<&F::async_tensor_parallel>}},
    {Runtime::fsdp2, "parallelism.loss_parallel", Flag{fsdp2<&F::loss_parallel>}},
    {Runtime::fsdp2, "expandable_segments",
     named<&R::fsdp2, &F::expandable_segments>("true, false or script")},
    {Runtime::fsdp2, "full_state_dict", Flag{fsdp2<&F::full_state_dict>}},
    {Runtime::fsdp2, "training.disable_cuda_graphs",
     named<&R::fsdp2, &F::disable_cuda_graphs>("true, false or recipe")},
    {Runtime::fsdp2, "training.mixed_precision_reduce",
     named<&R::fsdp2, &F::reduce_format>("fp32, bf16 or recipe")},
    {Runtime::fsdp2, "optimizer.implementation",
     named<&R::fsdp2, &F::optimizer_code>("fused, foreach, for-loop or recipe")},
    {Runtime::fsdp2, "torch_version",
     Words{take_torch_version, say_torch_version, "a version, e.g. 2.15, or recipe"}},
    {Runtime::fsdp2, "accelerate_version",
     Words{take_fsdp2_version<&F::accelerate_version>, say_fsdp2_version<&F::accelerate_version>,
           "a version, e.g. 1.15"}},
    {Runtime::fsdp2, "transformers_version",
     Words{take_fsdp2_version<&F::transformers_version>,
           say_fsdp2_version<&F::transformers_version>, "a version, e.g. 5.23"}},
    {Runtime::fsdp2, "logits", named<&R::fsdp2, &F::logits>("dropped or kept")},
    {Runtime::fsdp2, "sync_each_batch", Flag{fsdp2<&F::sync_each_batch>}},
    {Runtime::fsdp2, "attn_implementation", attn_implementation},

    {Runtime::ddp, "gradient_as_bucket_view",
     Flag{place<&R::ddp, &DdpSettings::gradient_as_bucket_view>}},
    {Runtime::ddp, "attn_implementation", attn_implementation},

    {Runtime::deepspeed, "version",
     Words{take_deepspeed_version, say_deepspeed_version, "a version, e.g. 0.19"}},
    {Runtime::deepspeed, "partition_method",
     named<&R::deepspeed, &D::partition_method>(
         "parameters, type:transformer or type:transformer|embedding")},
    {Runtime::deepspeed, "logits", named<&R::deepspeed, &D::logits>("dropped or kept")},
    {Runtime::deepspeed, "attn_implementation", attn_implementation},
    {Runtime::deepspeed, "activation_checkpointing.partition_activations",
     Flag{deepspeed<&D::partition_activations>}},
    {Runtime::deepspeed, "activation_checkpointing.cpu_checkpointing",
     Flag{deepspeed<&D::cpu_checkpointing>}},
    {Runtime::deepspeed, "activation_checkpointing.contiguous_memory_optimization",
     Flag{deepspeed<&D::contiguous_checkpoints>}},
    {Runtime::deepspeed, "activation_checkpointing.number_checkpoints",
     Count{deepspeed<&D::number_checkpoints>}},
    {Runtime::deepspeed, "hidden_dropout", Rate{deepspeed<&D::hidden_dropout>}},
    {Runtime::deepspeed, "attention_dropout", Rate{deepspeed<&D::attention_dropout>}},
    {Runtime::deepspeed, "reduce_bucket_size", Count{deepspeed<&D::reduce_bucket_size>}},
    {Runtime::deepspeed, "overlap_comm", Flag{deepspeed<&D::overlap_comm>}},
    {Runtime::deepspeed, "data_types.grad_accum_dtype",
     IsFp32{deepspeed<&D::fp32_grad_accumulation>}},
    {Runtime::deepspeed, "stage3_prefetch_bucket_size",
     Count{deepspeed<&D::stage3_prefetch_bucket_size>}},
    {Runtime::deepspeed, "stage3_max_live_parameters",
     Count{deepspeed<&D::stage3_max_live_parameters>}},
    {Runtime::deepspeed, "stage3_max_reuse_distance",
     Count{deepspeed<&D::stage3_max_reuse_distance>}},
    {Runtime::deepspeed, "sub_group_size", Count{deepspeed<&D::sub_group_size>}},
    {Runtime::deepspeed, "zero_hpz_partition_size",
     Count{deepspeed<&D::hpz_partition_size>, 1, 1'000'000}},
    {Runtime::deepspeed, "zero_quantized_weights", Flag{deepspeed<&D::quantized_weights>}},
    {Runtime::deepspeed, "zero_quantized_gradients", Flag{deepspeed<&D::quantized_gradients>}},
    {Runtime::deepspeed, "mics_shard_size", Count{deepspeed<&D::mics_shard_size>}},
    {Runtime::deepspeed, "stage3_gather_16bit_weights_on_model_save",
     Flag{deepspeed<&D::gathers_on_save>}},

    {Runtime::zero_paper, "K",
     Words{take_optimizer_bytes, say_optimizer_bytes, "0, or a whole number from 4 to 1000"}},

    {Runtime::zeroplan, "prefetch", Flag{own_engine<&Z::prefetch>}},
    {Runtime::zeroplan, "partition_activations", Flag{own_engine<&Z::partition_activations>}},
    {Runtime::zeroplan, "reduce_bucket_size", Count{own_engine<&Z::reduce_bucket_size>}},
    {Runtime::zeroplan, "contiguous_memory_optimization",
     Flag{own_engine<&Z::contiguous_memory_optimization>}},
    {Runtime::zeroplan, "overlap_comm", Flag{own_engine<&Z::overlap_comm>}},

    {Runtime::nanotron, "version", named<&R::nanotron, &N::version>("2024-12 or 2025-06")},
    {Runtime::nanotron, "tp_recompute_allgather", Flag{nanotron<&N::tp_recompute_allgather>}},
    {Runtime::nanotron, "z_loss_enabled", Flag{nanotron<&N::z_loss>}},
    {Runtime::nanotron, "log_attn_probs", Flag{nanotron<&N::log_attn_probs>}},
};

}  // namespace

std::span<const RuntimeSetting> runtime_settings() {
  return table;
}

}  // namespace zeroplan
