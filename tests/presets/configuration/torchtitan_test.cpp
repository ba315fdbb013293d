// torchtitan's configurations: TOML, then Python.
#include "presets/configuration.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::import;
using tests::value;

namespace {

Problem plan(std::int64_t recipe_date) {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.runtime.fsdp2.recipe_date = recipe_date;
  return p;
}

std::string exported(const Problem& p) {
  return export_configuration(p, ConfigurationFormat::torchtitan).text;
}

}  // namespace

TEST_CASE("torchtitan's TOML is read") {
  const ImportedConfiguration t = import(
      "# llama\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 2\n"
      "seq_len = 8192  # long\n\n[parallelism]\ntensor_parallel_degree = 4\n"
      "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
      "fsdp_reshard_after_forward = \"always\"\n[activation_checkpoint]\nmode = \"full\"\n"
      "[metrics]\nlog_freq = 10\n");
  REQUIRE(t.format == "torchtitan");
  CHECK(value(t, "--tp") == "4");
  CHECK(value(t, "--sequence-parallel") == "on");
  CHECK(value(t, "--pp") == "2");
  CHECK(value(t, "--vpp") == "2");
  CHECK(value(t, "--schedule") == "interleaved");
  CHECK(value(t, "--zero") == "3");
  CHECK(value(t, "parallelism.fsdp_reshard_after_forward") == "always");
  CHECK(value(t, "--recompute") == "full");
  CHECK(t.about_model == std::vector<std::string>{"model.name", "model.flavor"});
  CHECK(t.not_understood.empty());
  CHECK(t.immaterial == std::vector<std::string>{"metrics.log_freq"});
}

TEST_CASE("fp8 has the names that torchtitan 0.2.2 takes, and its section nowhere else") {
  for (const bool fp8 : {true, false}) {
    Problem p = plan(20260201);
    p.training.precision = fp8 ? Precision::fp8 : Precision::bf16;
    const std::string text = exported(p);
    CHECK((text.find("converters = [\"quantize.linear.float8\"]") != text.npos) == fp8);
    CHECK((text.find("[quantize.linear.float8]") != text.npos) == fp8);
    CHECK(text.find("[float8]") == text.npos);
  }
}

TEST_CASE("what one scale covers is said, and a file of names that says nothing means tensors") {
  const auto [date, recipe, said, day] =
      GENERATE(table<std::int64_t, Float8Recipe, std::string, std::string>(
          {{20260201, Float8Recipe::recipe, "", "2026-02-22"},
           {20260201, Float8Recipe::tensorwise, "tensorwise", "2026-02-22"},
           {20260201, Float8Recipe::rowwise, "rowwise", ""},
           {20260821, Float8Recipe::recipe, "", ""},
           {20260821, Float8Recipe::rowwise_with_gw_hp, "rowwise_with_gw_hp", ""}}));
  Problem p = plan(date);
  p.training.precision = Precision::fp8;
  p.runtime.fsdp2.float8_recipe = recipe;
  const ImportedConfiguration read = import(exported(p));
  CHECK(value(read, "float8.recipe_name") == said);
  CHECK(value(read, "recipe_date") == day);
}

TEST_CASE("asynchronous tensor parallelism is of compile since 2026-08-12") {
  const auto [date, key] =
      GENERATE(table<std::int64_t, std::string>({{20260201, "[parallelism]"},
                                                 {20260811, "ParallelismConfig("},
                                                 {20260812, "CompileConfig("}}));
  Problem p = plan(date);
  p.runtime.fsdp2.compile = true;
  p.runtime.fsdp2.async_tensor_parallel = true;
  const std::string text = exported(p);
  const std::size_t section = text.find(key);
  const std::size_t there = text.find("enable_async_tensor_parallel");
  REQUIRE(there != text.npos);
  CHECK(section < there);
  CHECK(text.substr(section, there - section).find("Config(", key.size()) == text.npos);
  CHECK(value(import(text), "compile.enable_async_tensor_parallel") == "true");
}

TEST_CASE("torchtitan is configured as its checkout reads it") {
  CHECK_THAT(exported(plan(20260201)), ContainsSubstring("[training]\nlocal_batch_size = "));
  const std::string samples = exported(plan(20260813));
  CHECK_THAT(samples, ContainsSubstring("def plan() -> Trainer.Config:\n") &&
                          ContainsSubstring("    config.training.local_batch_size = ") &&
                          ContainsSubstring("    config.training.disable_cuda_graphs = False\n"));
  CHECK_THAT(exported(plan(20260821)),
             ContainsSubstring("    config.training.num_tokens_per_microbatch_per_dp_rank = ") &&
                 ContainsSubstring("    config.model_spec = model_registry(\"8B\")\n"));
}

TEST_CASE("a function that changes another is read where it says all that decides") {
  Problem p = plan(20260821);
  p.layout.recompute = Recompute::none;
  const std::string text = exported(p);
  CHECK_THAT(text, ContainsSubstring("    config.activation_checkpoint = None\n"));
  CHECK(value(import(text), "--recompute") == "none");
  CHECK(value(import(text), "training.disable_cuda_graphs").empty());
  for (const char* line : {"    config.training.dtype", "    config.activation_checkpoint",
                           "        tensor_parallel_degree", "        enable",
                           "    config.training.num_tokens_per_microbatch"}) {
    CAPTURE(line);
    std::string less = text;
    const std::size_t at = less.find(line);
    REQUIRE(at != less.npos);
    less.erase(at, less.find('\n', at) - at);
    CHECK_THAT(error_text([&] { import(less); }), ContainsSubstring("llama3_8b() says the rest"));
  }
}

TEST_CASE("CUDA graphs that a pipeline cannot have are no choice") {
  Problem p = plan(20260821);
  p.layout.pp = 2;
  p.layout.dp /= 2;
  CHECK_THAT(exported(p), ContainsSubstring("disable_cuda_graphs = True"));
  CHECK(value(import(exported(p)), "training.disable_cuda_graphs").empty());
}

TEST_CASE("a loss that exists whole is said by its class, one in parts by their number") {
  Problem p = plan(20260821);
  CHECK(value(import(exported(p)), "loss_chunks").empty());
  p.runtime.fsdp2.loss_chunks = 1;
  CHECK(value(import(exported(p)), "loss_chunks") == "1");
  p.runtime.fsdp2.loss_chunks = 4;
  CHECK(value(import(exported(p)), "loss_chunks") == "4");
}

TEST_CASE("a model that torchtitan does not have is left to be filled in") {
  Problem p = plan(20260821);
  p.model.name = "mine";
  CHECK_THAT(exported(p), ContainsSubstring("# mine is no model of torchtitan's") &&
                              ContainsSubstring("model_registry(\"FLAVOR\")"));
}
