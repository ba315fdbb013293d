// What arguments of Hugging Face's Trainer mean.
#include "presets/configuration.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"
#include "tests/specs.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::import;
using tests::value;

TEST_CASE("the Trainer's arguments hold DeepSpeed's") {
  const ImportedConfiguration t = import(R"({"output_dir": "out", "bf16": true,
    "per_device_train_batch_size": 2, "gradient_checkpointing": true, "optim": "sgd",
    "deepspeed": {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}})");
  REQUIRE(t.format == "trainer");
  CHECK(value(t, "--runtime") == "deepspeed");
  CHECK(value(t, "--zero") == "2");
  CHECK(value(t, "--micro-batch") == "2");
  CHECK(value(t, "--recompute") == "full");
  CHECK(value(t, "--optimizer") == "sgd");
  CHECK(value(t, "--precision") == "bf16");
  CHECK(t.not_understood.empty());  // its "auto" is filled
  CHECK(t.immaterial == std::vector<std::string>{"output_dir"});
  CHECK(value(import(R"({"per_device_train_batch_size": 2})"), "--runtime") == "ddp");
}

TEST_CASE("FSDP of the Trainer is FSDP2 with Hugging Face's layers, at the stage that it says") {
  const auto fsdp = [](const std::string& rest) {
    return import(R"({"bf16": true, "per_device_train_batch_size": 2, "fsdp")" + rest + "}");
  };
  const ImportedConfiguration whole = fsdp(R"(: "full_shard auto_wrap")");
  CHECK(whole.format == "trainer");
  CHECK(value(whole, "--runtime") == "fsdp2");
  CHECK(value(whole, "--zero") == "3");
  CHECK(value(whole, "layers") == "huggingface");
  CHECK(value(whole, "--offload") == "none");
  CHECK(value(whole, "--precision") == "bf16");
  CHECK(value(whole, "--micro-batch") == "2");
  CHECK(value(whole, "--gradient-accumulation") == "1");
  CHECK(whole.not_understood.empty());
  CHECK(whole.notes.size() == 1);  // which FSDP runs
  const ImportedConfiguration kept =
      fsdp(R"(: ["shard_grad_op", "auto_wrap", "offload"], "fsdp_config": {"version": 2,
        "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"], "min_num_params": 0,
        "activation_checkpointing": true})");
  CHECK(value(kept, "--zero") == "2");
  CHECK(value(kept, "--offload") == "parameters");
  CHECK(value(kept, "--recompute") == "full");
  CHECK(kept.not_understood.empty());
  CHECK(kept.notes.empty());
  // FSDP2's own word goes before.
  const char* config = R"(: true, "fsdp_config": {"fsdp_version": 2, "reshard_after_forward": )";
  CHECK(value(fsdp(config + std::string("false}")), "--zero") == "2");
  CHECK(value(fsdp(config + std::string("true}")), "--zero") == "3");
  const ImportedConfiguration none = fsdp(R"(: "no_shard auto_wrap")");
  CHECK(value(none, "--runtime") == "ddp");
  CHECK_THAT(none.notes.front(), ContainsSubstring("taken for DDP"));
  for (const char* off : {R"(: "")", ": []", R"(: "", "fsdp_config": {"min_num_params": 0})"}) {
    CHECK(value(fsdp(off), "--runtime") == "ddp");
    CHECK(fsdp(off).not_understood.empty());
  }
  const auto refusal = [&](const std::string& text) { return error_text([&] { fsdp(text); }); };
  CHECK_THAT(refusal(R"(: "hybrid_shard auto_wrap")"), ContainsSubstring("--hsdp"));
  CHECK_THAT(refusal(R"(: "hybrid_shard_zero2 auto_wrap")"), ContainsSubstring("shard_grad_op"));
  CHECK_THAT(refusal(R"(: "full_shard shard_grad_op")"), ContainsSubstring("two strategies"));
  CHECK_THAT(refusal(R"(: "half_shard")"), ContainsSubstring("must be full_shard"));
  CHECK_THAT(refusal(R"(: "full_shard", "deepspeed": {"bf16": {"enabled": true}})"),
             ContainsSubstring("refuses them together"));
}

