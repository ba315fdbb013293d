// The answer of fit, as programs and people get it.
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/catch.hpp"
#include "tests/cli/fit.hpp"

using namespace zeroplan;
using tests::fit;
using tests::Json;

namespace {

const std::vector<std::string> categories{
    "parameters",       "gradients",   "master_parameters",
    "optimizer_states", "activations", "communication_buffers",
    "temporaries",      "workspace",   "fragmentation",
    "communicators",    "context"};

void require_sums(const Json& answer) {
  for (const Json& stage : answer.at("stages")) {
    std::int64_t sum = 0;
    REQUIRE(stage.at("categories").size() == categories.size());
    for (const std::string& category : categories) {
      if (category == "fragmentation") REQUIRE(stage.at("allocated_bytes") == sum);
      if (category == "communicators") REQUIRE(stage.at("reserved_bytes") == sum);
      sum += stage.at("categories").at(category).get<std::int64_t>();
    }
    REQUIRE(stage.at("device_bytes") == sum);
    REQUIRE(stage.at("device_bytes") <= answer.at("peak").at("device_bytes"));
  }
  REQUIRE(answer.at("capacity_bytes").get<std::int64_t>() -
              answer.at("peak").at("device_bytes").get<std::int64_t>() ==
          answer.at("headroom_bytes"));
}

}  // namespace

TEST_CASE("the fit document has every field of its schema") {
  const Json a = fit("qwen2.5-72b --gpus 128xA100-80GB");
  REQUIRE(a.at("schema") == "zeroplan.fit/1");
  REQUIRE(a.at("verdict") == "fits");
  REQUIRE(a.at("model") == Json{{"name", "qwen2.5-72b"}, {"parameters", 72706203648}});
  REQUIRE(a.at("cluster") == Json{{"gpu", "A100-80GB"}, {"gpus", 128}, {"gpus_per_node", 8}});
  REQUIRE(a.at("runtime") == "megatron");
  for (const char* key : {"dp", "tp", "pp", "vpp", "cp", "ep", "etp", "zero", "micro_batch",
                          "global_batch", "gradient_accumulation", "sequence_length"}) {
    CAPTURE(key);
    REQUIRE(a.at("layout").at(key).is_number_integer());
  }
  for (const char* key :
       {"schedule", "recompute", "precision", "optimizer", "attention", "offload"}) {
    REQUIRE(a.at("layout").at(key).is_string());
  }
  REQUIRE(a.at("layout").at("sequence_parallel").is_boolean());
  for (const char* key : {"chosen", "stages", "communication", "assumptions", "nearest_fits"})
    REQUIRE(a.at(key).is_array());
  for (const char* key : {"stage", "phase", "tensor", "allocated_bytes", "reserved_bytes",
                          "device_bytes", "device_bytes_low", "device_bytes_high"}) {
    REQUIRE(a.at("peak").contains(key));
  }
  for (const char* key : {"parameters_bytes", "gradients_bytes", "optimizer_bytes"}) {
    REQUIRE(a.at("model_states").at(key).is_number_integer());
  }
  REQUIRE(a.at("fit_probability").get<double>() > 0.99);
  REQUIRE(a.contains("step"));
  require_sums(a);
}

TEST_CASE("dp follows from the GPUs, and a given layout is the layout answered") {
  REQUIRE(fit("qwen2.5-72b --gpus 64xA100-80GB --tp 8 --pp 8").at("layout").at("dp") == 1);
  REQUIRE(fit("qwen2.5-72b --gpus 128xA100-80GB --tp 8 --pp 8").at("layout").at("dp") == 2);
  const Json a =
      fit("llama3-70b --gpus 64xH100-80GB --tp 4 --pp 2 --cp 2 --zero 1 --micro-batch 2 "
          "--global-batch 128 "
          "--seq 8192 --recompute full --sequence-parallel on --precision fp16 --schedule 1f1b "
          "--vpp 1");
  const Json expected = {{"dp", 4},
                         {"tp", 4},
                         {"pp", 2},
                         {"vpp", 1},
                         {"cp", 2},
                         {"ep", 1},
                         {"etp", 1},
                         {"zero", 1},
                         {"sequence_parallel", true},
                         {"micro_batch", 2},
                         {"global_batch", 128},
                         {"gradient_accumulation", 16},
                         {"sequence_length", 8192},
                         {"schedule", "1f1b"},
                         {"recompute", "full"},
                         {"precision", "fp16"},
                         {"optimizer", "adam"},
                         {"attention", "flash"},
                         {"offload", "none"}};
  REQUIRE(a.at("layout") == expected);
  REQUIRE(a.at("chosen").empty());
}

