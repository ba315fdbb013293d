// What people type: other programs' words, units, names of machines, options by meaning.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::Json;

namespace {

Json fit(const std::string& arguments) {
  const tests::Run run = tests::zeroplan("fit " + arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code <= 1);
  return Json::parse(run.output);
}

void require_same(const std::string& typed, const std::string& usual) {
  CAPTURE(typed, usual);
  REQUIRE(fit(typed) == fit(usual));
}

void require_refused(const std::string& arguments, const std::string& words) {
  const tests::Run run = tests::zeroplan(arguments);
  CAPTURE(arguments, run.output, run.errors);
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE(run.errors.find('\n') == run.errors.size() - 1);
  REQUIRE_THAT(run.errors, ContainsSubstring(words));
}

const std::string one_layout = " --tp 1 --pp 1 --recompute full --micro-batch 1 --zero ";
const std::string on_eight = "llama3-8b --gpus 8xH100-80GB" + one_layout;

}  // namespace

TEST_CASE("other programs' words, in any case, mean zeroplan's") {
  require_same(on_eight + "1 --optimizer AdamW --precision BF16",
               on_eight + "1 --optimizer adam --precision bf16");
  require_same(on_eight + "1 --precision bfloat16", on_eight + "1 --precision bf16");
  require_same(on_eight + "1 --runtime NeMo", on_eight + "1 --runtime megatron");
  require_same(on_eight + "3 --runtime torchtitan", on_eight + "3 --runtime fsdp2");
  require_same(on_eight + "3 --runtime FSDP", on_eight + "3 --runtime fsdp2");
  require_same(on_eight + "1 --attention flash_attention_2", on_eight + "1 --attention flash");
  const std::string replicas = on_eight + "0 --runtime ddp";
  require_same(replicas + " --attention flash_attention_2",
               replicas + " --attention flash --set attn_implementation=flash_attention_2");
  require_same(on_eight + "1 --sequence-parallel false", on_eight + "1 --sequence-parallel off");
  require_refused("fit " + on_eight + "1 --runtime accelerate", "say ddp, fsdp2 or deepspeed");
  require_refused("fit " + on_eight + "1 --runtime jax", "must be one of");
}

TEST_CASE("GPUs, models and machines by the names people use") {
  for (const char* gpus : {"8xH100-80G", "'8 x H100'", "H100x8", "8*h100", "'8 × H100-80GB'"}) {
    require_same(std::string("llama3-8b --gpus ") + gpus + one_layout + "1", on_eight + "1");
  }
  require_same("Llama3_8b --gpus 8xH100-80GB" + one_layout + "1", on_eight + "1");
  REQUIRE(fit("llama3-8b --gpus 8xRTX-4090" + one_layout + "1").at("cluster").at("gpu") ==
          "RTX-4090");
  REQUIRE(fit("llama3-8b --gpus MI300Xx8" + one_layout + "1").at("cluster").at("gpu") == "MI300X");
  for (const auto& [machine, gpu] : {std::pair{"Standard_ND96isr_H100_v5", "H100-80GB"},
                                     {"BM.GPU.H100.8", "H100-80GB"},
                                     {"a3-highgpu-8g", "H100-80GB"},
                                     {"p4d.24xlarge", "A100-40GB"},
                                     {"gpu_8x_h100_sxm5", "H100-80GB"},
                                     {"gd-8xh100ib-i128", "H100-80GB"}}) {
    CAPTURE(machine);
    const Json two =
        fit("llama3-8b --gpus '2 x " + std::string(machine) + "'" + one_layout + "1").at("cluster");
    REQUIRE(two.at("gpu") == gpu);
    REQUIRE(two.at("gpus") == 16);
    const Json nodes =
        fit("llama3-8b --nodes 2 --cluster " + std::string(machine) + one_layout + "1");
    REQUIRE(nodes.at("cluster") == two);
  }
  REQUIRE(fit("llama3-8b --gpus p5.48xlarge").at("cluster").at("gpus") == 8);  // one machine
  REQUIRE(fit("llama3-8b --gpus H100 --nodes 2" + one_layout + "1").at("cluster").at("gpus") == 16);
  require_refused("fit llama3-8b --gpus 8xH100 --nodes 2", "these are 16, not 8");
  require_refused("fit llama3-8b --gpus 8xH100 --nodes 0", "--nodes");
}

