#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

using nlohmann::json;
using zeroplan::tests::Run;

namespace {

const std::string small = "sweep llama3-8b --gpus 8xH100-80GB --global-batch 64 ";

json answer(const std::string& arguments) {
  const Run run = zeroplan::tests::zeroplan(arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.output);
}

// The options that give this plan.
std::string options(const json& plan) {
  const json& l = plan["layout"];
  std::string text;
  for (const auto& [key, value] : plan["settings"].items()) {
    text += " --set " + key + "=" + value.get<std::string>();
  }
  for (const auto& [flag, field] : {std::pair{"--tp", "tp"},
                                    {"--pp", "pp"},
                                    {"--vpp", "vpp"},
                                    {"--cp", "cp"},
                                    {"--zero", "zero"},
                                    {"--micro-batch", "micro_batch"},
                                    {"--hsdp", "hsdp"}}) {
    if (l.contains(field)) text += std::string(" ") + flag + " " + l[field].dump();
  }
  const bool rows = l["sequence_parallel"];
  text += " --offload " + l["offload"].get<std::string>();
  return text + " --recompute " + l["recompute"].get<std::string>() + " --schedule " +
         l["schedule"].get<std::string>() + " --sequence-parallel " + (rows ? "on" : "off");
}

}  // namespace

TEST_CASE("a sweep's counts add up, and its plans are answers of fit, best first") {
  const json a = answer(small + "--top 4");
  REQUIRE(a["schema"] == "zeroplan.sweep/1");
  std::int64_t rejected = 0;
  for (const auto& [why, count] : a["rejected"].items()) rejected += count.get<std::int64_t>();
  REQUIRE(a["feasible"].get<std::int64_t>() + rejected == a["layouts"].get<std::int64_t>());
  REQUIRE(a["evaluated"] >= a["feasible"]);
  REQUIRE(a["plans"].size() == 4);
  double last = 0;
  for (const json& plan : a["plans"]) {
    REQUIRE(plan["verdict"] == "fits");
    REQUIRE(plan["step"]["seconds"].get<double>() >= last);
    last = plan["step"]["seconds"];
    const json& l = plan["layout"];
    REQUIRE(l["dp"].get<int>() * l["tp"].get<int>() * l["pp"].get<int>() * l["cp"].get<int>() == 8);
  }
  REQUIRE(a["pareto"].at(0) == 0);
}

// The best plan, typed as a question, fits and takes the same time. What needs least has the
// runtimes' settings that the search sets.
TEST_CASE("fit agrees with a sweep's plan", "[release]") {
  std::set<std::string> settings;
  for (const std::string runtime :
       {"megatron", "fsdp2", "fsdp2 --set loss_chunks=1", "deepspeed --zero 3"}) {
    for (const std::string objective : {"step", "headroom"}) {
      CAPTURE(runtime, objective);
      const std::string asked = "--runtime " + runtime + " ";
      const json plan = answer(small + asked + "--top 1 --objective " + objective)["plans"].at(0);
      for (const auto& [key, value] : plan["settings"].items()) settings.insert(key);
      const json fit = answer("fit llama3-8b --gpus 8xH100-80GB --global-batch 64 --runtime " +
                              runtime.substr(0, runtime.find(' ')) + options(plan));
      REQUIRE(fit["verdict"] == "fits");
      REQUIRE(fit["peak"] == plan["peak"]);
      REQUIRE(fit["step"]["seconds"] == plan["step"]["seconds"]);
    }
  }
  REQUIRE(settings.contains("reduce_bucket_size"));
  REQUIRE(settings.contains("loss_chunks"));
  REQUIRE(settings.contains("parallelism.fsdp_reshard_after_forward"));
}

TEST_CASE("threads and bounds change what a sweep looks at, not what it finds", "[release]") {
  json one = answer(small + "--front --threads 1");
  json two = answer(small + "--front --threads 2");
  for (json* a : {&one, &two}) {
    for (const char* varying : {"seconds", "threads", "evaluations_per_second_per_core"}) {
      a->erase(varying);
    }
  }
  REQUIRE(one == two);
  const json whole = answer(small + "--exhaustive");
  REQUIRE(whole["plans"] == one["plans"]);
  REQUIRE(whole["front"] == one["front"]);
  REQUIRE(!whole["rejected"].contains("cannot beat the best found"));
}

