// Bad input: exit 2, one clear line on standard error, nothing on standard output.
#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::Run;

namespace {

void require_refused(const std::string& arguments, const std::string& words) {
  const Run run = tests::zeroplan(arguments);
  CAPTURE(arguments, run.output, run.errors);
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE(run.errors.find("zeroplan: error: ") == 0);
  REQUIRE(run.errors.find('\n') == run.errors.size() - 1);
  REQUIRE_THAT(run.errors, ContainsSubstring(words));
}

const std::string config =
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
  "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "tie_word_embeddings": false})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a wrong command line names what is nearest") {
  require_refused("", "no command");
  require_refused("fitt llama3-8b", "nearest is fit");
  require_refused("fit", "MODEL");
  require_refused("completions tcsh", "bash, zsh and fish");
  require_refused("fit llama3-8b", "--gpus is missing");
  require_refused("fit llama3-8b --gpus 8xH100 --precison bf16", "nearest is --precision");
  require_refused("fit llama3-8b --gpus 8xH100 --tp 2 --tp 4", "--tp");
  require_refused("fit llama3-8b --gpus 8xH100 --set hidden_dropout=0 --set hidden_dropout=0.1",
                  "given as '0' and as '0.1'");
  require_refused("fit llama3-8b --gpus 8xH100 --set \"$(printf 'hidden\\nd=1')\"", "hidden?d");
  require_refused("fit llama3-8b --gpus 8xH100 --set \"$(printf 'hidden_dropout=0\\n1')\"", "0?1");
  require_refused("fit gpt2 --gpus 8xA100-80GB --runtime zero-paper --set K=5e8", "4 to 1000");
  require_refused("fit gpt2 --gpus 8xA100-80GB --runtime zero-paper --set K=1", "4 to 1000");
  require_refused("fit gpt2 --gpus 8xV100-32GB --runtime zero-paper --precision bf16",
                  "no bf16 matrix units");
  require_refused("fit llama3-8b --gpus 8xRTX-PRO-6000 --precision fp32", "no fp32 rate");
  require_refused("fit llama3-8b --gpus 8xH100 --tp", "--tp");
  require_refused("fit llama3-8b --gpus 8xH100 --json --csv", "--json");
  require_refused("fit llama3-8b --gpus 8xH100 --runtime megatronn", "nearest is megatron");
  require_refused("fit llama3-8b --gpus 8xH100 --recompute some", "none, selective, full");
  require_refused("fit llama3-8b --gpus 8xH100 --sequence-parallel yes", "on or off");
  require_refused("fit llama3-8b --gpus 8xH100 --set", "--set");
  require_refused("fit llama3-8b --gpus 8xH100 --set bucket", "KEY=VALUE");
  require_refused("fit llama3-8b --gpus 8xH100 --set make_vocab_size=1",
                  "make_vocab_size_divisible_by");
  require_refused("fit llama3-8b --gpus 8xH100 --set make_vocab_size_divisible_by=0", "from 1");
  require_refused("presets modells", "nearest is");
  require_refused("presets models qwen2.5-72", "qwen2.5-72b");
}

TEST_CASE("what the runtime refuses names what it needs") {
  const std::string megatron = " llama3-8b --gpus 8xH100-80GB ";
  const std::string selective = "--recompute selective --set recompute_modules=mla_up_proj";
  for (const std::string command : {"fit", "sweep"}) {
    require_refused(command + megatron + selective, "no latent attention");
    require_refused(command + megatron + "--optimizer sgd --set exp_avg_dtype=bf16",
                    "--optimizer adam would do");
    require_refused(command + megatron + "--tp 1 --set tp_comm_overlap=true", "--tp 2 would do");
  }
  const std::string whole = "fit" + megatron + "--zero 0 ";
  require_refused(whole + "--set overlap_param_gather=true", "ZeRO 1 or above");
  require_refused(whole + "--set exp_avg_dtype=bf16", "--zero 1 or 2 or 3 would do");
  require_refused(
      "fit qwen2.5-14b --gpus 40xH100-80GB --runtime deepspeed --cp 5 --seq 5000 --tp 1 --pp 1",
      "neither divides the other");
  require_refused(
      "fit llama3-8b --gpus 24xH100-80GB --runtime deepspeed --zero 3 --tp 1 --pp 1 "
      "--set zero_hpz_partition_size=16",
      "--set zero_hpz_partition_size=12 would");
}