TEST_CASE("rows sum exactly for every runtime") {
  for (const std::string runtime :
       {"megatron", "fsdp2", "ddp", "deepspeed", "zero-paper", "zeroplan", "nanotron"}) {
    CAPTURE(runtime);
    const Json a = fit("llama3-8b --gpus 64xH200 --runtime " + runtime, runtime == "ddp" ? 1 : 0);
    require_sums(a);
    REQUIRE(a.at("runtime") == runtime);
  }
}

TEST_CASE("ZeRO that was asked for and divides nothing says so") {
  const auto assumed = [](const std::string& options) {
    return fit("llama3.1-8b " + options).at("assumptions").dump();
  };
  const std::string nothing = "ZeRO 3 divides nothing";
  REQUIRE_THAT(assumed("--gpus 4xH100-80GB --tp 4 --zero 3"), ContainsSubstring(nothing));
  REQUIRE_THAT(assumed("--gpus 8xH100-80GB --tp 4 --zero 3"), !ContainsSubstring(nothing));
  REQUIRE_THAT(assumed("--gpus 4xH100-80GB --pp 4"), !ContainsSubstring("divides nothing"));
  REQUIRE_THAT(assumed("--gpus 1xB300 --zero 3"), !ContainsSubstring(nothing));  // who else?
}

TEST_CASE("what was typed is not listed as assumed") {
  const auto assumed = [](const std::string& options) {
    return fit("llama3-8b --gpus 8xH100-80GB " + options).at("assumptions").dump();
  };
  const std::string open = assumed("");
  REQUIRE_THAT(open, ContainsSubstring("Adam with fp32 states"));
  REQUIRE_THAT(open, ContainsSubstring("flash attention"));
  const std::string typed = assumed("--optimizer adam --attention flash --precision bf16");
  for (const char* word : {"Adam", "flash", "--precision"}) {
    REQUIRE(typed.find(word) == std::string::npos);
  }
  const std::string aware = "--set use_precision_aware_optimizer=true --set exp_avg_dtype=bf16 ";
  REQUIRE_THAT(assumed(aware), ContainsSubstring("Adam with 16-bit exp_avg and fp32 exp_avg_sq"));
  REQUIRE_THAT(assumed(aware + "--set exp_avg_sq_dtype=bf16"),
               ContainsSubstring("Adam with 16-bit states"));
}

TEST_CASE("ZeRO Figure 1 from the command line") {
  const auto gigabytes = [](const std::string& stage) {
    const Json a =
        fit("7.5B --gpus 64xV100-32GB --runtime zero-paper --zero " + stage, stage == "0" ? 1 : 0);
    const Json& s = a.at("model_states");
    return (s.at("parameters_bytes").get<double>() + s.at("gradients_bytes").get<double>() +
            s.at("optimizer_bytes").get<double>()) /
           1e9;
  };
  REQUIRE(gigabytes("0") == Approx(120));
  REQUIRE(gigabytes("1") == Approx(31.40625));
  REQUIRE(gigabytes("2") == Approx(16.640625));
  REQUIRE(gigabytes("3") == Approx(1.875));
}

TEST_CASE("settings of the runtime change what they are about") {
  const auto gradients = [](const std::string& set) {
    return fit("llama3-8b --gpus 8xH100-80GB --tp 1 --pp 1 --zero 1 --recompute none --micro-batch "
               "1" +
               set)
        .at("model_states")
        .at("gradients_bytes")
        .get<std::int64_t>();
  };
  REQUIRE(gradients("") == 2 * gradients(" --set grad_reduce_in_bf16=true"));
  const auto buckets = [](const std::string& set) {
    const Json a =
        fit("llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2 --recompute full "
            "--attention unfused" +
            set);
    return a.at("stages").at(0).at("categories").at("communication_buffers").get<std::int64_t>();
  };
  REQUIRE(buckets("") == 2 * 500'000'000LL);
  REQUIRE(buckets(" --set reduce_bucket_size=1e8") == 2 * 100'000'000LL);
}

