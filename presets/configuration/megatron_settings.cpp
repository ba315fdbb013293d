// How does Megatron-LM say its kernels and the settings of its own? Front doors:
// add_megatron_kernels, add_megatron_settings and what reads them.
#include "presets/configuration/megatron_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zeroplan {
namespace {

// Arguments that say a setting, written where it is not at its default.
struct Named {
  const char* argument;
  const char* setting;
};
constexpr Named with_value[] = {
    {"megatron-fsdp-main-grads-dtype", "megatron_fsdp_main_grads_dtype"},
    {"megatron-fsdp-grad-comm-dtype", "megatron_fsdp_grad_comm_dtype"},
    {"exp-avg-dtype", "exp_avg_dtype"},
    {"exp-avg-sq-dtype", "exp_avg_sq_dtype"},
    {"cross-entropy-fusion-impl", "cross_entropy_fusion_impl"},
    {"cp-comm-type", "cp_comm_type"},
    {"ddp-bucket-size", "ddp_bucket_size"},
    {"mtp-num-layers", "mtp_num_layers"},
    {"cpu-offloading-num-layers", "cpu_offloading_num_layers"},
    {"activation-offload-fraction", "activation_offload_fraction"},
    {"min-offloaded-tensor-size", "min_offloaded_tensor_size"},
    {"outer-dp-sharding-strategy", "outer_dp_sharding_strategy"},
    {"fp8-recipe", "fp8_recipe"},
    {"num-layers-at-start-in-bf16", "num_layers_at_start_in_bf16"},
    {"num-layers-at-end-in-bf16", "num_layers_at_end_in_bf16"},
    {"cuda-graph-impl", "cuda_graph_impl"},
    {"moe-flex-dispatcher-backend", "moe_flex_dispatcher_backend"},
    {"microbatch-group-size-per-virtual-pipeline-stage", "microbatch_group_size_per_vp_stage"},
    {"decoder-first-pipeline-num-layers", "decoder_first_pipeline_num_layers"},
    {"decoder-last-pipeline-num-layers", "decoder_last_pipeline_num_layers"},
    {megatron_layout_argument, "pipeline_model_parallel_layout"},
    {"make-vocab-size-divisible-by", "make_vocab_size_divisible_by"}};
constexpr Named switched_on[] = {
    {"grad-reduce-in-bf16", "grad_reduce_in_bf16"},
    {"cross-entropy-loss-fusion", "cross_entropy_loss_fusion"},
    {"tp-comm-overlap", "tp_comm_overlap"},
    {"overlap-grad-reduce", "overlap_grad_reduce"},
    {"overlap-param-gather", "overlap_param_gather"},
    {"moe-permute-fusion", "moe_permute_fusion"},
    {"fp8-param-gather", "fp8_param_gather"},
    {"fp8-dot-product-attention", "fp8_dot_product_attention"},
    {"fp8-output-proj", "fp8_output_proj"},
    {"first-last-layers-bf16", "first_last_layers_bf16"},
    {"activation-func-fp8-input-store", "activation_func_fp8_input_store"},
    {"overlap-moe-expert-parallel-comm", "overlap_moe_expert_parallel_comm"},
    {"delay-wgrad-compute", "delay_wgrad_compute"},
    {"mtp-use-repeated-layer", "mtp_use_repeated_layer"},
    {"use-fused-weighted-squared-relu", "use_fused_weighted_squared_relu"},
    {"use-transformer-engine-op-fuser", "use_transformer_engine_op_fuser"},
    {"init-model-with-meta-device", "init_model_with_meta_device"},
    {"moe-pad-expert-input-to-capacity", "moe_pad_expert_input_to_capacity"},
    {"account-for-embedding-in-pipeline-split", "account_for_embedding_in_pipeline_split"},
    {"account-for-loss-in-pipeline-split", "account_for_loss_in_pipeline_split"}};
constexpr Named switched_off[] = {
    {"no-gradient-accumulation-fusion", "gradient_accumulation_fusion"},
    {"no-masked-softmax-fusion", "masked_softmax_fusion"},
    {"no-store-param-remainders", "store_param_remainders"},
    {"no-create-attention-mask-in-dataloader", "create_attention_mask_in_dataloader"}};
// Megatron-LM's own defaults are not those of published runs, so these are always said.
constexpr Named rates[] = {{"hidden-dropout", "hidden_dropout"},
                           {"attention-dropout", "attention_dropout"}};
constexpr const char* own_rate = "0.1";
// How tokens reach their experts: Megatron-LM's default is the way that is not modelled
// (core/transformer/transformer_config.py @d98e8a64dd).
constexpr const char* dispatcher_argument = "moe-token-dispatcher-type";
constexpr const char* dispatcher_setting = "moe_token_dispatcher_type";
constexpr const char* own_dispatcher = "allgather";
constexpr const char* scope_argument = "cuda-graph-scope";
constexpr const char* attention_backend = "attention-backend";
// Megatron's own layers attend by flash-attn in its legacy models alone.
constexpr const char* legacy_models = "use-legacy-models";
constexpr const char* legacy_flash = "use-flash-attn";
constexpr const char* last_with_legacy_models = "0.17";

void read_engine_attention(Entries& entries, Meaning& meaning) {
  const auto backend = entries.take_if(attention_backend, {"unfused", "fused", "flash", "auto"});
  meaning.say("--attention", backend == "unfused" ? "unfused" : "flash");
  if (backend == "flash") meaning.set_if("attention_backend", backend);
}

// No fused backend is understood here: those layers would store their scores all the same.
void read_own_attention(Entries& entries, Meaning& meaning) {
  entries.take_if(attention_backend, {"unfused", "local", "auto"});
  const bool legacy = entries.take_flag(legacy_models);
  if (legacy) meaning.set("megatron_core", last_with_legacy_models);
  const bool flash = legacy && entries.take_flag(legacy_flash);
  meaning.say("--attention", flash ? "flash" : "unfused");
}

void read_dispatcher(Entries& entries, Meaning& meaning) {
  const auto said = entries.take_if(dispatcher_argument, {"allgather", "alltoall", "flex"});
  const bool silent = !said && !entries.has(dispatcher_argument) && entries.has("num-experts");
  if (silent || said == own_dispatcher) {
    meaning.note(fmt::format("{} {}{} is taken for alltoall: it is not modelled",
                             dispatcher_argument, own_dispatcher,
                             silent ? ", Megatron-LM's own," : ""));
  } else if (said == "flex") {
    meaning.set_if(dispatcher_setting, said);
  }
}

}  // namespace

