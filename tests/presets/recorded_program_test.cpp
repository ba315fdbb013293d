#include "presets/recorded_program.hpp"

#include <nlohmann/json.hpp>

#include "cost_model/program/recorded.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

namespace {

using Json = nlohmann::json;

// A linear of one token, on two GPUs.
Json document() {
  return Json::parse(R"({
    "schema": "zeroplan.program/1",
    "model": {"name": "one", "parameters": 1024, "layers": 1},
    "runtime": {"name": "torchtitan", "versions": {"torch": "2.14", "torchtitan": "0.3"},
                "expandable_segments": true},
    "rank": 1,
    "layout": {"dp": 2, "tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "etp": 1, "zero": 3,
               "sequence_parallel": false, "micro_batch": 1, "global_batch": 2,
               "sequence_length": 1, "schedule": "1f1b", "recompute": "none", "precision": "bf16",
               "optimizer": "adam", "attention": "flash", "offload": "none"},
    "groups": [{"name": "dp", "ranks": 2, "stride": 1}],
    "tensors": [
      {"name": "weight", "bytes": 2048, "category": "parameters", "stream": "compute", "slots": 2},
      {"name": "output", "bytes": 100, "category": "activations", "stream": "gather", "slots": 1}],
    "calls": [{"group": "dp", "collective": "all-gather", "payload_bytes": 2048,
               "stream": "gather"}],
    "operators": [
      {"name": "mm", "scope": "linear", "gradient": false, "precision": "bf16",
       "product": {"m": 1, "n": 32, "k": 32, "groups": 1, "output_bytes": 2,
                   "columns_of_inputs": false}},
      {"name": "add", "scope": "", "gradient": true, "precision": "fp32", "moved_bytes": 64}],
    "resident": [0, 1],
    "passes": [{"pass": "forward", "events": ["c0", "+2", "k0", "=loss"]},
               {"pass": "backward", "events": ["k0", "k1", "-2"]},
               {"pass": "optimizer_step", "events": ["k1"]}]})");
}

RecordedStep read(const Json& json) {
  return read_recorded_step(json.dump(), "step.json");
}

// What is said of it with this value at this place.
std::string refusal(const std::string& pointer, const Json& value) {
  Json json = document();
  json[Json::json_pointer(pointer)] = value;
  return error_text([&] { read(json); });
}

}  // namespace

TEST_CASE("a recorded step is read as it was written") {
  const RecordedStep step = read(document());
  REQUIRE(step.gpus == 2);
  REQUIRE(step.model.name == "one");
  REQUIRE(step.model.vocab_size == 1024);
  const RecordedProgram& program = *step.runtime.recorded;
  REQUIRE(program.runtime == "torchtitan (torch 2.14, torchtitan 0.3)");
  REQUIRE(program.expandable_segments);
  REQUIRE(program.micro_batches() == 1);
  REQUIRE(program.slots.size() == 3);
  REQUIRE(program.slots[2].bytes == Bytes{512});  // as the allocator rounds it
  REQUIRE(program.slots[2].stream == Stream::gather);
  REQUIRE(program.calls[0].beside == Beside::pass);
  REQUIRE(std::get<ProductShape>(program.operators[0].work).n == 32);
  REQUIRE(std::get<Bytes>(program.operators[1].work) == Bytes{64});
  REQUIRE(program.passes[0].size() == 4);
  REQUIRE(program.passes[0][3].begins_phase());
  REQUIRE(is_recorded_step(document().dump()));
  REQUIRE(!is_recorded_step(R"({"schema": "zeroplan.fit/1"})"));
}

