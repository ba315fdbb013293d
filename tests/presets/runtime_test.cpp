#include "presets/runtime.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/preset_file.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

std::string refusal(Runtime kind, const std::string& key, const std::string& value) {
  return error_text([&] { load_runtime(kind, {{key, value}}); });
}

}  // namespace

TEST_CASE("every setting is described in its runtime's file, and the other way round") {
  for (const std::string_view name : names<Runtime>()) {
    CAPTURE(name);
    const auto settings = nlohmann::json::parse(preset_json("runtimes", name)).at("settings");
    const auto keys = runtime_setting_keys(*parse_name<Runtime>(name));
    CHECK(settings.size() == keys.size());
    for (const std::string& key : keys) {
      CAPTURE(key);
      REQUIRE(settings.contains(key));
      CHECK_FALSE(settings.at(key).at("meaning").get<std::string>().empty());
      CHECK_FALSE(settings.at(key).at("source").get<std::string>().empty());
    }
  }
}

TEST_CASE("defaults are the runtime's own") {
  const MegatronSettings m = load_runtime(Runtime::megatron, {}).megatron;
  CHECK(m.make_vocab_size_divisible_by == 128);
  CHECK(m.gradient_accumulation_fusion);
  CHECK(m.exp_avg_bytes == 4);
  CHECK_FALSE(m.cross_entropy_loss_fusion);
  CHECK(m.transformer_engine_version == 219);
  CHECK(load_runtime(Runtime::deepspeed, {}).deepspeed.reduce_bucket_size == 500'000'000);
}

TEST_CASE("a container's defaults stand where nothing else is set") {
  const auto megatron = [](const std::vector<Override>& set) {
    return load_runtime(Runtime::megatron, set).megatron;
  };
  const MegatronSettings old = megatron({{"container", "25.11"}});
  CHECK(old.transformer_engine_version == 209);
  CHECK(old.overlap_param_gather);
  CHECK(old.ddp_bucket_size == 134'217'728);
  CHECK(old.cross_entropy_loss_fusion);
  CHECK_FALSE(old.expandable_segments);
  CHECK_FALSE(old.create_attention_mask_in_dataloader);
  const MegatronSettings mended = megatron({{"container", "26.06.01"}});
  CHECK(mended == megatron({{"container", "26.06"}}));
  CHECK(mended.transformer_engine_version == 216);
  CHECK(mended.expandable_segments);
  // In any order.
  CHECK_FALSE(
      megatron({{"expandable_segments", "off"}, {"container", "26.06"}}).expandable_segments);
  CHECK(megatron({{"container", "none"}}) == megatron({}));
  CHECK(says(refusal(Runtime::megatron, "container", "24.12"), "25.09, 25.11"));
}

TEST_CASE("an answer says which container's defaults it takes") {
  Problem p = tests::problem(Runtime::megatron, "llama3-8b", {});
  const auto said = [&] {
    const std::vector<std::string> all = code_of(p).assumptions(p);
    return std::ranges::count_if(
        all, [](const std::string& text) { return text.find("container 26.06") != text.npos; });
  };
  CHECK(said() == 0);
  p.runtime = load_runtime(Runtime::megatron, {{"container", "26.06"}});
  CHECK(said() == 1);
}

TEST_CASE("an answer says whose layers and which PyTorch it takes") {
  const Problem p = tests::problem(Runtime::fsdp2, "llama3-8b", {.zero = ZeroStage::parameters});
  CHECK(code_of(p).assumptions(p).front() ==
        "torchtitan's layers as of 2026-08-21, PyTorch 2.14 (--set recipe_date, torch_version)");
}

TEST_CASE("what is said of a container's settings says them again") {
  for (const std::vector<Override>& set :
       {std::vector<Override>{{"container", "26.04"}},
        {{"container", "26.06"}, {"overlap_grad_reduce", "false"}, {"transformer_engine", "2.19"}},
        {{"container", "25.09"}, {"exp_avg_dtype", "bf16"}}}) {
    const RuntimeSpec spec = load_runtime(Runtime::megatron, set);
    CHECK(load_runtime(Runtime::megatron, changed_settings(spec)) == spec);
  }
}