// ZeRO section 7: an all-reduce of all gradients sends 2 (N-1)/N times their bytes.
TEST_CASE("communication lists what a rank of the worst stage sends") {
  const Json plain =
      fit("7.5B --gpus 64xV100-32GB --runtime zero-paper --zero 0", 1).at("communication");
  REQUIRE(plain.size() == 1);
  const Json& row = plain.at(0);
  REQUIRE(row.at("group") == "dp");
  REQUIRE(row.at("collective") == "all-reduce");
  REQUIRE(row.at("calls") == 1);
  const auto payload = row.at("payload_bytes").get<std::int64_t>();
  REQUIRE(payload == 2LL * 7'500'000'000);
  REQUIRE(row.at("sent_bytes_per_gpu").get<std::int64_t>() == payload / 64 * 63 * 2);

  const Json layers =
      fit("llama3-70b --gpus 64xH100-80GB --tp 8 --pp 2 --zero 1").at("communication");
  std::set<std::string> groups;
  for (const Json& load : layers) {
    groups.insert(load.at("group").get<std::string>());
    REQUIRE(load.at("calls").get<std::int64_t>() > 0);
    REQUIRE(load.at("sent_bytes_per_gpu").get<std::int64_t>() > 0);
    REQUIRE(load.at("seconds").get<double>() > 0);
    REQUIRE(load.at("exposed_seconds").get<double>() >= 0);
  }
  REQUIRE(groups == std::set<std::string>{"tp", "pp", "dp"});
}

TEST_CASE("the parts of a step add up to it") {
  const char* layout = "llama3-70b --gpus 64xH100-80GB --tp 8 --pp 4 --global-batch 128";
  const Json answer = fit(layout);
  const Json& step = answer.at("step");
  const auto value = [&](const char* key) { return step.at(key).get<double>(); };
  const double seconds = value("seconds");
  REQUIRE(seconds > 0);
  REQUIRE(std::abs(value("compute_seconds") + value("communication_exposed_seconds") +
                   value("bubble_seconds") - seconds) < 1e-9 * seconds);
  REQUIRE(std::abs(value("tokens_per_second_per_gpu") * 64 * seconds - 128.0 * 4096) < 1e-3);
  REQUIRE(std::abs(value("tflops_per_gpu") * 1e12 * 64 * seconds / value("model_flops") - 1) <
          1e-9);
  REQUIRE(value("mfu") > 0.2);
  REQUIRE(value("mfu") < 0.7);
  REQUIRE(value("hfu") == value("mfu"));  // nothing is recomputed
}

TEST_CASE("text leads with the verdict and its rows add up as shown") {
  const tests::Run run = tests::zeroplan("fit llama3.1-405b --gpus 1024xH100-80GB --color never");
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.output.find("fits: ") == 0);
  const std::regex row("    (=? ?[a-z ]+?) +(-?[0-9]+\\.[0-9]{2})\\n");
  long sum = 0;
  int totals = 0;
  for (std::sregex_iterator it(run.output.begin(), run.output.end(), row), end; it != end; ++it) {
    const long hundredths = std::lround(std::stod((*it)[2]) * 100);
    if ((*it)[1].str()[0] == '=') {
      CAPTURE((*it)[1].str());
      REQUIRE(hundredths == sum);
      ++totals;
    } else {
      sum += hundredths;
    }
  }
  REQUIRE(totals == 4);  // allocated, reserved, needed, capacity
}

TEST_CASE("quiet is one line, csv one row a stage, color only where asked") {
  REQUIRE(tests::zeroplan("fit llama3-8b --gpus 8xH100 --quiet").output.find('\n') ==
          tests::zeroplan("fit llama3-8b --gpus 8xH100 --quiet").output.size() - 1);
  const tests::Run csv = tests::zeroplan("fit llama3-70b --gpus 64xH100 --tp 4 --pp 4 --csv");
  REQUIRE(std::count(csv.output.begin(), csv.output.end(), '\n') == 5);
  REQUIRE(tests::zeroplan("fit llama3-8b --gpus 8xH100").output.find('\x1b') == std::string::npos);
  REQUIRE(tests::zeroplan("fit llama3-8b --gpus 8xH100 --color always").output.find('\x1b') !=
          std::string::npos);
}

TEST_CASE("presets are listed and shown") {
  for (const std::string kind : {"models", "gpus", "clusters", "runtimes"}) {
    CAPTURE(kind);
    const Json list = Json::parse(tests::zeroplan("presets " + kind + " --json").output);
    REQUIRE(list.size() >= (kind == "models" ? 106 : kind == "runtimes" ? 6 : 10));
    const tests::Run one =
        tests::zeroplan("presets " + kind + " " + list.at(0).at("name").get<std::string>());
    REQUIRE(one.exit_code == 0);
    REQUIRE_FALSE(Json::parse(one.output).at("source").get<std::string>().empty());
  }
  const Json shown = Json::parse(tests::zeroplan("presets models mixtral-8x7b").output);
  REQUIRE(shown.at("parameters") == 46702792704);
}

TEST_CASE("probe lists GPUs, or says in one line why there are none") {
  const tests::Run run = tests::zeroplan("probe --devices --json");
  if (run.exit_code == 0) {
    for (const Json& device : Json::parse(run.output)) {
      REQUIRE(device.at("memory_bytes").get<std::int64_t>() >=
              device.at("free_bytes").get<std::int64_t>());
    }
  } else {
    REQUIRE(run.exit_code == 3);
    REQUIRE(run.output.empty());
    REQUIRE(run.errors.find("zeroplan: error: ") == 0);
  }
}

