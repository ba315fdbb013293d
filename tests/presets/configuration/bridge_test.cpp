// Recipes of Megatron-Bridge.
#include "presets/configuration.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::import;
using tests::value;

namespace {

// A recipe that changes _pretrain_common.
ImportedConfiguration recipe(const std::string& lines) {
  std::string text =
      "from megatron.bridge.recipes.common import _pretrain_common\n\n\ndef mine():\n"
      "    cfg = _pretrain_common()\n";
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    text += "    cfg." + lines.substr(at, lines.find('\n', at) + 1 - at);
  }
  return import(text + "    return cfg\n");
}

Problem plan() {
  return tests::problem(Runtime::megatron, "llama3-8b",
                        {.dp = 4, .tp = 2, .zero = ZeroStage::optimizer});
}

std::string exported(const Problem& p) {
  return export_configuration(p, ConfigurationFormat::megatron_bridge).text;
}

}  // namespace

TEST_CASE("a recipe that says no to what its base has on is believed") {
  const std::string layout = "model.tensor_model_parallel_size = 2\n";
  const ImportedConfiguration base = recipe(layout);
  CHECK(value(base, "overlap_grad_reduce") == "true");
  CHECK(value(base, "--zero") == "1");
  const ImportedConfiguration no = recipe(
      layout +
      "ddp.overlap_grad_reduce = False\nddp.overlap_param_gather = False\n"
      "ddp.use_distributed_optimizer = False\noptimizer.use_distributed_optimizer = False\n");
  CHECK(value(no, "overlap_grad_reduce").empty());
  CHECK(value(no, "overlap_param_gather").empty());
  CHECK(value(no, "--zero") == "0");
  CHECK(value(recipe(layout + "model.moe_grouped_gemm = False\n"), "moe_grouped_gemm") == "false");
}

TEST_CASE("a configuration of overlaps switches them on, whatever ddp says") {
  const std::string off = "ddp.overlap_grad_reduce = False\nddp.overlap_param_gather = False\n";
  const ImportedConfiguration on =
      recipe(off + "comm_overlap = CommOverlapConfig(tp_comm_overlap=True)\n");
  CHECK(value(on, "tp_comm_overlap") == "true");
  CHECK(value(on, "overlap_grad_reduce") == "true");
  CHECK(value(on, "overlap_param_gather") == "true");
  const ImportedConfiguration said =
      recipe(off +
             "comm_overlap = CommOverlapConfig(tp_comm_overlap=True, overlap_grad_reduce=True, "
             "overlap_param_gather=False)\n");
  CHECK(value(said, "overlap_grad_reduce") == "true");
  CHECK(value(said, "overlap_param_gather").empty());
}

TEST_CASE("a configuration of overlaps chooses larger buckets, unless it says how large") {
  const std::string own = "ddp.bucket_size = 50000000\n";
  const auto bucket = [](const std::string& lines) {
    return value(recipe("model.tensor_model_parallel_size = 2\n" + lines), "ddp_bucket_size");
  };
  CHECK(bucket("ddp.use_distributed_optimizer = True\n").empty());
  CHECK(bucket(own) == "50000000");
  CHECK(bucket(own + "comm_overlap = CommOverlapConfig(tp_comm_overlap=True)\n") == "134217728");
  CHECK(bucket("comm_overlap = CommOverlapConfig(tp_comm_overlap=True, bucket_size=7000000)\n") ==
        "7000000");
  CHECK(bucket(own + "comm_overlap = CommOverlapConfig(tp_comm_overlap=True, "
                     "overlap_grad_reduce=False)\n") == "50000000");

  Problem p = plan();
  p.runtime.megatron.overlap_grad_reduce = true;
  CHECK_THAT(exported(p), !ContainsSubstring("bucket_size"));
  p.runtime.megatron.tp_comm_overlap = true;
  CHECK_THAT(exported(p), ContainsSubstring("bucket_size=40000000,"));
  p.runtime.megatron.ddp_bucket_size = 60'000'000;
  CHECK(value(import(exported(p)), "ddp_bucket_size") == "60000000");
}