TEST_CASE("what no run can have done is refused with its place") {
  const auto says = [](const std::string& pointer, const Json& value, const std::string& words) {
    const std::string said = refusal(pointer, value);
    CAPTURE(pointer, value.dump(), said);
    CHECK(said.starts_with("step.json"));
    REQUIRE(said.find('\n') == std::string::npos);
    CHECK_THAT(said, ContainsSubstring(words));
  };
  says("/schema", "zeroplan.program/2", "'schema' must be 'zeroplan.program/1'");
  says("/tensors/0/bytes", -2048, "found -2048");
  says("/tensors/0/bytes", 1e300, "'bytes'");
  says("/tensors/0/bytes", std::int64_t{1} << 51, "'bytes'");
  says("/tensors/0/slots", 4'000'000, "'slots'");
  says("/tensors/0/slots", 1000, "more slots than are ever taken");
  says("/tensors/0/category", "weights", "'category' is 'weights': must be one of parameters");
  says("/tensors/0/category", "context", "is of no tensor");
  says("/tensors/1/stream", "copy", "'stream' is 'copy': must be one of compute, gather, reduce");
  says("/tensors/0/name", "a\nb", "must be a name");
  says("/tensors", 3, "'tensors' must be a list");
  says("/resident/0", 7, "no slot of 'tensors'");
  says("/resident/0", -1, "no slot of 'tensors'");
  says("/resident/1", 0, "slot 0 is taken twice");
  says("/passes/0/events/0", "-2", "event 0: slot 2 is freed before it is taken");
  says("/passes/0/events/0", "+0", "event 0: slot 0 is taken twice");
  says("/passes/0/events/0", "+99", "there are not so many");
  says("/passes/0/events/0", "c1", "there are not so many");
  says("/passes/0/events/0", "k2", "there are not so many");
  says("/passes/0/events/0", "z1", "unknown kind of event");
  says("/passes/0/events/0", "+-1", "must be +, -, c or k and a number");
  says("/passes/0/events/0", "+99999999999999999999", "must be +, -, c or k and a number");
  says("/passes/0/events/0", "", "must be +, -, c or k and a number");
  says("/passes/0/events/0", "=init", "no phase");
  says("/passes/0/events/0", 5, "events");
  says("/passes/0/events", Json::array(), "no kernel runs in it");
  says("/passes/0/pass", "backward", "'pass' must be forward here");
  says("/passes/2", nullptr, "passes[2]");
  says("/passes", Json::array(), "a forward and a backward pass");
  says("/calls/0/group", "tp", "none of 'groups'");
  says("/calls/0/collective", "all_gather", "'collective' is 'all_gather'");
  says("/calls/0/payload_bytes", std::int64_t{1} << 40, "'payload_bytes'");
  says("/groups/0/ranks", 3, "'ranks' must");
  says("/groups/0/stride", 2, "are not among 2");
  says("/operators/0/product/m", 0, "'m' must");
  says("/operators/0/product/m", std::int64_t{1} << 40, "'m'");
  says("/operators/0/precision", "int8", "'precision' is 'int8'");
  says("/operators/0/moved_bytes", 5, "one of 'moved_bytes', 'product' and 'attention'");
  says("/operators/0/speed", 5, "speed");
  says("/rank", 2, "'rank' must");
  says("/layout/pp", 2, "'pp' must be 1");
  says("/layout/dp", 10'000'000, "");
  says("/layout/tp", 10'000'000, "more than 10000000 GPUs");
  says("/layout/global_batch", 4, "'global_batch' is not dp x micro_batch x the 1 micro-batches");
  says("/layout/hsdp", 3, "'hsdp' does not divide dp");
  says("/layout/zero", 4, "'zero' is '4'");
  says("/model/layers", 0, "'layers' must");
  says("/runtime/versions", 3, "versions");
}

TEST_CASE("attention over more than can be counted is refused") {
  Json json = document();
  Json attention{
      {"batch", 1},        {"queries", 1'000'000'000}, {"keys", 1'000'000'000}, {"heads", 1},
      {"kv_heads", 1},     {"qk_width", 64},           {"v_width", 64},         {"causal", true},
      {"backward", false}, {"newest", false}};
  json["operators"][0] = {{"name", "attention"},
                          {"scope", ""},
                          {"gradient", false},
                          {"precision", "bf16"},
                          {"attention", attention}};
  REQUIRE(says(error_text([&] { read(json); }), "10^17"));
  json["operators"][0]["attention"]["keys"] = json["operators"][0]["attention"]["queries"] = 4096;
  REQUIRE(error_text([&] { read(json); }).empty());
}

TEST_CASE("every key of a recorded step is needed, and no other is known") {
  const Json whole = document();
  for (const auto& [key, value] : whole.items()) {
    Json json = whole;
    json.erase(key);
    CAPTURE(key);
    REQUIRE(says(error_text([&] { read(json); }), key));
  }
  for (const auto& [key, value] : whole.at("layout").items()) {
    Json json = whole;
    json["layout"].erase(key);
    CAPTURE(key);
    REQUIRE(says(error_text([&] { read(json); }), key));
  }
  Json more = whole;
  more["events"] = Json::array();
  REQUIRE(says(error_text([&] { read(more); }), "events"));
}

TEST_CASE("a recorded step that was cut anywhere is one line") {
  const std::string text = document().dump();
  for (std::size_t length = 1; length < text.size(); length += 7) {
    const std::string said =
        error_text([&] { read_recorded_step(text.substr(0, length), "step.json"); });
    CAPTURE(length, said);
    REQUIRE(!said.empty());
    REQUIRE(said.find('\n') == std::string::npos);
  }
}
