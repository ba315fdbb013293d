// A recorded step is a MODEL: examples that no description covers, and steps that zeroplan
// describes too, whose answers lie beside those of the description.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/fit.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::answer;
using tests::fit;
using tests::Json;
using tests::require_refused;

namespace {

std::string recorded(const std::string& name) {
  return source_dir() + "/tests/reference/recorded/" + name + ".json";
}

const std::string hybrid = recorded("bamba-0.5b");
const std::string tower = recorded("vit-huge");

Json events_of(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file).at("passes");
}

// Bytes of its slots that are live at the highest moment, added up here once more.
std::int64_t highest(const std::string& path) {
  std::ifstream file(path);
  const Json document = Json::parse(file);
  std::vector<std::int64_t> slots;
  for (const Json& kind : document.at("tensors")) {
    const auto rounded = (kind.at("bytes").get<std::int64_t>() + 511) / 512 * 512;
    slots.insert(slots.end(), kind.at("slots").get<std::size_t>(), rounded);
  }
  std::int64_t live = 0, most = 0;
  for (const Json& slot : document.at("resident")) live += slots.at(slot.get<std::size_t>());
  for (const Json& pass : document.at("passes")) {
    for (const Json& event : pass.at("events")) {
      const auto word = event.get<std::string>();
      if (word.front() == '+') live += slots.at(std::stoul(word.substr(1)));
      if (word.front() == '-') live -= slots.at(std::stoul(word.substr(1)));
      most = std::max(most, live);
    }
  }
  return most;
}

double relative(double value, double to) {
  return std::abs(value / to - 1);
}

}  // namespace

TEST_CASE("a recorded hybrid and a vision tower are answered end to end") {
  for (const std::string& path : {hybrid, tower}) {
    CAPTURE(path);
    const Json plan = fit(path + " --gpus 8xH100-80GB");
    const Json& peak = plan.at("peak");
    const std::int64_t workspace = plan.at("stages")[0].at("categories").at("workspace");
    CHECK(plan.at("verdict") == "fits");
    CHECK(plan.at("runtime") == "recorded");
    CHECK(plan.at("chosen").empty());
    // cuBLAS's workspaces, which no tensor shows, are added; nothing else.
    const std::int64_t added = peak.at("allocated_bytes").get<std::int64_t>() - highest(path);
    CHECK(added > 0);
    CHECK(added <= workspace);
    CHECK(peak.at("reserved_bytes") >= peak.at("allocated_bytes"));
    CHECK(!peak.at("tensor").get<std::string>().empty());
    CHECK(plan.at("model_states").at("optimizer_bytes") > 0);
    CHECK(!plan.at("communication").empty());
    const Json& step = plan.at("step");
    // Its operators, each as often as it was recorded, and what waits for messages.
    double parts_of_step = step.at("compute_seconds").get<double>();
    for (const Json& call : plan.at("communication")) {
      parts_of_step += call.at("exposed_seconds").get<double>();
    }
    CHECK(relative(step.at("seconds").get<double>(), parts_of_step) < 1e-9);
    CHECK(step.at("mfu") > 0);
    CHECK(step.at("mfu") < 1);
    CHECK(step.at("hardware_flops") >= step.at("model_flops"));

    const Json line = answer("timeline " + path + " --gpus 8xH100-80GB");
    std::size_t tensors = 0;
    for (const Json& pass : events_of(path)) {
      for (const Json& event : pass.at("events")) {
        const auto word = event.get<std::string>();
        tensors += word.front() == '+' || word.front() == '-';
      }
    }
    CHECK(line.at("events").size() >= tensors);

    const Json taken_apart = answer("explain " + path + " --gpus 8xH100-80GB");
    std::int64_t sum = 0;
    for (const Json& row : taken_apart.at("rows")) {
      std::int64_t parts = 0;
      for (const Json& part : row.at("parts")) parts += part.at("bytes").get<std::int64_t>();
      CHECK(parts == row.at("bytes"));
      sum += row.at("bytes").get<std::int64_t>();
    }
    CHECK(sum == taken_apart.at("device_bytes"));
    for (const char* text : {"fit ", "timeline ", "explain "}) {
      const tests::Run run = tests::zeroplan(text + path + " --gpus 8xH100-80GB");
      CHECK(run.exit_code == 0);
      CHECK(run.errors.empty());
    }
  }
}