TEST_CASE("precision is a recipe's name, the function that makes it, or its fields") {
  CHECK(value(recipe("mixed_precision = bf16_mixed()\n"), "--precision") == "bf16");
  const ImportedConfiguration current =
      recipe("mixed_precision = \"bf16_with_fp8_current_scaling_mixed\"\n");
  CHECK(value(current, "fp8_recipe") == "tensorwise");
  CHECK(value(current, "fp8_param_gather") == "true");
  CHECK(current.notes.empty());
  const auto ends = [](const ImportedConfiguration& c) {
    return std::array{value(c, "first_last_layers_bf16"), value(c, "num_layers_at_start_in_bf16"),
                      value(c, "num_layers_at_end_in_bf16")};
  };
  // One at each end is what Megatron-LM itself takes.
  CHECK(ends(current) == std::array<std::string, 3>{"true", "", ""});
  CHECK(ends(recipe("mixed_precision = nemotron_3_super_bf16_with_nvfp4_mixed()\n")) ==
        std::array<std::string, 3>{"true", "0", "14"});
  CHECK(ends(recipe("mixed_precision = bf16_with_fp8_current_scaling_mixed()\n"
                    "mixed_precision.num_layers_at_end_in_bf16 = 4\n")) ==
        std::array<std::string, 3>{"true", "", "4"});
  CHECK(
      ends(recipe("mixed_precision = bf16_with_fp8_current_scaling_mixed()\n"
                  "mixed_precision.first_last_layers_bf16 = False\n"))[0]
          .empty());
  const ImportedConfiguration blocks =
      recipe("mixed_precision = bf16_with_fp8_subchannel_scaling_mixed()\n");
  CHECK(value(blocks, "fp8_recipe") == "blockwise");
  CHECK(value(blocks, "fp8_param_gather").empty());
  const ImportedConfiguration fields = recipe(
      "mixed_precision = bf16_mixed()\nmixed_precision.fp8 = \"hybrid\"\n"
      "mixed_precision.fp8_param_gather = False\nmixed_precision.grad_reduce_in_fp32 = False\n");
  CHECK(value(fields, "--precision") == "fp8");
  CHECK(value(fields, "fp8_recipe") == "tensorwise");
  CHECK(value(fields, "grad_reduce_in_bf16") == "true");
  const ImportedConfiguration fp16 = recipe("mixed_precision = MixedPrecisionConfig(fp16=True)\n");
  CHECK(value(fp16, "--precision") == "fp16");
  CHECK(value(fp16, "grad_reduce_in_bf16").empty());
  CHECK(value(recipe("mixed_precision = fp16_mixed()\n"), "grad_reduce_in_bf16") == "true");
  CHECK(value(recipe("mixed_precision = bf16_with_nvfp4_mixed()\n"), "--precision") == "nvfp4");
  CHECK_THAT(error_text([] { recipe("mixed_precision = \"int8\"\n"); }),
             ContainsSubstring("'int8'"));
}

TEST_CASE("what mixed precision says of the reduction overwrites ddp's") {
  const ImportedConfiguration t = recipe("ddp.grad_reduce_in_fp32 = False\n");
  CHECK(value(t, "grad_reduce_in_bf16").empty());
  CHECK_THAT(t.notes.front(), ContainsSubstring("overwritten"));
}

TEST_CASE("kernels, types and masks of a recipe are read") {
  const ImportedConfiguration t = recipe(
      "train.micro_batch_size = 1\nmodel.attention_backend = AttnBackend.unfused\n"
      "model.transformer_layer_spec = local_layer_spec\noptimizer.optimizer = \"dist_muon\"\n"
      "optimizer.exp_avg_dtype = torch.bfloat16\noptimizer.exp_avg_sq_dtype = torch.float32\n"
      "optimizer.store_param_remainders = False\nmodel.bias_activation_fusion = False\n"
      "dataset.skip_getting_attention_mask_from_dataset = False\n");
  CHECK(value(t, "--attention") == "unfused");
  CHECK(value(t, "transformer_engine") == "local");
  CHECK(value(t, "--optimizer") == "muon");
  CHECK(value(t, "exp_avg_dtype") == "bf16");
  CHECK(value(t, "exp_avg_sq_dtype").empty());
  CHECK(value(t, "store_param_remainders") == "false");
  CHECK(value(t, "bias_activation_fusion") == "false");
  CHECK(value(t, "create_attention_mask_in_dataloader").empty());
  CHECK(value(recipe("train.micro_batch_size = 1\n"), "create_attention_mask_in_dataloader") ==
        "false");
  CHECK(t.not_understood.empty());
}

TEST_CASE("a recipe says what follows from a choice") {
  Problem p = plan();
  CHECK_THAT(exported(p), !ContainsSubstring("CommOverlapConfig"));  // it would choose buckets
  p.runtime.megatron.tp_comm_overlap = true;
  CHECK_THAT(exported(p), ContainsSubstring("overlap_grad_reduce=False"));
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::transformer_engine;
  CHECK_THAT(exported(p), ContainsSubstring("cfg.rng.te_rng_tracker = True\n"));
  p.layout.zero = ZeroStage::parameters;
  CHECK_THAT(exported(p), ContainsSubstring("cfg.checkpoint.ckpt_format = \"fsdp_dtensor\"\n"));
  p.layout.zero = ZeroStage::none;
  CHECK_THAT(exported(p), ContainsSubstring("cfg.optimizer.use_distributed_optimizer = False\n"));
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::local;  // which it refuses
  const auto unsaid = export_configuration(p, ConfigurationFormat::megatron_bridge).unsaid;
  REQUIRE(unsaid.size() == 1);
  CHECK(unsaid.front().value == "cuda_graph_impl=local");
  p.model.name = "mine \"7B\"";
  CHECK_THAT(exported(p), ContainsSubstring("from_hf_pretrained(\"MODEL\")"));
}
