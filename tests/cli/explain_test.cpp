// Each row of fit's answer, taken apart.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

Json answer(const std::string& command, const std::string& arguments) {
  const tests::Run run = tests::zeroplan(command + " " + arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code <= 1);
  REQUIRE(run.errors.empty());
  return Json::parse(run.output);
}

}  // namespace

TEST_CASE("explain takes fit's rows apart, byte for byte, in every runtime", "[release]") {
  for (const std::string question :
       {"llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4", "llama3-8b --gpus 8xH100 --runtime fsdp2",
        "llama3-8b --gpus 8xH100 --runtime ddp", "llama3-8b --gpus 8xH100 --runtime deepspeed",
        "llama3-8b --gpus 8xH100 --runtime deepspeed --zero 3 --offload optimizer",
        "7.5B --gpus 64xV100-32GB --runtime zero-paper --set K=12",
        "llama3-8b --gpus 8xH100 --runtime zeroplan", "llama3-8b --gpus 8xH100 --runtime nanotron",
        "llama3-8b --gpus 16xH100 --tp 2 --pp 2 --runtime zeroplan --zero 3 --recompute full "
        "--set prefetch=true --set partition_activations=true --set reduce_bucket_size=1e6 "
        "--set contiguous_memory_optimization=true",
        "deepseek-v3 --gpus 2048xH800-80GB", "llama3-8b --gpus 8xH100 --optimizer muon",
        "llama3-8b --gpus 8xH100 --runtime deepspeed --optimizer adam8bit",
        "llama3-8b --gpus 1024xH100 --tp 1 --pp 1 --seq 512"}) {
    CAPTURE(question);
    const Json fit = answer("fit", question);
    const Json explained = answer("explain", question);
    const Json& stage = fit.at("stages").at(explained.at("stage").get<std::size_t>());
    REQUIRE(explained.at("stage") == fit.at("peak").at("stage"));
    REQUIRE(explained.at("rows").size() == stage.at("categories").size());
    for (const Json& row : explained.at("rows")) {
      CAPTURE(row.at("row"));
      REQUIRE(row.at("bytes") == stage.at("categories").at(row.at("row").get<std::string>()));
      std::int64_t sum = 0;
      for (const Json& part : row.at("parts")) sum += part.at("bytes").get<std::int64_t>();
      REQUIRE(sum == row.at("bytes"));
    }
    REQUIRE(explained.at("communication").at("collectives").size() ==
            fit.at("communication").size());
    if (!fit.at("step").is_null()) {
      REQUIRE(explained.at("flops").at("model_flops") == fit.at("step").at("model_flops"));
    }
  }
}

TEST_CASE("a stage and a row can be asked for") {
  const std::string question = "llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 ";
  const Json last = answer("explain", question + "--stage 3 --row optimizer_states");
  REQUIRE(last.at("stage") == 3);
  REQUIRE(last.at("rows").size() == 1);
  REQUIRE_FALSE(last.contains("flops"));
  REQUIRE(last.at("rows").at(0).at("parts").at(0).at("terms").size() == 2);
  const tests::Run text = tests::zeroplan("explain " + question + "--row communication");
  REQUIRE_THAT(text.output, ContainsSubstring("(n-1)/n x S"));
  REQUIRE(text.output.find("parameter buffer") == std::string::npos);
  const tests::Run csv = tests::zeroplan("explain " + question + "--csv --row parameters");
  REQUIRE(csv.output.find("row,name,term,count,bytes,formula,numbers\nparameters,") == 0);
  for (const std::string bad : {"--row optimiser_states", "--row everything", "--stage 4"}) {
    const tests::Run run = tests::zeroplan("explain " + question + bad);
    REQUIRE(run.exit_code == 2);
    REQUIRE(run.output.empty());
  }
  REQUIRE_THAT(tests::zeroplan("explain " + question + "--row optimiser_states").errors,
               ContainsSubstring("nearest is optimizer_states"));
}

TEST_CASE("what does not fit is explained, and is still a no") {
  const tests::Run run = tests::zeroplan("explain llama3-70b --gpus 8xA100-80GB --tp 8");
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("4 \u03a8"));
}

TEST_CASE("what a probe measured is in the rows, and the rows say so") {
  const TemporaryFolder folder;
  Json cluster{
      {"name", "lab"},
      {"gpu", "H100-80GB"},
      {"gpus_per_node", 8},
      {"intra_node", "nvlink"},
      {"intra_node_gigabytes_per_second_per_direction", 450},
      {"network_cards", 0},
      {"measured",
       {{"memory",
         {{"context_bytes", 600'000'000},
          {"modules_bytes", 30'000'000},
          {"cublas_bytes", -1000},
          {"communicators",
           {{{"ranks", 2}, {"created_bytes", 100'000'000}, {"first_large_all_reduce_bytes", 7}},
            {{"ranks", 8}, {"created_bytes", 400'000'000}}}}}}}}};
  const std::string question = "llama3-8b --tp 2 --pp 2 --cluster ";
  const Json measured = answer("fit", question + folder.write("lab.json", cluster.dump()));
  const Json& rows = measured.at("stages").at(0).at("categories");
  REQUIRE(rows.at("context") == 629'999'000);
  REQUIRE_THAT(measured.at("assumptions").dump(), ContainsSubstring("measured on this cluster"));
  const Json explained = answer(
      "explain", question + folder.write("lab.json", cluster.dump()) + " --row communicators");
  std::map<std::string, std::int64_t> parts;
  for (const Json& part : explained.at("rows").at(0).at("parts")) {
    parts[part.at("name")] = part.at("bytes");
  }
  REQUIRE(parts.at("tp: 2 ranks, inside a node, measured") == 100'000'007);
  REQUIRE(parts.contains("pp: 2 ranks, inside a node"));
  REQUIRE_THAT(explained.dump(), ContainsSubstring("measured on this cluster"));

  cluster["measured"]["memory"]["context_bytes"] = "much";
  const tests::Run refused =
      tests::zeroplan("fit " + question + folder.write("lab.json", cluster.dump()));
  REQUIRE(refused.exit_code == 2);
  REQUIRE_THAT(refused.errors, ContainsSubstring("context_bytes"));
}
