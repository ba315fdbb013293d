// From a plan to a configuration that launches, and back.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

void require_refused(const std::string& arguments, const std::string& words) {
  const tests::Run run = tests::zeroplan(arguments);
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring(words));
}

}  // namespace

TEST_CASE("Megatron-LM's arguments say every choice of the plan") {
  const tests::Run run = tests::zeroplan(
      "export llama3-8b --gpus 16xH100-80GB --tp 2 --pp 2 --recompute full --micro-batch 1 "
      "--precision fp8");
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.errors ==
          "zeroplan: note: to launch: CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 2 "
          "--nproc-per-node 8 pretrain_gpt.py $(cat FILE)\n");
  REQUIRE(run.output ==
          "--num-layers 32\n--hidden-size 4096\n--ffn-hidden-size 14336\n--num-attention-heads 32\n"
          "--group-query-attention\n--num-query-groups 8\n--kv-channels 128\n--vocab-size 128256\n"
          "--position-embedding-type rope\n--normalization RMSNorm\n--swiglu\n"
          "--disable-bias-linear\n--untie-embeddings-and-output-weights\n"
          "--max-position-embeddings 8192\n--seq-length 4096\n--tensor-model-parallel-size 2\n"
          "--pipeline-model-parallel-size 2\n--micro-batch-size 1\n--global-batch-size 976\n"
          "--sequence-parallel\n--use-distributed-optimizer\n--bf16\n--fp8-format hybrid\n"
          "--optimizer adam\n--recompute-granularity full\n--recompute-method uniform\n"
          "--recompute-num-layers 1\n--attention-backend fused\n"
          "--transformer-impl transformer_engine\n--hidden-dropout 0\n--attention-dropout 0\n");
}

TEST_CASE("a recipe of Megatron-Bridge starts by itself and says every choice of the plan") {
  const tests::Run run = tests::zeroplan(
      "export llama3-8b --gpus 16xH100-80GB --tp 2 --pp 2 --micro-batch 1 --precision fp8 "
      "--set hidden_dropout=0.05 exp_avg_dtype=bf16 --format megatron-bridge");
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.errors == "zeroplan: note: to launch: torchrun --nnodes 2 --nproc-per-node 8 FILE\n");
  for (const char* line :
       {"from_hf_pretrained(\"meta-llama/Meta-Llama-3-8B\")",
        "cfg.model.tensor_model_parallel_size = 2\n", "cfg.model.hidden_dropout = 0.05\n",
        "cfg.model.attention_backend = AttnBackend.fused\n",
        "cfg.optimizer.exp_avg_dtype = torch.bfloat16\n", "fp8=\"hybrid\"",
        "fp8_recipe=\"delayed\"", "pretrain(config=plan(), forward_step_func=forward_step)"}) {
    REQUIRE_THAT(run.output, ContainsSubstring(line));
  }
}

TEST_CASE("what Megatron-Core stops at is not exported") {
  const std::string export_cp = "export llama3-8b --gpus 8xH100-80GB --tp 1 --pp 1 --cp 2 ";
  for (const std::string format : {"megatron", "megatron-bridge"}) {
    require_refused(export_cp + "--attention unfused --format " + format,
                    "no unfused attention with context parallelism (--cp 2)");
    REQUIRE(tests::zeroplan(export_cp + "--format " + format).exit_code == 0);
  }
}

TEST_CASE("Megatron-LM is launched with one queue where it asks for one") {
  const auto asks = [](const std::string& question) {
    const tests::Run run = tests::zeroplan("export " + question + " --pp 1 --global-batch 64");
    return run.errors.find("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun") != std::string::npos;
  };
  const std::string hopper = "llama3-8b --gpus 8xH100-80GB ";
  CHECK(asks(hopper + "--tp 2 --cp 1 --zero 1"));
  CHECK(asks(hopper + "--tp 1 --cp 2 --zero 1"));
  CHECK_FALSE(asks(hopper + "--tp 1 --cp 1 --zero 1"));
  CHECK_FALSE(asks(hopper + "--tp 2 --cp 1 --zero 2"));
  CHECK_FALSE(asks("llama3-8b --gpus 8xB200 --tp 2 --cp 1 --zero 1"));
}

TEST_CASE("a rate of dropout leaves and returns as it was typed") {
  const TemporaryFolder folder;
  const std::string model = " llama3-8b --gpus 8xH100-80GB ";
  const std::string typed = model + "--tp 2 --set hidden_dropout=0.15 ";
  for (const std::string format : {"megatron", "megatron-bridge"}) {
    const std::string path =
        folder.write(format, tests::zeroplan("export" + typed + "--format " + format).output);
    const tests::Run back = tests::zeroplan("import " + path);
    REQUIRE_THAT(back.output, ContainsSubstring("hidden_dropout=0.15"));
  }
}