TEST_CASE("the whole front is found where it is asked for, in every form", "[release]") {
  const json plain = answer(small + "--top 3");
  REQUIRE(!plain.contains("front"));
  REQUIRE(plain["pareto"].at(0) == 0);
  const json asked = answer(small + "--top 3 --front");
  REQUIRE(asked["plans"] == plain["plans"]);
  REQUIRE(asked["pareto"] == plain["pareto"]);
  const json& front = asked["front"];
  REQUIRE(front.size() > 20);
  for (std::size_t i = 1; i < front.size(); ++i) {
    REQUIRE(front[i]["step_seconds"] > front[i - 1]["step_seconds"]);
    REQUIRE(front[i]["device_bytes"] < front[i - 1]["device_bytes"]);
  }

  const Run text = zeroplan::tests::zeroplan(small + "--top 3 --front");
  const std::string title = "the front: 20 of the " + std::to_string(front.size()) + " layouts";
  REQUIRE_THAT(text.output, ContainsSubstring(title));
  for (const json* end : {&front.front(), &front.back()}) {
    const double gibibytes = (*end)["device_bytes"].get<double>() / (1 << 30);
    char shown[16];
    std::snprintf(shown, sizeof shown, "%.2f", gibibytes);
    REQUIRE_THAT(text.output, ContainsSubstring(shown));
  }
  const Run without = zeroplan::tests::zeroplan(small + "--top 3");
  REQUIRE_THAT(without.output, !ContainsSubstring("the front"));
  const Run rows = zeroplan::tests::zeroplan(small + "--top 3 --csv --front");
  REQUIRE(rows.output == zeroplan::tests::zeroplan(small + "--top 3 --csv").output);
}

TEST_CASE("a sweep keeps to what is given") {
  const json given = answer(small + "--tp 2 --zero 1 --micro-batch 2");
  for (const json& plan : given["plans"]) {
    REQUIRE(plan["layout"]["tp"] == 2);
    REQUIRE(plan["layout"]["zero"] == 1);
    REQUIRE(plan["layout"]["micro_batch"] == 2);
  }
  const json within = answer(small + "--max-memory 40GiB");
  for (const json& plan : within["plans"]) {
    REQUIRE(plan["peak"]["device_bytes"].get<std::int64_t>() <= std::int64_t{40} << 30);
  }
  const json across = answer("sweep llama3-8b --gpus 32xH100-80GB --tp-within-node --top 20");
  for (const json& plan : across["plans"]) REQUIRE(plan["layout"]["tp"] <= 8);
}

// Off is not the same as open.
TEST_CASE("a sweep keeps to settings that are given", "[release]") {
  const auto chosen = [](const std::string& setting, const std::string& given) {
    std::set<std::string> values;
    const json swept = answer(small + given);
    for (const json& plan : swept["plans"]) {
      values.insert(plan["settings"].value(setting, "default"));
    }
    return values;
  };
  using Values = std::set<std::string>;
  const std::string stages = "--tp 1 --pp 2 --cp 1 --zero 1 ";
  REQUIRE(chosen("overlap_grad_reduce", stages).contains("true"));
  REQUIRE(chosen("overlap_grad_reduce", stages + "--set overlap_grad_reduce=false") ==
          Values{"default"});
  REQUIRE(chosen("overlap_param_gather", stages + "--set overlap_grad_reduce=false") ==
          Values{"default"});
  REQUIRE(chosen("overlap_param_gather", stages + "--set overlap_param_gather=false") ==
          Values{"default"});
  REQUIRE(chosen("overlap_grad_reduce", stages + "--set overlap_param_gather=true") ==
          Values{"true"});
  REQUIRE(chosen("recompute_num_layers", "--recompute full --set recompute_num_layers=0") ==
          Values{"default"});

  const std::string lean = "--objective headroom --top 50 --runtime ";
  const std::string bucket = "reduce_bucket_size";
  const std::string stage3 = lean + "deepspeed --zero 3 ";
  REQUIRE(chosen(bucket, stage3).contains("50000000"));
  REQUIRE(chosen(bucket, stage3 + "--set reduce_bucket_size=5e8") == Values{"default"});
  REQUIRE(chosen(bucket, stage3 + "--set reduce_bucket_size=3e8") == Values{"300000000"});
  const std::string fast = "--top 50 --runtime deepspeed --zero 2 ";
  REQUIRE(chosen("overlap_comm", fast).contains("true"));
  REQUIRE(chosen("overlap_comm", fast + "--set overlap_comm=false") == Values{"default"});
  REQUIRE(chosen("overlap_comm", fast + "--set overlap_comm=true") == Values{"true"});
  const std::string reshard = "parallelism.fsdp_reshard_after_forward";
  REQUIRE(chosen(reshard, lean + "fsdp2").contains("always"));
  REQUIRE(chosen(reshard, lean + "fsdp2 --set " + reshard + "=default") == Values{"default"});
}