TEST_CASE("numbers are whole and in range") {
  for (const std::string bad :
       {"0", "-2", "3.7", "1e3", "two", "''", "99999999999999999999", "2x", "0x4"}) {
    require_refused("fit llama3-8b --gpus 8xH100 --tp=" + bad, "--tp");
  }
  require_refused("fit llama3-8b --gpus 8xH100 --seq 1000000000000", "--seq");
  require_refused("fit llama3-8b --gpus 8xH100 --zero 4", "0, 1, 2, 3");
}

TEST_CASE("GPUs are a count and a known name") {
  require_refused("fit llama3-8b --gpus 0xH100", "whole number");
  require_refused("fit llama3-8b --gpus -8xH100", "whole number");
  require_refused("fit llama3-8b --gpus 3.5xH100", "whole number");
  require_refused("fit llama3-8b --gpus 8", "COUNTxGPU");
  require_refused("fit llama3-8b --gpus x", "COUNTxGPU");
  require_refused("fit llama3-8b --gpus 8xH1000", "nearest is");
  require_refused("fit llama3-8b --gpus 99999999999xH100", "whole number");
  require_refused("fit llama3-8b --gpus 8xA100 --cluster dgx-h100", "H100-80GB");
  require_refused("fit llama3-8b --cluster dgx-h1000 --gpus 8", "dgx-h100");
}

TEST_CASE("models are known, or files that say what they must") {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& text) {
    return "fit " + folder.write("config.json", text) + " --gpus 8xH100";
  };
  require_refused("fit llama9-8b --gpus 8xH100", "llama3-8b");
  require_refused("fit /nowhere/config.json --gpus 8xH100", "/nowhere/config.json");
  require_refused("fit / --gpus 8xH100", "config.json");
  require_refused(file(""), "empty");
  require_refused(file("{"), "line 1");
  require_refused(file("[]"), "object");
  require_refused(file("{}"), "model_type");
  require_refused(file(replaced(config, "32000", "3.7")), "vocab_size");
  require_refused(file(replaced(config, "\"num_hidden_layers\": 32", "\"num_hidden_layers\": 3.7")),
                  "3.7");
  require_refused(file(replaced(config, "4096", "\"4096\"")), "hidden_size");
  require_refused(file(replaced(config, "4096", "-4096")), "hidden_size");
  require_refused(file(replaced(config, "4096", "1000000000000000000000000000000")), "hidden_size");
  require_refused(file(replaced(config, "\"vocab_size\": 32000,", "")), "vocab_size");
  require_refused(file(replaced(config, "\"vocab_size\"", "\"hidden_size\"")), "twice");
  require_refused(file(replaced(config, "llama", "lama")), "llama");
  require_refused("fit - --gpus 8xH100 <" + folder.write("bad", "{\"model_type\": 3}"),
                  "model_type");
  require_refused("fit 7.5B --gpus 8xH100 --runtime megatron", "zero-paper");
  require_refused("fit 1e30B --gpus 8xH100 --runtime zero-paper", "1e15");
}

TEST_CASE("a size file of many parameters is refused before it overflows") {
  const TemporaryFolder folder;
  std::string huge = replaced(config, "11008", "2000000000");
  huge = replaced(huge, "\"num_hidden_layers\": 32", "\"num_hidden_layers\": 3000");
  require_refused("fit " + folder.write("config.json", huge) + " --gpus 8xH100", "parameters");
}

TEST_CASE("what would overflow is refused") {
  require_refused("fit llama3-8b --gpus 8xH100 --seq 100000000 --micro-batch 1000000",
                  "more memory than any machine");
  require_refused("fit llama3-8b --gpus 1000000xH100 --seq 100000000 --attention unfused",
                  "more memory than any machine");
}

TEST_CASE("an illegal layout is refused with its legal neighbours") {
  require_refused("fit qwen2.5-72b --gpus 128xA100-80GB --tp 8 --pp 7",
                  "128 GPUs cannot be split into tp 8 x pp 7 (56 each); --pp 4 or 8 would do");
  require_refused("fit qwen2.5-72b --gpus 128xA100-80GB --tp 3", "--tp 2 or 4 would do");
  require_refused("fit qwen2.5-72b --gpus 128xA100-80GB --tp 16 --runtime fsdp2",
                  "8 key-value heads");
  require_refused("fit llama3-8b --gpus 8xA100-80GB --global-batch 100 --tp 1 --pp 1 --cp 1",
                  "--global-batch 96 or 104 would do");
  require_refused("fit llama3-8b --gpus 8xV100-32GB --precision bf16",
                  "--precision fp16 or fp32 would do");
}