TEST_CASE("Megatron FSDP is given the one checkpoint format that it starts with") {
  for (const std::string stage : {"0", "1", "2", "3"}) {
    const tests::Run run =
        tests::zeroplan("export llama3-8b --gpus 16xH100-80GB --tp 2 --zero " + stage);
    const bool format = run.output.find("--ckpt-format fsdp_dtensor\n") != std::string::npos;
    REQUIRE(format == (stage >= "2"));
  }
}

TEST_CASE("DeepSpeed's JSON, and what it cannot say on standard error") {
  const tests::Run run = tests::zeroplan(
      "export llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2 --tp 1 --offload optimizer "
      "--recompute full");
  const Json file = Json::parse(run.output);
  REQUIRE(file.at("zero_optimization").at("stage") == 2);
  REQUIRE(file.at("zero_optimization").at("offload_optimizer") == Json{{"device", "cpu"}});
  REQUIRE(file.at("train_batch_size") == file.at("train_micro_batch_size_per_gpu").get<int>() *
                                             file.at("gradient_accumulation_steps").get<int>() * 8);
  REQUIRE_THAT(run.errors, ContainsSubstring("no key of deepspeed says --recompute full"));
  const Json trainer = Json::parse(
      tests::zeroplan("export llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2 "
                      "--tp 1 --recompute full --format trainer --quiet")
          .output);
  REQUIRE(trainer.at("gradient_checkpointing") == true);
  REQUIRE(trainer.at("deepspeed").at("zero_optimization").at("stage") == 2);
}

TEST_CASE("what is exported and imported is the plan that was answered", "[release]") {
  const TemporaryFolder folder;
  for (const std::string question :
       {"llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4",
        "llama3-70b --gpus 48xH100-80GB --tp 4 --pp 6",  // the planner splits 80 layers over 6
        "mixtral-8x7b --gpus 64xH100-80GB", "deepseek-v3 --gpus 2048xH800-80GB",
        "llama3-8b --gpus 64xH100-80GB --runtime fsdp2 --hsdp 8 --tp 1 --zero 3 --micro-batch 1 "
        "--recompute none",
        "llama3-8b --gpus 64xH100-80GB --runtime fsdp2 --precision fp32",
        "llama3-8b --gpus 64xH100-80GB --tp 2 --zero 1 --hsdp 8",
        "llama3-8b --gpus 8xH100-80GB --runtime nanotron"}) {
    CAPTURE(question);
    const std::string model_and_gpus = question.substr(0, question.find("GB") + 2);
    const std::string path = folder.write("file", tests::zeroplan("export " + question).output);
    const tests::Run again = tests::zeroplan(
        "fit " + model_and_gpus + " $('" ZEROPLAN_BINARY "' import " + path + " --quiet) --json");
    const Json expected = Json::parse(tests::zeroplan("fit " + question + " --json").output);
    const Json answer = Json::parse(again.output);
    REQUIRE(answer.at("layout") == expected.at("layout"));
    REQUIRE(answer.at("settings") == expected.at("settings"));
    REQUIRE(answer.at("stages") == expected.at("stages"));
  }
}

TEST_CASE("a sharding group can be said by how many there are, where dp is known") {
  const std::string fit = "fit llama3-8b --gpus 64xH100-80GB --zero 1 --json ";
  const std::string degrees = "--tp 2 --pp 1 --cp 2 ";
  REQUIRE(tests::zeroplan(fit + degrees + "--hsdp dp/2").output ==
          tests::zeroplan(fit + degrees + "--hsdp 8").output);
  const std::string notes =
      tests::zeroplan("export llama3-8b --gpus 64xH100-80GB --tp 2 --zero 1 --hsdp 8").errors;
  REQUIRE_THAT(notes, !ContainsSubstring("no key"));
  require_refused(fit + degrees + "--hsdp dp/3", "3 does not divide dp 16");
  require_refused(fit + degrees + "--hsdp dp/", "must be a whole number");
  require_refused(fit + "--hsdp dp/2", "give all three");
}

TEST_CASE("import answers with options, and notes what it did not understand") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("megatron.args",
                   "--tensor-model-parallel-size 4\n--num-layers 32\n--lr 1e-4\n"
                   "--rampup-batch-size 16\n");
  const tests::Run run = tests::zeroplan("import " + path);
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.output.find("--runtime megatron --tp 4 --pp 1") == 0);
  REQUIRE(run.errors ==
          "zeroplan: note: taken for megatron\n"
          "zeroplan: note: MODEL says these: num-layers\n"
          "zeroplan: note: change neither memory nor time: lr\n"
          "zeroplan: note: not understood, and may change the answer: rampup-batch-size '16'\n");
  const Json json = Json::parse(tests::zeroplan("import - --json <" + path).output);
  REQUIRE(json.at("schema") == "zeroplan.import/1");
  REQUIRE(json.at("not_understood") == Json{"rampup-batch-size '16'"});
  REQUIRE(json.at("immaterial") == Json{"lr"});
  const std::string plan = folder.write(
      "plan", tests::zeroplan("fit llama3-8b --gpus 8xH100-80GB --tp 2 --json").output);
  const tests::Run options = tests::zeroplan("import " + plan + " --quiet");
  REQUIRE(options.output.find("llama3-8b --gpus 8xH100-80GB --runtime megatron --tp 2") == 0);
  REQUIRE(tests::zeroplan("import " + plan + " --csv --quiet").output.find("flag,value\n") == 0);
}

