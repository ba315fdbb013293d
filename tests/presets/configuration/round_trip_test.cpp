// A plan as a configuration of its runtime, and back.
#include "presets/configuration.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/presets/imported.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using tests::import;
using tests::Options;

namespace {

Options sorted(Options options) {
  std::sort(options.begin(), options.end());
  return options;
}

// A random layout of this runtime, with what tests of memory do not vary.
std::optional<Problem> random_problem(std::mt19937& random, Runtime runtime) {
  tests::Draw draw(random);
  auto p = draw.problem({static_cast<std::int64_t>(runtime)});
  if (!p) return std::nullopt;
  p->layout.offload = static_cast<Offload>(draw.pick({0, 0, 1, 2}));
  p->training.optimizer = static_cast<OptimizerKind>(draw.pick({0, 0, 1, 2, 3}));
  p->layout.hsdp = draw.pick({0, 0, 0, 1, 2});
  p->runtime.megatron.exp_avg_bytes = draw.pick({2, 4});
  p->runtime.megatron.grad_reduce_in_bf16 = draw.coin();
  p->runtime.megatron.store_param_remainders = draw.coin();
  p->runtime.megatron.use_precision_aware_optimizer =
      p->runtime.megatron.exp_avg_bytes == 4 && p->layout.offload == Offload::none && draw.coin();
  p->runtime.megatron.tp_comm_overlap = draw.coin();
  p->runtime.megatron.overlap_grad_reduce = draw.coin();
  p->runtime.megatron.ddp_bucket_size = draw.pick({0, 0, 200'000'000});
  p->runtime.megatron.expandable_segments = draw.coin();
  p->runtime.megatron.create_attention_mask_in_dataloader = draw.coin();
  p->runtime.megatron.moe_grouped_gemm = draw.coin();
  p->runtime.deepspeed.reduce_bucket_size = draw.pick({500'000'000, 50'000'000});
  p->runtime.deepspeed.hpz_partition_size = draw.pick({1, 2});
  p->runtime.deepspeed.quantized_weights = draw.coin();
  p->runtime.deepspeed.quantized_gradients = draw.coin();
  p->runtime.deepspeed.hidden_dropout = draw.coin() ? 0.1 : 0;
  p->runtime.fsdp2.layers =
      draw.pick({0, 0, 1}) == 1 ? LayerCode::huggingface : LayerCode::torchtitan;
  p->runtime.fsdp2.recipe_date = draw.pick({20250206, 20260713, 20260813, 20260821});
  if (p->training.precision == Precision::fp32) p->runtime.fsdp2.mixed_precision_bytes = 4;
  p->runtime.megatron.init_model_with_meta_device = draw.coin();
  p->runtime.megatron.fp8_param_gather =
      p->training.precision == Precision::fp8 && p->layout.zero != ZeroStage::none && draw.coin();
  MegatronSettings& set = p->runtime.megatron;
  set.fp8_recipe = static_cast<Fp8Recipe>(draw.pick({0, 1, 2, 3}));
  set.fp8_dot_product_attention = p->training.precision == Precision::fp8 && draw.coin();
  if (p->training.precision == Precision::fp8 && !p->model.tied_embeddings && draw.coin()) {
    set.fp8_output_proj = set.fp8_recipe == Fp8Recipe::mxfp8;
  }
  set.activation_func_fp8_input_store = p->model.mlp.gated && draw.coin();
  set.cuda_graph_impl = static_cast<CudaGraphs>(draw.pick({0, 0, 1, 2, 3}));
  set.cuda_graph_scope = static_cast<unsigned>(draw.pick({0, 2, 50}));
  set.mtp_use_repeated_layer = draw.coin();
  if (set.offload_modules != 0) set.cuda_graph_impl = CudaGraphs::none;
  set.use_fused_weighted_squared_relu = draw.coin();
  set.megatron_fsdp_main_grads_dtype = static_cast<GradientType>(draw.pick({0, 0, 1, 2, 3}));
  set.megatron_fsdp_grad_comm_dtype = static_cast<GradientType>(draw.pick({0, 0, 1, 2, 3}));
  set.use_transformer_engine_op_fuser = draw.coin();
  set.outer_dp_sharding_strategy = static_cast<OuterSharding>(draw.pick({0, 1}));
  // Of Megatron's own layers the legacy models alone attend by flash-attn.
  if (set.local_layers() && p->training.attention == AttentionKernel::unfused && draw.coin()) {
    p->training.attention = AttentionKernel::flash;
    set.megatron_core = 17;
  }
  if (p->model.moe) {
    set.moe_token_dispatcher_type = static_cast<TokenDispatcher>(draw.pick({0, 1}));
    set.moe_flex_dispatcher_backend = static_cast<FlexBackend>(draw.pick({0, 1}));
    set.overlap_moe_expert_parallel_comm = p->layout.ep > 1 && p->layout.pp == 1 && draw.coin();
    set.delay_wgrad_compute = set.overlap_moe_expert_parallel_comm && draw.coin();
  }
  if (first_violation(*p)) return std::nullopt;
  return p;
}

using Names = std::set<std::string>;

Names joined(Names some, const Names& more) {
  some.insert(more.begin(), more.end());
  return some;
}

const Names of_torchtitan{"recipe_date",
                          "float8.recipe_name",  // of fp8 alone
                          "layers",
                          "loss_chunks",
                          "torch_version",
                          "accelerate_version",
                          "transformers_version",
                          "logits",
                          "attn_implementation",
                          "sync_each_batch",
                          "training.disable_cuda_graphs",
                          "training.mixed_precision_reduce",
                          "optimizer.implementation",
                          "full_state_dict",
                          "flash_attention",
                          "parallelism.fsdp_reshard_after_forward",
                          "parallelism.loss_parallel",
                          "float8.enable_fsdp_float8_all_gather",
                          "activation_checkpoint.selective_ac_option",
                          "recompute_num_layers",
                          "selective_rest",
                          "no_reshard_layers"};
// The Trainer and Accelerate start code of one's own, which says the rest.
const Names of_code = joined(of_torchtitan,
                             {"--tp",
                              "--pp",
                              "--vpp",
                              "--cp",
                              "--ep",
                              "--schedule",
                              "--sequence-parallel",
                              "--hsdp",
                              "--precision",
                              "--seq",
                              "--attention",
                              "--optimizer",
                              "--offload",
                              "--recompute",
                              "version",
                              "partition_method",
                              "hidden_dropout",
                              "attention_dropout",
                              "gradient_as_bucket_view",
                              "training.dtype",
                              "training.mixed_precision_param",
                              "compile.enable",
                              "compile.enable_async_tensor_parallel",
                              "compile.components",
                              "expandable_segments"});

const Names of_bridge{"--schedule",          "transformer_engine", "megatron_core",
                      "expandable_segments", "attention_backend",  "pipeline_code",
                      "recompute_modules",   "recompute_method",   "recompute_num_layers",
                      "moe_grouped_gemm"};
// Fields of its configuration for which it has no argument.
const Names of_megatron =
    joined(of_bridge, {"fp8_dot_product_attention", "activation_func_fp8_input_store"});

// What each format may leave unsaid: environment, code, and settings that the layout does not use.
const std::map<ConfigurationFormat, Names> may_stay_unsaid{
    {ConfigurationFormat::megatron, of_megatron},
    {ConfigurationFormat::megatron_bridge, joined(of_bridge, {"cuda_graph_impl", "--attention"})},
    {ConfigurationFormat::torchtitan,
     joined(of_torchtitan, {"--vpp", "--optimizer", "--attention", "--hsdp"})},
    {ConfigurationFormat::deepspeed,
     {"--seq", "--recompute", "--attention", "--pp", "--ep", "--optimizer", "--offload", "version",
      "logits", "attn_implementation", "partition_method", "hidden_dropout", "attention_dropout"}},
    {ConfigurationFormat::trainer, of_code},
    {ConfigurationFormat::accelerate,
     joined(of_code,
            {"--micro-batch", "--global-batch", "--etp", "reduce_bucket_size",
             "stage3_prefetch_bucket_size", "zero_hpz_partition_size", "zero_quantized_weights",
             "zero_quantized_gradients"})},
    {ConfigurationFormat::nanotron,
     {"--optimizer", "--attention", "version", "log_attn_probs", "z_loss_enabled"}}};

// What these mean depends on the number of GPUs or on the model.
const std::set<std::string> needs_more_than_the_file{
    "parallelism.pipeline_parallel_layers_per_stage"};

// The [tables] of a TOML file, which may declare each once.
std::vector<std::string> tables_of(const std::string& text) {
  std::vector<std::string> tables;
  for (std::size_t at = text.find("\n["); at != text.npos; at = text.find("\n[", at + 1)) {
    tables.push_back(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
  }
  return tables;
}

std::string name_of_option(const TypedOption& option) {
  return option.flag == "--set" ? option.value.substr(0, option.value.find('=')) : option.flag;
}

}  // namespace

TEST_CASE("exported and imported again, a plan is the same, over random legal layouts") {
  std::mt19937 random(20261121);
  for (const Runtime runtime :
       {Runtime::megatron, Runtime::fsdp2, Runtime::ddp, Runtime::deepspeed, Runtime::nanotron}) {
    for (int layouts = 0; layouts < tests::draws(40);) {
      const auto p = random_problem(random, runtime);
      if (!p) continue;
      ++layouts;
      for (const ConfigurationFormat format : formats_of(p->runtime)) {
        const ExportedConfiguration file = export_configuration(*p, format);
        const ImportedConfiguration back = import(file.text);
        CAPTURE(file.text);
        REQUIRE(back.format == name_of(format));
        REQUIRE((back.notes.empty() || format == ConfigurationFormat::accelerate));  // its ranks
        if (format == ConfigurationFormat::torchtitan) {
          const std::vector<std::string> tables = tables_of(file.text);
          REQUIRE(std::set<std::string>(tables.begin(), tables.end()).size() == tables.size());
        }
        for (const std::string& key : back.not_understood) {
          CAPTURE(key);
          REQUIRE(needs_more_than_the_file.contains(key.substr(0, key.find(' '))));
        }
        // What was left unsaid stands for whatever the file says of the same option.
        std::set<std::string> unsaid;
        for (const TypedOption& option : file.unsaid) {
          CAPTURE(name_of(format), option.flag, option.value);
          unsaid.insert(name_of_option(option));
          // Accelerate's file has a few of DeepSpeed's keys.
          if (format == ConfigurationFormat::accelerate && option.flag == "--set") continue;
          // A hybrid's pattern says the layers of each chunk, and not why.
          const std::string name = name_of_option(option);
          const bool in_pattern =
              file.text.find("hybrid") != std::string::npos && name.starts_with("account_for_");
          REQUIRE((in_pattern || may_stay_unsaid.at(format).contains(name)));
        }
        const Options wanted = options_of(*p);
        Options both;  // a default that the file means otherwise is unsaid, and no option
        for (const TypedOption& option : file.unsaid) {
          const bool one = std::find(wanted.begin(), wanted.end(), option) != wanted.end();
          REQUIRE((one || option.flag == "--set"));
          if (one) both.push_back(option);
        }
        Options known = back.options;
        known.insert(known.end(), back.left_open.begin(), back.left_open.end());
        for (TypedOption option : known) {
          if (option.flag == "--gradient-accumulation") {
            const std::int64_t samples = std::stoll(option.value) * p->layout.micro_batch;
            option = {"--global-batch", std::to_string(samples * p->layout.dp)};
          }
          if (unsaid.contains(name_of_option(option))) continue;
          // Buckets of the size that they have by default among so many ranks.
          const MegatronSettings& set = p->runtime.megatron;
          const std::int64_t bucket = set.bucket_elements(p->layout);
          if (set.ddp_bucket_size == 0 && option.flag == "--set" &&
              option.value == "ddp_bucket_size=" + std::to_string(bucket)) {
            continue;
          }
          if (option.value.starts_with("dp/")) {
            const std::int64_t copies = std::stoll(option.value.substr(3));
            option.value = std::to_string(p->layout.dp / copies);
          }
          both.push_back(option);
        }
        REQUIRE(sorted(both) == sorted(wanted));
      }
    }
  }
}