TEST_CASE("lengths, batches and sizes carry the units people type") {
  require_same(on_eight + "1 --seq 8k", on_eight + "1 --seq 8192");
  require_same(on_eight + "1 --seq 1M", on_eight + "1 --seq 1048576");
  const Json tokens = fit(on_eight + "1 --global-batch '2M tokens'");
  REQUIRE(tokens.at("layout").at("global_batch") == 488);  // 2e6 / 4096 = 488.3, a multiple of 8
  require_refused("fit " + on_eight + "1 --global-batch 2M", "'2M tokens'");
  require_refused("fit " + on_eight + "1 --seq 8kk", "--seq");
  require_refused("fit " + on_eight + "1 --seq 0.1k", "--seq");
  const std::string search = "sweep llama3.2-1b --gpus 8xH100-80GB --top 1 --json --max-memory ";
  const auto plans = [&](const std::string& most) {
    return Json::parse(tests::zeroplan(search + most).output).at("plans");
  };
  REQUIRE(plans("70gb") == plans("70GB"));
  REQUIRE(plans("'70 GiB'") == plans("70GiB"));
  REQUIRE(plans("100%") == plans("79.11GiB"));
  require_refused("sweep llama3.2-1b --gpus 8xH100-80GB --max-memory 70G", "with its unit");
}

TEST_CASE("a margin stays free") {
  const Json whole = fit(on_eight + "1");
  const Json five = fit(on_eight + "1 --margin 4GiB");
  REQUIRE(five.at("capacity_bytes").get<std::int64_t>() ==
          whole.at("capacity_bytes").get<std::int64_t>() - (std::int64_t{4} << 30));
  REQUIRE(five.at("peak") == whole.at("peak"));
  REQUIRE(fit(on_eight + "1 --margin 99%").at("verdict") == "does_not_fit");
  require_refused("fit " + on_eight + "1 --margin 100%", "--margin");
  require_refused("fit " + on_eight + "1 --margin 5", "--margin");
  // A plan keeps it.
  const TemporaryFolder folder;
  const std::string plan = folder.write("plan.json", five.dump());
  REQUIRE(fit(plan).at("capacity_bytes") == five.at("capacity_bytes"));
}

TEST_CASE("several settings may follow one --set") {
  const std::string both = on_eight + "1 --set overlap_grad_reduce=true --set hidden_dropout=0.1";
  require_same(on_eight + "1 --set overlap_grad_reduce=true hidden_dropout=0.1", both);
  require_same(on_eight + "1 --set overlap_grad_reduce=true,hidden_dropout=0.1", both);
  require_same(on_eight.substr(on_eight.find(' ')) + "1 --set hidden_dropout=0.1 llama3-8b",
               on_eight + "1 --set hidden_dropout=0.1");
}

TEST_CASE("an unknown option is answered by what it means") {
  for (const auto& [typed, words] : {std::pair{"--tensor-parallel 8", "it is --tp here"},
                                     {"--seq-len 8192", "it is --seq here"},
                                     {"--seq_length=8192", "it is --seq here"},
                                     {"--batch-size 8", "--micro-batch of a pass"},
                                     {"--world-size 8", "it is --gpus"},
                                     {"--dtype bf16", "it is --precision here"},
                                     {"--lora", "adapters are not modelled"},
                                     {"--wibble", "zeroplan help fit lists them"},
                                     {"--precison bf16", "nearest is --precision"}}) {
    require_refused("fit llama3-8b --gpus 8xH100 " + std::string(typed), words);
  }
  require_refused("fit command-r-plus --gpus 8xH100", "zeroplan presets models lists all");
  require_refused("fit llama-70b --gpus 8xH100", "nearest is 'llama2-70b'");
}

TEST_CASE("help and version by the words people try") {
  const tests::Run all = tests::zeroplan("help");
  REQUIRE(all.exit_code == 0);
  REQUIRE(all.output == tests::zeroplan("--help").output);
  REQUIRE(tests::zeroplan("help sweep").output == tests::zeroplan("sweep --help").output);
  REQUIRE(tests::zeroplan("-V").output == tests::zeroplan("--version").output);
  require_refused("help nothing", "no command 'nothing'");
}

TEST_CASE("of a bare size memory is told, and no time invented") {
  const Json a = fit("7.5B --gpus 64xV100-32GB --zero 2");
  REQUIRE(a.at("runtime") == "zero-paper");
  REQUIRE(a.at("model_states").at("parameters_bytes").get<double>() > 0);
  REQUIRE(a.at("step").is_null());
  const tests::Run text = tests::zeroplan("fit 7.5B --gpus 64xV100-32GB --zero 2");
  REQUIRE_THAT(text.output, !ContainsSubstring("tokens/s"));
  require_refused("fit 7.5B --gpus 8xH100 --runtime megatron", "only --runtime zero-paper");
}

TEST_CASE("GPUs without a count are counted") {
  const Json counted = fit("llama3-70b --gpus H100");
  const auto gpus = counted.at("cluster").at("gpus").get<int>();
  REQUIRE(counted.at("verdict") == "fits");
  REQUIRE(counted.at("chosen").at(0) == "gpus");
  REQUIRE(gpus == fit("llama3-70b --gpus 64xH100").at("fewest_gpus"));
  const Json given = fit("llama3-70b --gpus H100 --tp 8 --pp 1 --zero 1");
  REQUIRE(given.at("verdict") == "fits");
  REQUIRE(given.at("layout").at("tp") == 8);
}