TEST_CASE("what a configuration leaves open can be said beside it") {
  const TemporaryFolder folder;
  const std::string path = folder.write("ds.json", R"({"zero_optimization": {"stage": 1},
    "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 8})");
  const tests::Run imported = tests::zeroplan("import " + path);
  REQUIRE(imported.errors ==
          "zeroplan: note: taken for deepspeed\n"
          "zeroplan: note: no key says these, and without code they are: --pp 1 --vpp 1 --ep 1 "
          "--etp 1 --schedule 1f1b --sequence-parallel off --optimizer adam\n");
  const tests::Run fit =
      tests::zeroplan("fit llama3-8b --gpus 16xH100-80GB $('" ZEROPLAN_BINARY "' import " + path +
                      " --quiet) --pp 4 --json");
  CAPTURE(fit.errors);
  const Json layout = Json::parse(fit.output).at("layout");
  REQUIRE(layout.at("pp") == 4);
  REQUIRE(layout.at("dp") == 4);
  REQUIRE(layout.at("gradient_accumulation") == 8);
  REQUIRE(layout.at("global_batch") == 2 * 8 * 4);
}

TEST_CASE("import says what it took for something near it, and where no batch is said") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("trainer.json", R"({"bf16": true, "fsdp": "full_shard auto_wrap"})");
  const tests::Run run = tests::zeroplan("import " + path);
  REQUIRE(run.output.find("--runtime fsdp2") == 0);
  REQUIRE_THAT(run.output,
               ContainsSubstring("--zero 3") && ContainsSubstring("--set layers=huggingface"));
  REQUIRE_THAT(run.errors, ContainsSubstring("note: fsdp: taken for FSDP2"));
  const Json json = Json::parse(tests::zeroplan("import " + path + " --json").output);
  REQUIRE(json.at("notes").size() == 1);
  REQUIRE(json.at("left_open").empty());
  REQUIRE(tests::zeroplan("fit llama2-7b --gpus 8xA100-80GB $('" ZEROPLAN_BINARY "' import " +
                          path + " --quiet) --micro-batch 1 --quiet")
              .exit_code == 2);  // the Trainer's own 8 is said
  REQUIRE(tests::zeroplan("fit llama2-7b --gpus 8xA100-80GB --seq 512 $('" ZEROPLAN_BINARY
                          "' import " +
                          path + " --quiet) --quiet")
              .exit_code == 0);
  REQUIRE_THAT(
      tests::zeroplan("import " + folder.write("d.json", R"({"bf16": {"enabled": true}})")).errors,
      ContainsSubstring("the file says no batch of a step"));
}

TEST_CASE("a plan that does not fit is exported, and is still a no") {
  const tests::Run run = tests::zeroplan("export llama3-70b --gpus 8xA100-80GB --tp 8");
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("--tensor-model-parallel-size 8"));
  REQUIRE_THAT(run.errors, ContainsSubstring("does not fit"));
}

TEST_CASE("a format of another runtime is refused") {
  require_refused("export llama3-8b --gpus 8xH100 --format torchtitan", "--runtime fsdp2 would do");
  require_refused("export llama3-8b --gpus 8xH100 --runtime fsdp2 --format accelerate",
                  "--runtime fsdp2 --set layers=huggingface or --runtime ddp");
  require_refused("export llama3-8b --gpus 8xH100 --format megatronn", "nearest is megatron");
  require_refused("export llama3-8b --gpus 8xH100 --runtime zero-paper", "reads no configuration");
  require_refused("export llama3-8b --gpus 8xH100 --csv", "no rows");
  require_refused("import /nowhere", "no such file");
  require_refused("import", "FILE");
  const TemporaryFolder folder;
  require_refused("import " + folder.write("axolotl.yaml", "base_model: mine\n"),
                  "no key of it is one of nanotron's");
  require_refused("import " + folder.write("line.args", "--lr 1e-4 --seed 1\n"),
                  "no key of it is one of Megatron-LM's");
  require_refused("import " + folder.write("inf.args", "--global-batch-size inf\n"),
                  "global-batch-size 'inf': must be a whole number from 1");
}