// Groups that do not divide the ranks, and are wider than them.
TEST_CASE("where no layout has the sharding groups that are given, a sweep says so as fit does",
          "[release]") {
  for (const char* width : {"5", "64"}) {
    const std::string question = small.substr(small.find(' ')) + "--hsdp " + width;
    const Run run = zeroplan::tests::zeroplan("sweep" + question);
    CAPTURE(width, run.errors);
    REQUIRE(run.exit_code == 2);
    REQUIRE_THAT(run.errors, ContainsSubstring("hsdp " + std::string(width)));
    REQUIRE(run.errors == zeroplan::tests::zeroplan("fit" + question).errors);
  }
}

TEST_CASE("objectives ask for different plans") {
  const json fast = answer(small + "--top 1")["plans"].at(0);
  const json lean = answer(small + "--top 1 --objective headroom")["plans"].at(0);
  REQUIRE(lean["headroom_bytes"] > fast["headroom_bytes"]);
  const json few = answer(small + "--top 1 --objective gpus")["plans"].at(0);
  REQUIRE(few["cluster"]["gpus"] < 8);
  const json cheap = answer(small + "--top 1 --objective cost")["plans"].at(0);
  REQUIRE(cheap["step"]["tokens_per_second_per_gpu"] >= fast["step"]["tokens_per_second_per_gpu"]);
}

TEST_CASE("where nothing fits, a sweep says what the least is and exits with 1", "[release]") {
  const Run run = zeroplan::tests::zeroplan("sweep llama3.1-405b --gpus 8xA100-40GB");
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("nothing fits"));
  REQUIRE_THAT(run.output, ContainsSubstring("at least"));
  const Run forced =
      zeroplan::tests::zeroplan("sweep llama3-70b --gpus 64xH100-80GB --tp 1 --pp 1");
  REQUIRE(forced.exit_code == 1);
}

// The estimate takes the allocator to waste more here than its replay finds.
TEST_CASE("what no search finds and fit does, a sweep lists in every form", "[release]") {
  const std::string fits = "llama3-70b --gpus 16xH100-80GB --global-batch 128";
  const std::string tight = "llama2-7b --gpus 3xA100-40GB --runtime fsdp2";
  for (const std::string& question : {fits, tight}) {
    const Run alone = zeroplan::tests::zeroplan("fit " + question + " --json");
    for (const std::string form : {"", " --json", " --csv", " --front", " --objective gpus"}) {
      const Run run = zeroplan::tests::zeroplan("sweep " + question + form);
      INFO(question << form << "\n" << run.errors);
      REQUIRE(run.exit_code == alone.exit_code);
    }
    const json plan =
        json::parse(zeroplan::tests::zeroplan("sweep " + question + " --json").output)["plans"].at(
            0);
    const json fit = json::parse(alone.output);
    REQUIRE(plan["layout"] == fit["layout"]);
    REQUIRE(plan["verdict"] == fit["verdict"]);
  }
  REQUIRE_THAT(zeroplan::tests::zeroplan("sweep " + tight).output,
               Catch::Matchers::StartsWith("tight, the nearest to fitting of"));
  REQUIRE_THAT(zeroplan::tests::zeroplan("sweep " + fits).output,
               ContainsSubstring("0 of them fit by the sum of their tensors and what is usually"));
}

// User buffers of tp_comm_overlap are twelve hidden states, here 12 x 256 MiB.
TEST_CASE("where only a layout without user buffers fits, a sweep finds it") {
  const std::string question = "sweep llama3-8b --gpus 8xH100-80GB --tp 8 --pp 1 --seq 32768 ";
  const auto headroom = [&](const std::string& more) -> std::int64_t {
    return answer(question + "--top 1 --objective headroom" + more)["plans"].at(
        0)["headroom_bytes"];
  };
  const std::int64_t spared = headroom("") - headroom(" --set tp_comm_overlap=true");
  REQUIRE(spared > 3LL << 30);
  const json plan = answer(question + "--max-memory 26GiB")["plans"].at(0);  // with them 27.55
  REQUIRE(plan["verdict"] == "fits");
  REQUIRE_FALSE(plan["settings"].contains("tp_comm_overlap"));
}

TEST_CASE("the fewest GPUs of a sweep are those that fit names", "[release]") {
  const std::string question = "mixtral-8x7b --gpus 64xH100-80GB";
  const json few = answer("sweep " + question + " --objective gpus")["plans"].at(0);
  const json fit = json::parse(zeroplan::tests::zeroplan("fit " + question + " --json").output);
  REQUIRE(few["cluster"]["gpus"] == fit["fewest_gpus"]);
}