// accelerate would look for the blocks of the vision tower in the text model alone, and end there.
TEST_CASE("layers are named where accelerate would look for others too") {
  Problem p = tests::problem(Runtime::fsdp2, "qwen3.5-9b", {.dp = 8, .zero = ZeroStage::parameters},
                             "H100-80GB");
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  using enum ConfigurationFormat;
  const auto written = [&](ConfigurationFormat format) {
    return export_configuration(p, format).text;
  };
  for (const ConfigurationFormat format : {trainer, accelerate}) {
    p.model = find_model("qwen3.5-9b").spec;
    CHECK_THAT(written(format), ContainsSubstring("Qwen3_5DecoderLayer"));
    CHECK(value(import(written(format)), "--runtime") == "fsdp2");
    p.model = find_model("qwen3.5-35b-a3b").spec;
    CHECK_THAT(written(format), ContainsSubstring("Qwen3_5MoeDecoderLayer"));
    p.model = find_model("qwen3-next-80b-a3b").spec;
    CHECK_THAT(written(format), !ContainsSubstring("cls_to_wrap"));
  }
}

TEST_CASE("the Trainer's arguments are read from a command line as from a file") {
  const ImportedConfiguration line = import(
      "--output_dir out --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \\\n"
      "--gradient-checkpointing --bf16 True --optim adamw_torch --fsdp \"full_shard auto_wrap\" "
      "\\\n"
      "--fsdp_config '{\"version\": 2}'\n");
  CHECK(line.format == "trainer");
  CHECK(line.options ==
        import(R"({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 8,
          "gradient_checkpointing": true, "bf16": true, "optim": "adamw_torch",
          "fsdp": "full_shard auto_wrap", "fsdp_config": {"version": 2}})")
            .options);
  CHECK(line.not_understood.empty());
  CHECK(value(line, "--recompute") == "full");
}

TEST_CASE("the DeepSpeed file that the Trainer's arguments name is read") {
  const TemporaryFolder folder;
  const std::string ds = folder.write("ds.json", R"({"zero_optimization": {"stage": 3},
    "bf16": {"enabled": "auto"}, "optimizer": {"type": "SGD"},
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "train_batch_size": "auto"} // all)");
  const ImportedConfiguration t = import(
      "--deepspeed " + ds + " --per_device_train_batch_size 2 --gradient_checkpointing --bf16\n");
  CHECK(t.format == "trainer");
  CHECK(value(t, "--runtime") == "deepspeed");
  CHECK(value(t, "--zero") == "3");
  CHECK(value(t, "--micro-batch") == "2");
  CHECK(value(t, "--gradient-accumulation") == "1");
  CHECK(value(t, "--recompute") == "full");
  CHECK(value(t, "--precision") == "bf16");
  CHECK(value(t, "--optimizer") == "sgd");  // DeepSpeed's goes before the Trainer's
  CHECK(value(t, "--pp") == "1");           // the Trainer has no pipeline
  CHECK(t.left_open.empty());
  CHECK(t.not_understood.empty());
  CHECK(import(R"({"deepspeed": ")" + ds + R"(", "per_device_train_batch_size": 2,
    "gradient_checkpointing": true, "bf16": true})")
            .options == t.options);
  CHECK_THAT(error_text([] { import("--deepspeed /nowhere.json --output_dir out"); }),
             ContainsSubstring("deepspeed: '/nowhere.json'"));
}

TEST_CASE("what the Trainer and its DeepSpeed file say differently is refused") {
  const auto refusal = [](const std::string& rest) {
    return error_text([&] {
      import(R"({"deepspeed": {"train_micro_batch_size_per_gpu": 4,
      "bf16": {"enabled": true}}, )" +
             rest + "}");
    });
  };
  CHECK_THAT(refusal(R"("per_device_train_batch_size": 2)"),
             ContainsSubstring("train_micro_batch_size_per_gpu is 4"));
  CHECK_THAT(refusal(R"("bf16": false)"), ContainsSubstring("bf16.enabled is true"));
}

TEST_CASE("an optimizer of the Trainer that is not known is listed and not taken for Adam") {
  const ImportedConfiguration t = import(R"({"optim": "adafactor"})");
  CHECK(value(t, "--optimizer").empty());
  CHECK(t.not_understood == std::vector<std::string>{"optim 'adafactor'"});
  CHECK(value(import(R"({"output_dir": "out"})"), "--optimizer") == "adam");
}
