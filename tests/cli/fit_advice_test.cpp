// What fit says where a layout does not fit, and how many GPUs would do.
#include <regex>

#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::fit;
using tests::Json;

TEST_CASE("does not fit is exit 1, and says what would") {
  const Json a = fit("llama3-70b --gpus 8xA100-80GB --tp 8", 1);
  REQUIRE(a.at("verdict") == "does_not_fit");
  REQUIRE(a.at("headroom_bytes") < 0);
  REQUIRE_FALSE(a.at("nearest_fits").empty());
  for (const Json& n : a.at("nearest_fits")) {
    REQUIRE(n.at("device_bytes") < a.at("capacity_bytes"));
    REQUIRE(n.contains("step_seconds"));
  }
}

// Megatron-FSDP without --init-model-with-meta-device.
TEST_CASE("a model that is too large before it is divided names the setting that helps") {
  const std::string layout =
      "llama3-70b --gpus 64xH100 --zero 3 --tp 1 --pp 1 --cp 1 --micro-batch 1 --recompute full ";
  const Json a = fit(layout, 1);
  REQUIRE(a.at("peak").at("phase") == "init");
  const std::string key = "init_model_with_meta_device";
  const std::string change = a.at("nearest_fits").front().at("change");
  REQUIRE(change == "set " + key + "=true (was false)");
  const Json b = fit(layout + "--set " + key + "=true");
  REQUIRE(a.at("nearest_fits").front().at("device_bytes") == b.at("peak").at("device_bytes"));
}

TEST_CASE("what would make it fit does make it fit") {
  const Json a = fit(
      "llama3-70b --gpus 32xA100-80GB --tp 4 --pp 2 --zero 1 --micro-batch 8 --recompute full", 1);
  const std::regex number("(tp|pp|cp|micro-batch|zero|recompute) (\\w+) \\(was .*");
  int tried = 0;
  for (const Json& n : a.at("nearest_fits")) {
    std::smatch match;
    const auto change = n.at("change").get<std::string>();
    if (!std::regex_match(change, match, number)) continue;
    std::string layout = "--tp 4 --pp 2 --zero 1 --micro-batch 8 --recompute full ";
    const std::string flag = "--" + match[1].str();
    const std::size_t at = layout.find(flag);
    if (at != std::string::npos) layout.erase(at, layout.find(' ', at + flag.size() + 1) + 1 - at);
    const Json again =
        fit("llama3-70b --gpus 32xA100-80GB " + layout + flag + " " + match[2].str());
    CAPTURE(change);
    REQUIRE(again.at("verdict") == "fits");
    ++tried;
  }
  REQUIRE(tried > 0);
}

TEST_CASE("the smallest number of GPUs fits, and a node less does not") {
  const Json a = fit("llama3-70b --gpus 64xH100-80GB");
  const auto fewest = a.at("fewest_gpus").get<int>();
  REQUIRE(fewest < 64);
  REQUIRE(fit("llama3-70b --gpus " + std::to_string(fewest) + "xH100-80GB").at("verdict") ==
          "fits");
  const tests::Run less =
      tests::zeroplan("fit llama3-70b --gpus " + std::to_string(fewest - 8) + "xH100-80GB --json");
  REQUIRE(Json::parse(less.output).at("verdict") != "fits");
}

TEST_CASE("the command printed for the smallest number of GPUs asks the same, and that fits") {
  const TemporaryFolder folder;
  const Json cluster{{"name", "lab"},
                     {"gpus_per_node", 8},
                     {"nodes", 8},
                     {"intra_node", "nvlink"},
                     {"gpu",
                      {{"name", "mine"},
                       {"memory_bytes", std::int64_t{80} << 30},
                       {"tflops", {{"bf16", 500}}},
                       {"memory_gigabytes_per_second", 3000}}},
                     {"intra_node_gigabytes_per_second_per_direction", 400},
                     {"network_cards", 8},
                     {"network_gigabits_per_second_per_card", 400}};
  const std::string file = folder.write("my lab.json", cluster.dump());
  for (const std::string& asked :
       {std::string("llama3-70b --gpus 64xH100-80GB --sequence-parallel off --micro-batch 2 "
                    "--set exp_avg_dtype=bf16 --set use_precision_aware_optimizer=true"),
        std::string("llama3-8b --gpus 64xA100-40GB --runtime deepspeed --seq 8192 --optimizer sgd "
                    "--offload optimizer --attention unfused --precision fp16"),
        "llama3-70b --cluster '" + file + "'"}) {
    const tests::Run run = tests::zeroplan("fit " + asked);
    std::smatch next;
    CAPTURE(asked, run.output, run.errors);
    REQUIRE(std::regex_search(run.output, next, std::regex("  next: zeroplan fit (.*)")));
    for (const char* given :
         {"--sequence-parallel off", "--micro-batch 2", "--runtime deepspeed",
          "--set exp_avg_dtype=bf16", "--set use_precision_aware_optimizer=true", "--seq 8192",
          "--optimizer sgd", "--offload optimizer", "--attention unfused", "--precision fp16",
          "--cluster"}) {
      CAPTURE(given);
      REQUIRE((asked.find(given) == std::string::npos) ==
              (next[1].str().find(given) == std::string::npos));
    }
    REQUIRE(fit(next[1]).at("verdict") == "fits");
  }
}

TEST_CASE("fit finds a layout where the allocator's replay leaves room for one") {
  for (const std::string asked :
       {"bloom-7b1 --gpus 2xA100-80GB --precision fp16", "llama3-70b --gpus 16xA100-80GB",
        "qwen2.5-7b --gpus 2xH100-80GB --micro-batch 4 --precision fp8"}) {
    CAPTURE(asked);
    const Json a = fit(asked + " --optimizer sgd");
    REQUIRE(a.at("verdict") == "fits");
    REQUIRE(a.at("fewest_gpus") <= a.at("cluster").at("gpus"));
  }
}