// The whole model is made on each GPU before it is divided, unless a setting says otherwise.
TEST_CASE("where nothing fits, a sweep says which change would do, as fit does") {
  const std::string question = "llama3-70b --gpus 64xH100-80GB --zero 3 --tp 1 --pp 1 --cp 1";
  const Run run = zeroplan::tests::zeroplan("sweep " + question);
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("set init_model_with_meta_device=true (was false)"));
  const json swept = json::parse(zeroplan::tests::zeroplan("sweep " + question + " --json").output);
  const json fits = json::parse(zeroplan::tests::zeroplan("fit " + question + " --json").output);
  REQUIRE_FALSE(fits["nearest_fits"].empty());
  REQUIRE(swept["nearest_fits"] == fits["nearest_fits"]);
}

TEST_CASE("a sweep whose plans the replay refuses says by what they fit and by what they do not") {
  const std::string question =
      "sweep llama3-8b --gpus 4xA100-80GB --tp 1 --pp 1 --zero 3 --recompute none --micro-batch 1 "
      "--max-memory 48GiB";
  const Run run = zeroplan::tests::zeroplan(question);
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("nothing fits"));
  REQUIRE_THAT(run.output, ContainsSubstring("fit by the sum of their tensors, none with the "
                                             "allocator replayed"));
  REQUIRE(json::parse(zeroplan::tests::zeroplan(question + " --json").output)["refused_by_replay"] >
          0);
}

TEST_CASE("a space without a legal layout is bad input, with what would do") {
  const Run run = zeroplan::tests::zeroplan("sweep llama3-8b --gpus 8xH100-80GB --tp 7");
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring("--tp"));
  const std::string size = "sweep 7.5B --gpus 64xV100-32GB --runtime zero-paper";
  REQUIRE(zeroplan::tests::zeroplan(size).exit_code == 2);
  REQUIRE(zeroplan::tests::zeroplan(small + "--top 0").exit_code == 2);
  REQUIRE(zeroplan::tests::zeroplan(small + "--max-memory 40").exit_code == 2);
  REQUIRE(zeroplan::tests::zeroplan(small + "--objective fastest").exit_code == 2);
}

// Kept are the best and the shapes, not the points: 3 GB of address space are more than enough.
TEST_CASE("a space of more than 10^9 layouts is searched in bounded memory, all of it counted",
          "[release]") {
  const Run run = zeroplan::tests::shell("ulimit -v 3000000; '" ZEROPLAN_BINARY
                                         "' sweep deepseek-v3 --gpus 15360xH800-80GB "
                                         "--global-batch 15360 --top 3 --json");
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 0);
  const json a = json::parse(run.output);
  REQUIRE(a["layouts"].get<std::int64_t>() > 1'000'000'000);
  std::int64_t counted = a["feasible"];
  for (const auto& [why, count] : a["rejected"].items()) counted += count.get<std::int64_t>();
  REQUIRE(counted == a["layouts"].get<std::int64_t>());
  REQUIRE(a["plans"].size() == 3);
}

TEST_CASE("an interrupted sweep ends with the best so far") {
  // timeout sends the signal twice: to the program, and to its process group.
  const Run run = zeroplan::tests::shell(
      "timeout -s INT 3 '" ZEROPLAN_BINARY
      "' sweep deepseek-v3 --gpus 2048xH800-80GB --exhaustive --top 1 --quiet");
  CAPTURE(run.output, run.errors);
  REQUIRE_THAT(run.errors, ContainsSubstring("stopped before all layouts were looked at"));
}

// Shapes are still being collected: there is nothing to answer with.
TEST_CASE("a sweep interrupted before it found anything says so, and ends with 3") {
  for (const std::string signal : {"INT", "TERM"}) {
    // As soon as it listens to signals, which are bits 1 and 14 of its mask.
    const Run run = zeroplan::tests::shell(
        "'" ZEROPLAN_BINARY
        "' sweep deepseek-v3 --gpus 16384xH800-80GB --objective cost --json &\n"
        "until grep -qE '^State:.Z|^SigCgt:.*4..2$' /proc/$!/status; do :; done\n"
        "kill -" +
        signal +
        " $!\n"
        "wait $!");
    CAPTURE(signal, run.output, run.errors);
    REQUIRE(run.exit_code == 3);
    REQUIRE(run.output.empty());
    REQUIRE(run.errors ==
            "zeroplan: error: stopped before all layouts were looked at; none was "
            "found to fit yet\n");
    REQUIRE(run.seconds < 120);
  }
}