TEST_CASE("values are read as the runtimes write them, the last one wins") {
  CHECK(load_runtime(Runtime::deepspeed, {{"reduce_bucket_size", "5e7"}})
            .deepspeed.reduce_bucket_size == 50'000'000);
  CHECK(load_runtime(Runtime::deepspeed, {{"overlap_comm", "true"}, {"overlap_comm", "off"}})
            .deepspeed.overlap_comm == false);
  CHECK(load_runtime(Runtime::deepspeed, {{"data_types.grad_accum_dtype", "fp32"}})
            .deepspeed.fp32_grad_accumulation);
  CHECK(load_runtime(Runtime::fsdp2, {{"training.dtype", "bfloat16"}}).fsdp2.parameter_bytes == 2);
  const auto megatron = [](const std::string& key, const std::string& value) {
    return load_runtime(Runtime::megatron, {{key, value}}).megatron;
  };
  CHECK(megatron("transformer_engine", "2.11").transformer_engine_version == 211);
  CHECK(megatron("transformer_engine", "local").transformer_engine_version == 0);
  CHECK(megatron("transformer_engine", "none").transformer_engine_version < 0);
  CHECK(megatron("transformer_engine", "none").local_layers());
  CHECK(megatron("megatron_core", "0.4").megatron_core == 4);
  CHECK(megatron("hidden_dropout", "0").megatron_core == 20);
  CHECK(megatron("hidden_dropout", "0.15").hidden_dropout == 0.15);
  CHECK(setting_text(load_runtime(Runtime::megatron, {{"hidden_dropout", "0.15"}}),
                     "hidden_dropout") == "0.15");
  CHECK(megatron("cp_comm_type", "a2a").cp_comm_type == ContextTransport::a2a);
  CHECK(megatron("recompute_modules", "mlp,layernorm").recompute_modules == 0b110);
}

TEST_CASE("a wrong value says what is allowed") {
  CHECK(says(refusal(Runtime::megatron, "make_vocab_size_divisible_by", "0"), "from 1"));
  CHECK(says(refusal(Runtime::megatron, "make_vocab_size_divisible_by", "1.5"), "whole number"));
  CHECK(says(refusal(Runtime::megatron, "make_vocab_size_divisible_by", "nan"), "whole number"));
  CHECK(says(refusal(Runtime::megatron, "grad_reduce_in_bf16", "maybe"), "true or false"));
  CHECK(says(refusal(Runtime::megatron, "exp_avg_dtype", "fp8"), "bf16"));
  CHECK(says(refusal(Runtime::megatron, "hidden_dropout", "1.5"), "from 0 to 1"));
  CHECK(says(refusal(Runtime::megatron, "transformer_engine", "2"), "a version"));
  CHECK(says(refusal(Runtime::megatron, "transformer_engine", "2.x"), "a version"));
  CHECK(says(refusal(Runtime::megatron, "megatron_core", "local"), "a version"));
  CHECK(says(refusal(Runtime::megatron, "recompute_modules", ""), "a list"));
  CHECK(says(refusal(Runtime::megatron, "cp_comm_type", "ring"), "p2p"));
  CHECK(says(refusal(Runtime::megatron, "pipeline_model_parallel_layout", "tt"), "E first"));
  CHECK(says(refusal(Runtime::megatron, "reduce_bucket", "1"), "no such setting"));
  CHECK(says(refusal(Runtime::nanotron, "version", "2025-01"), "2024-12 or 2025-06"));
  CHECK(says(refusal(Runtime::nanotron, "x", "1"), "no such setting"));
}

TEST_CASE("a setting is said as it was given, and defaults are not said") {
  struct Case {
    Runtime runtime;
    Override setting;
  };
  const Case cases[] = {{Runtime::megatron, {"transformer_engine", "2.11"}},
                        {Runtime::megatron, {"transformer_engine", "local"}},
                        {Runtime::megatron, {"transformer_engine", "none"}},
                        {Runtime::megatron, {"megatron_core", "0.14"}},
                        {Runtime::megatron, {"recompute_modules", "core_attn,moe_act"}},
                        {Runtime::megatron, {"exp_avg_dtype", "bf16"}},
                        {Runtime::megatron, {"cp_comm_type", "a2a"}},
                        {Runtime::fsdp2, {"recipe_date", "2025-02-06"}},
                        {Runtime::fsdp2, {"activation_checkpoint.selective_ac_option", "2"}},
                        {Runtime::fsdp2, {"layers", "huggingface"}},
                        {Runtime::fsdp2, {"accelerate_version", "1.13"}},
                        {Runtime::fsdp2, {"torch_version", "2.14"}},
                        {Runtime::fsdp2, {"logits", "kept"}},
                        {Runtime::fsdp2, {"optimizer.implementation", "for-loop"}},
                        {Runtime::fsdp2, {"training.mixed_precision_reduce", "bf16"}},
                        {Runtime::fsdp2, {"training.disable_cuda_graphs", "true"}},
                        {Runtime::deepspeed, {"data_types.grad_accum_dtype", "fp32"}},
                        {Runtime::deepspeed, {"version", "0.5"}},
                        {Runtime::deepspeed, {"logits", "kept"}},
                        {Runtime::ddp, {"attn_implementation", "flash_attention_2"}},
                        {Runtime::deepspeed, {"reduce_bucket_size", "50000000"}},
                        {Runtime::deepspeed, {"partition_method", "type:transformer"}}};
  for (const Case& c : cases) {
    CAPTURE(c.setting.first);
    CHECK(changed_settings(load_runtime(c.runtime, {c.setting})) ==
          std::vector<Override>{c.setting});
  }
  for (const std::string_view name : names<Runtime>()) {
    CHECK(changed_settings(load_runtime(*parse_name<Runtime>(name), {})).empty());
  }
}