std::vector<std::string> megatron_list(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

void add_megatron_kernels(std::vector<Entry>& out, const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool unfused = p.training.attention == AttentionKernel::unfused;
  const bool local = set.local_layers();
  if (local && !unfused) {
    out.push_back({legacy_models, nullptr});
    out.push_back({legacy_flash, nullptr});
  } else {
    out.push_back({attention_backend, unfused ? "unfused" : name_of(set.attention_backend)});
  }
  out.push_back({"transformer-impl", local ? "local" : "transformer_engine"});
  if (!set.bias_activation_fusion) {
    out.push_back({p.model.mlp.gated ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion", nullptr});
  }
  for (const Named& rate : rates) {
    out.push_back({rate.argument, setting_text(p.runtime, rate.setting)});
  }
}

void read_megatron_kernels(Entries& entries, Meaning& meaning) {
  const auto layers = entries.take_if("transformer-impl", {"local", "transformer_engine"});
  if (layers == "local") {
    meaning.set_if("transformer_engine", layers);
    read_own_attention(entries, meaning);
  } else {
    read_engine_attention(entries, meaning);
  }
  const bool swiglu = entries.take_flag("no-bias-swiglu-fusion");
  const bool gelu = entries.take_flag("no-bias-gelu-fusion");
  if (swiglu || gelu) meaning.set("bias_activation_fusion", "false");
  for (const Named& rate : rates) {
    meaning.set(rate.setting, entries.take(rate.argument).value_or(own_rate));
  }
}

void add_megatron_settings(std::vector<Entry>& out, const Problem& p) {
  // Arguments say what a container turns on, but name none.
  RuntimeSpec runtime = p.runtime;
  runtime.megatron.container = 0;
  const std::vector<Override> changed = changed_settings(runtime);
  const auto value = [&](std::string_view key) {
    const auto found = std::find_if(changed.begin(), changed.end(),
                                    [&](const Override& o) { return o.first == key; });
    return found == changed.end() ? std::optional<std::string>() : found->second;
  };
  for (const Named& n : with_value) {
    if (const auto text = value(n.setting)) out.push_back({n.argument, *text});
  }
  if (p.runtime.megatron.cpu_offloading_num_layers > 0) out.push_back({"cpu-offloading", nullptr});
  if (const auto modules = value("offload_modules")) {
    out.push_back({"fine-grained-activation-offloading", nullptr});
    out.push_back({"offload-modules", megatron_list(*modules)});
  }
  if (const auto scope = value("cuda_graph_scope"))
    out.push_back({scope_argument, megatron_list(*scope)});
  for (const Named& n : switched_on) {
    if (value(n.setting)) out.push_back({n.argument, nullptr});
  }
  for (const Named& n : switched_off) {
    if (value(n.setting)) out.push_back({n.argument, nullptr});
  }
  // Offload needs it too.
  if (p.runtime.megatron.precision_aware() || p.layout.offload == Offload::optimizer) {
    out.push_back({"use-precision-aware-optimizer", nullptr});
  }
  if (!p.model.moe) return;
  out.push_back({dispatcher_argument, setting_text(p.runtime, dispatcher_setting)});
  if (p.runtime.megatron.moe_grouped_gemm) out.push_back({"moe-grouped-gemm", nullptr});
}

void read_megatron_settings(Entries& entries, Meaning& meaning) {
  const bool implied = entries.has("exp-avg-dtype") || entries.has("exp-avg-sq-dtype") ||
                       entries.has("optimizer-cpu-offload");
  if (entries.take_flag("use-precision-aware-optimizer") && !implied) {
    meaning.set("use_precision_aware_optimizer", "true");
  }
  for (const Named& n : with_value) meaning.set_if(n.setting, entries.take(n.argument));
  entries.take_flag("cpu-offloading");
  const auto modules = entries.take("offload-modules");
  if (entries.take_flag("fine-grained-activation-offloading")) {
    meaning.set_if("offload_modules", modules);
  }
  meaning.set_if("cuda_graph_scope", entries.take(scope_argument));
  for (const Named& n : switched_on) {
    if (entries.take_flag(n.argument)) meaning.set(n.setting, "true");
  }
  for (const Named& n : switched_off) {
    if (entries.take_flag(n.argument)) meaning.set(n.setting, "false");
  }
  read_dispatcher(entries, meaning);
  const auto grouped = entries.take("moe-grouped-gemm");
  if (grouped == "false" || (!grouped && entries.has("num-experts"))) {
    meaning.set("moe_grouped_gemm", "false");
  }
}

}  // namespace zeroplan