TEST_CASE("the machine of a recorded step is anyone's") {
  const Json h100 = fit(tower + " --gpus H100-80GB");  // as many as were recorded
  const Json a100 = fit(tower + " --gpus 8xA100-80GB");
  CHECK(h100.at("cluster").at("gpus") == 8);
  CHECK(h100.at("peak").at("allocated_bytes") != 0);
  CHECK(a100.at("step").at("seconds") > h100.at("step").at("seconds"));
  const Json both =
      answer("compare " + tower + " --a '--gpus 8xH100-80GB' --b '--gpus 8xA100-80GB'");
  CHECK(both.at("a").at("step").at("seconds") == h100.at("step").at("seconds"));
  CHECK(both.at("b").at("step").at("seconds") == a100.at("step").at("seconds"));
  CHECK(fit(tower + " --gpus 8xA100-40GB --margin 30GiB", 1).at("nearest_fits").empty());
  require_refused("fit " + tower + " --gpus 8xV100-32GB", "V100-32GB has no bf16 matrix units");
}

TEST_CASE("the layout of a recorded step is its own") {
  const std::string on = tower + " --gpus 8xH100-80GB ";
  CHECK(fit(on + "--tp 1 --zero 3") == fit(on));
  require_refused("fit " + on + "--tp 2", "--tp '2': ");
  require_refused("fit " + on + "--tp 2", "layout is fixed at 1");
  require_refused("fit " + on + "--micro-batch max", "--micro-batch 'max': ");
  require_refused("fit " + on + "--gradient-accumulation 2", "--gradient-accumulation '2': ");
  require_refused("fit " + on + "--runtime fsdp2", "--runtime 'fsdp2': ");
  require_refused("fit " + on + "--set recipe_date=2026-02-20", "--set 'recipe_date=2026-02-20': ");
  require_refused("fit " + tower + " --gpus 16xH100-80GB", "recorded on 8 GPUs, not on 16");
  require_refused("fit " + tower + "#1 --gpus 8xH100-80GB", "drop #");
  require_refused("fit " + on + "--html page.html", "a recorded step has the one layout");
  require_refused("sweep " + on, "sweep: a recorded step has the one layout");
  require_refused("export " + on, "export: a recorded step has the one layout");
  require_refused("validate " + on, "validate: a recorded step has the one layout");
  require_refused("story " + on, "story: a recorded step has the one layout");
}

TEST_CASE("a spoiled recorded step is one line and 2") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "step.json").string();
  std::ifstream file(tower);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto refused = [&](const std::string& text) {
    std::ofstream(path) << text;
    const tests::Run run = tests::zeroplan("fit " + path + " --gpus 8xH100-80GB");
    CAPTURE(run.errors);
    CHECK(run.exit_code == 2);
    CHECK(run.output.empty());
    CHECK(run.errors.starts_with("zeroplan: error: "));
    CHECK(std::ranges::count(run.errors, '\n') == 1);
  };
  for (const std::size_t length : {100u, 1000u, 20'000u}) refused(whole.substr(0, length));
  Json json = Json::parse(whole);
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json other = json;
    other[Json::json_pointer(pointer)] = value;
    refused(other.dump());
  };
  with("/tensors/0/bytes", -512);
  with("/tensors/0/slots", std::int64_t{1} << 60);
  with("/passes/0/events/0", "-0");
  with("/passes/0/events/0", "x0");
  with("/operators/0/scope", 5);
  with("/layout/dp", -8);
  with("/schema", "zeroplan.program/2");
}

TEST_CASE("a described and a recorded step agree") {
  struct Pair {
    std::string recorded;
    std::string described;
    double bytes;
    double seconds;  // README of the tracers says why they differ
  };
  const std::string one = " --gpus 8xH100-80GB --pp 1 --cp 1 --recompute none --micro-batch 1 ";
  const std::string llama = "llama3-8b" + one + "--global-batch 8 ";
  const Pair pairs[] = {
      {"llama3-8b-torchtitan", llama + "--runtime fsdp2 --tp 1 --zero 3 --seq 8192", 0.001, 0.03},
      {"llama3-8b-transformers",
       llama + "--runtime fsdp2 --set layers=huggingface --tp 1 --zero 3 --seq 4096", 0.001, 0.03},
      {"llama3-8b-megatron", llama + "--tp 2 --zero 1 --seq 8192", 0.001, 0.04},
      {"llama2-deepspeed",
       recorded("llama2-deepspeed.config") + one +
           "--runtime deepspeed --zero 3 --seq 4096 --global-batch 8",
       0.001, 0.03}};
  for (const Pair& pair : pairs) {
    CAPTURE(pair.recorded);
    const Json own = fit(recorded(pair.recorded) + " --gpus 8xH100-80GB");
    const Json other = fit(pair.described);
    CHECK(relative(own.at("peak").at("allocated_bytes"), other.at("peak").at("allocated_bytes")) <
          pair.bytes);
    const Json& step = own.at("step");
    const Json& described = other.at("step");
    CHECK(relative(step.at("model_flops"), described.at("model_flops")) < 0.001);
    CHECK(relative(step.at("seconds"), described.at("seconds")) < pair.seconds);
    CHECK(relative(step.at("communication_exposed_seconds"),
                   described.at("communication_exposed_seconds")) < 0.01);
  }
}