TEST_CASE("help and version are answers") {
  const tests::Run version = tests::zeroplan("--version");
  REQUIRE(version.exit_code == 0);
  const auto versions = fit("llama3-8b --gpus 8xH100-80GB --tp 1").at("versions");
  std::string lines = "zeroplan " ZEROPLAN_VERSION "\n";
  for (const char* what : {"presets", "constants", "corpus"}) {
    lines += what + (" " + versions.at(what).get<std::string>()) + "\n";
  }
  REQUIRE(version.output == lines);
  REQUIRE(versions.at("program") == ZEROPLAN_VERSION);
  REQUIRE(tests::zeroplan("fit --help").output.find("--gpus") != std::string::npos);
}

TEST_CASE("the default batch is the multiple nearest to four million tokens") {
  const auto batch = [](const std::string& arguments) {
    return fit("llama3-8b --runtime deepspeed --offload none " + arguments, 1)
        .at("layout")
        .at("global_batch");
  };
  CHECK(batch("--gpus 1xH100-80GB --micro-batch 7") == 980);
  CHECK(batch("--gpus 1xH200 --seq 131072") == 31);
}

TEST_CASE("the global batch can be said by the micro-batches of a replica") {
  const std::string question = "llama3-8b --gpus 16xH100-80GB --tp 2 --pp 1 --micro-batch 2 ";
  const Json said = fit(question + "--gradient-accumulation 6");
  REQUIRE(said.at("layout").at("global_batch") == 8 * 2 * 6);
  REQUIRE(said.at("layout").at("gradient_accumulation") == 6);
  REQUIRE(said == fit(question + "--global-batch 96"));
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const tests::Run run = tests::zeroplan("fit " + question + arguments);
    CAPTURE(run.errors);
    REQUIRE(run.exit_code == 2);
    REQUIRE_THAT(run.errors, ContainsSubstring(words));
  };
  refused("--gradient-accumulation 6 --global-batch 96", "give it or --global-batch");
  refused("--gradient-accumulation 0", "from 1 to");
  refused("--gradient-accumulation 1000000000", "from 1 to");
}

TEST_CASE("the verdict line and the rows show the same bytes") {
  const std::regex line("needs ([0-9.]+) of ([0-9.]+) GiB \\(([0-9.]+) GiB (free|short)");
  const std::regex row("    free +(-?[0-9.]+)\n");
  for (const std::string asked : {"llama3-8b --gpus 4xRTX-4090", "gpt3-175b --gpus 1024xA100-80GB",
                                  "llama3-8b --gpus 8xH100-80GB --tp 2"}) {
    const tests::Run run = tests::zeroplan("fit " + asked);
    std::smatch shown, free;
    CAPTURE(run.output);
    REQUIRE(std::regex_search(run.output, shown, line));
    REQUIRE(std::regex_search(run.output, free, row));
    const std::string sign = shown[4] == "short" ? "-" : "";
    REQUIRE(sign + shown[3].str() == free[1].str());
    REQUIRE(std::stod(shown[2]) - std::stod(shown[1]) == Approx(std::stod(free[1])).margin(1e-6));
  }
}

TEST_CASE("what is offloaded fits the host's memory or does not") {
  const std::string question =
      "llama3-70b --gpus 8xH100-80GB --runtime deepspeed --zero 3 --offload parameters "
      "--global-batch 8 --tp 1 --pp 1 --micro-batch 1 --recompute full ";
  const tests::Run open = tests::zeroplan("fit " + question);
  REQUIRE(open.exit_code == 0);
  REQUIRE_THAT(open.output, ContainsSubstring("(--host-memory says whether it has that)"));
  const Json enough =
      Json::parse(tests::zeroplan("fit " + question + "--host-memory 2TiB --json").output);
  REQUIRE(enough.at("verdict") == "fits");
  REQUIRE(enough.at("host").at("fits") == true);
  const auto bytes = enough.at("host").at("bytes_per_node").get<std::int64_t>();
  const auto with = [&](std::int64_t memory) {
    return tests::zeroplan("fit " + question + "--host-memory " + std::to_string(memory) + "B");
  };
  REQUIRE(with(bytes).exit_code == 0);
  const tests::Run less = with(bytes - 1);
  REQUIRE(less.exit_code == 1);
  REQUIRE(less.output.find("does not fit: the host of each node needs ") == 0);
  const tests::Run few = tests::zeroplan("fit " + question + "--host-memory 1TiB --json");
  REQUIRE(few.exit_code == 1);
  REQUIRE(Json::parse(few.output).at("verdict") == "does_not_fit");
  REQUIRE(Json::parse(few.output).at("peak") == enough.at("peak"));
  REQUIRE(tests::zeroplan("fit " + question + "--host-memory 90%").exit_code == 2);
}
