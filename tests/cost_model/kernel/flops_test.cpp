#include "cost_model/kernel/flops.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// A GPT of the Megatron papers, from the inputs of a row of tests/reference/paper_cases.jsonl.
Problem gpt(const nlohmann::json& inputs) {
  Problem p = problem(Runtime::megatron, "megatron-22b", {});
  p.model.hidden_size = inputs["hidden"];
  p.model.layers = inputs["layers"];
  p.model.vocab_size = inputs["vocab"];
  p.model.attention.heads = p.model.attention.kv_heads = inputs["heads"];
  p.model.attention.head_dim = p.model.hidden_size / p.model.attention.heads;
  p.model.mlp.intermediate_size = 4 * p.model.hidden_size;
  p.training.sequence_length = inputs["seq"];
  p.training.global_batch = inputs["global_batch"];
  p.training.scores = ScoreCount::whole;
  return p;
}

std::vector<nlohmann::json> paper_rows(std::string_view id_prefix, std::string_view quantity) {
  std::vector<nlohmann::json> rows;
  std::ifstream file(source_dir() + "/tests/reference/paper_cases.jsonl");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    auto row = nlohmann::json::parse(line);
    const std::string id = row["id"];
    if (id.starts_with(id_prefix) && row["expect"]["quantity"] == quantity) rows.push_back(row);
  }
  return rows;
}

double percent_of_peak(const nlohmann::json& inputs, double flops) {
  const double peak = inputs["gpus"].get<double>() * inputs["peak_flops"].get<double>();
  return 100 * flops / inputs["iteration_time_s"].get<double>() / peak;
}

}  // namespace

TEST_CASE("full recompute of a GPT is equation 3 of Narayanan et al.") {
  const auto rows = paper_rows("ptdp-t1-", "achieved_tflops_per_gpu");
  REQUIRE(rows.size() == 9);
  for (const auto& row : rows) {
    Problem p = gpt(row["inputs"]);
    p.layout.recompute = Recompute::full;
    const auto h = static_cast<double>(p.model.hidden_size);
    const auto l = static_cast<double>(p.model.layers);
    const auto s = static_cast<double>(p.training.sequence_length);
    const auto batch = static_cast<double>(p.training.global_batch);
    const auto v = static_cast<double>(p.model.vocab_size);
    const double published = 96 * batch * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
    CAPTURE(row["id"]);
    REQUIRE(step_flops(p).hardware == Approx(published).epsilon(1e-9));
  }
}

TEST_CASE("model and hardware FLOPs give the MFU and HFU of Korthikanti et al., Table 5") {
  for (const auto& row : paper_rows("kort-t5-", "MFU")) {
    CAPTURE(row["id"]);
    const double mfu = percent_of_peak(row["inputs"], step_flops(gpt(row["inputs"])).model);
    REQUIRE(mfu == Approx(row["expect"]["value"].get<double>()).epsilon(0.005));
  }
  for (const auto& row : paper_rows("kort-t5-", "HFU")) {
    CAPTURE(row["id"]);
    Problem p = gpt(row["inputs"]);
    p.layout.recompute = Recompute::selective;
    // The paper adds s/6h of 72 B L s h^2 for the repeated scores, which is three times their
    // forward pass: as much as forward and backward together. Here they count once.
    const StepFlops flops = step_flops(p);
    const double published = flops.model + 3 * (flops.hardware - flops.model);
    const double hfu = percent_of_peak(row["inputs"], published);
    REQUIRE(hfu == Approx(row["expect"]["value"].get<double>()).epsilon(0.004));
  }
}

TEST_CASE("the 405B Llama 3 needs the 3.8e25 FLOPs of its report") {
  // Llama 3 report, introduction: 15.6 trillion tokens. It does not say how attention counts.
  Problem p = problem(Runtime::fsdp2, "llama3.1-405b", {});
  p.training.sequence_length = 8192;
  p.training.global_batch = 1;
  const double steps = 15.6e12 / 8192;
  REQUIRE(steps * step_flops(p, ScoreCount::causal).model == Approx(3.8e25).epsilon(0.04));
  REQUIRE(steps * step_flops(p, ScoreCount::whole).model == Approx(3.8e25).epsilon(0.08));
}

// 8192 tokens: 6 FLOPs of each of 7.5 billion parameters that multiply, and 6 x 32 layers x 4096 x
// 8192 of causal attention; NVIDIA's tables of Megatron-Bridge divide by 0.0515 TFLOP a token.
TEST_CASE(
    "reported FLOPs are those of NVIDIA's tables, unless whole score matrices are asked for") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {});
  p.training.sequence_length = 8192;
  p.training.global_batch = 1;
  CHECK(step_flops(p).model / 8192 == Approx(0.0515e12).epsilon(0.002));
  p.training.scores = ScoreCount::whole;
  CHECK(step_flops(p).model / 8192 == Approx(0.0579e12).epsilon(0.002));
}

TEST_CASE("linears of a layer are two FLOPs for each weight a token meets") {
  // q, o: 2 x 4096^2; k, v: 2 x 1024 x 4096; gate, up, down: 3 x 14336 x 4096.
  const ModelSpec llama = find_model("llama3-8b").spec;
  REQUIRE(layer_linear_flops(llama, LayerKind::dense, 1) == 2 * 218'103'808.0);
  // q, kv, o projections with their latents: 187,107,328 less two norms of 1536 and 512; the router
  // 256 x 7168; one shared and eight routed experts of 3 x 2048 x 7168.
  const ModelSpec deepseek = find_model("deepseek-v3").spec;
  REQUIRE(layer_linear_flops(deepseek, LayerKind::moe, 1) ==
          2 * (187'105'280.0 + 256 * 7168 + 9.0 * 3 * 2048 * 7168));
  // Latent attention: 128 heads of 192 and of 128, and the causal half.
  REQUIRE(layer_score_flops(deepseek, 4096, ScoreCount::whole) ==
          2.0 * 4096 * 4096 * 128 * (192 + 128));
  REQUIRE(layer_score_flops(deepseek, 4096, ScoreCount::causal) == 1.0 * 4096 * 4096 * 128 * 320);
  // Every other layer of gpt-oss sees 128 keys: 1/32 of 4,096, and 63/1024 of the pairs.
  const ModelSpec oss = find_model("gpt-oss-120b").spec;
  const double whole = 2.0 * 4096 * 4096 * 64 * (64 + 64);
  REQUIRE(layer_score_flops(oss, 4096, ScoreCount::whole) == whole);
  REQUIRE(layer_score_flops(oss, 4096, ScoreCount::causal) == whole / 2 * (1 + 63.0 / 1024) / 2);
}

TEST_CASE("the modules of an expert layer that run again") {
  Problem p = problem(Runtime::megatron, "deepseek-v3", {.recompute = Recompute::selective});
  const StepFlops kept = step_flops(problem(Runtime::megatron, "deepseek-v3", {}));
  const auto again = [&](RecomputeModule m) {  // FLOPs of a token and layer
    p.runtime.megatron.recompute_modules = 1U << static_cast<unsigned>(m);
    const double tokens = static_cast<double>(p.training.global_batch * 4096);
    return (step_flops(p).hardware - kept.hardware) / tokens;
  };
  REQUIRE(again(RecomputeModule::mla_up_proj) ==
          Approx(61 * 2.0 * (1536 * 128 * 192 + 512 * 128 * 256)));
  REQUIRE(again(RecomputeModule::shared_experts) == Approx(58 * 2.0 * 3 * 2048 * 7168));
  REQUIRE(again(RecomputeModule::moe) == Approx(58 * 2.0 * (256 * 7168 + 9.0 * 3 * 2048 * 7168)));
}

TEST_CASE("recompute adds to hardware FLOPs only") {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const std::string_view model : {"llama3-8b", "deepseek-v3"}) {
      const StepFlops none = step_flops(problem(Runtime::megatron, model, {}));
      const StepFlops some =
          step_flops(problem(Runtime::megatron, model, {.recompute = recompute}));
      CAPTURE(model, name_of(recompute));
      REQUIRE(none.hardware == none.model);
      REQUIRE(some.model == none.model);
      if (recompute != Recompute::none) REQUIRE(some.hardware > none.hardware);
    }
  }
}

TEST_CASE("layers that are recomputed apart add what each of them repeats") {
  for (const std::string_view model : {"llama3-8b", "qwen3-30b-a3b"}) {
    Problem p = problem(Runtime::fsdp2, model, {.dp = 8});
    const auto added = [&](Recompute recompute) {
      p.layout.recompute = recompute;
      const StepFlops flops = step_flops(p);
      return flops.hardware - flops.model;
    };
    const double full = added(Recompute::full);
    const double selective = added(Recompute::selective);
    p.runtime.fsdp2.recompute_num_layers = 5;
    const double part = 5.0 / static_cast<double>(p.model.layers);
    CAPTURE(model);
    REQUIRE(added(Recompute::full) == Approx(part * full));
    REQUIRE(added(Recompute::selective) == Approx(part * selective));
    p.runtime.fsdp2.selective_rest = true;
    REQUIRE(added(Recompute::full) == Approx(part * full + (1 - part) * selective));
  }
}

TEST_CASE("a trained multi-token-prediction module costs a layer, a projection and a head") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8});
  const double without = step_flops(p).model;
  p.runtime.megatron.mtp_num_layers = 1;
  const double s = 4096;
  const double h = 4096;
  // 218,103,808 elements of a layer's linears; half of the scores' 2 s^2 2h; the projection 2h x h;
  // the head.
  const double sample =
      2 * s * 218'103'808 + 2 * s * s * h + 2 * s * 2 * h * h + 2 * s * h * 128'256;
  REQUIRE(step_flops(p).model - without ==
          Approx(3 * sample * static_cast<double>(p.training.global_batch)));
}
