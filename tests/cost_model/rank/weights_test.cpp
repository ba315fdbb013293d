#include "cost_model/rank/weights.hpp"

#include "presets/catalog.hpp"
#include "presets/preset_file.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

// Every published count is checked in tests/presets; here the arithmetic of single blocks.

TEST_CASE("a llama layer is its seven matrices and two norms") {
  const ModelSpec model = find_model("llama3-8b").spec;
  // q, o: 2 x 4096^2; k, v: 2 x 1024 x 4096; gate, up, down: 3 x 14336 x 4096; norms: 2 x 4096.
  REQUIRE(elements(layer_weights(model, LayerKind::dense)) == 218'112'000);
}

TEST_CASE("latent attention of DeepSeek-V3 has 187,107,328 parameters a layer") {
  const ModelSpec model = find_model("deepseek-v3").spec;
  std::int64_t attention = 0;
  for (const Weight& w : layer_weights(model, LayerKind::dense)) {
    const bool mlp = w.module == "fc1" || w.module == "fc2" || w.module == "norm";
    if (!mlp) attention += w.elements();
  }
  REQUIRE(attention == 187'107'328);
}

TEST_CASE("a tied embedding counts once") {
  ModelSpec model = find_model("qwen2.5-7b").spec;
  const std::int64_t untied = parameter_count(model);
  model.tied_embeddings = true;
  REQUIRE(untied - parameter_count(model) == model.vocab_size * model.hidden_size);
}

TEST_CASE("active parameters leave out the experts a token does not visit") {
  // DeepSeek-V3 report, section 4.2: 37 billion activated, both embeddings counted.
  REQUIRE(active_parameter_count(find_model("deepseek-v3").spec) == 37'552'297'472);
  const ModelSpec dense = find_model("llama3-8b").spec;
  REQUIRE(active_parameter_count(dense) == parameter_count(dense));
}

TEST_CASE("multi-token prediction stands apart from the decoder") {
  const ModelSpec model = find_model("deepseek-v3").spec;
  REQUIRE(parameter_count(model) == 671'026'419'200);
  // The hub's checkpoint stores the module with its own embedding and head.
  REQUIRE(parameter_count(model) + mtp_parameter_count(model) == 684'489'845'504);
}

// A rank pads, gathers and counts each: one of no rows would be a tensor that no code makes.
TEST_CASE("no weight of the ends of a catalog model is empty") {
  for (const std::string& name : preset_names("models")) {
    const ModelSpec model = find_model(name).spec;
    for (const auto& weights :
         {embedding_weights(model), head_weights(model), mtp_weights(model)}) {
      for (const Weight& weight : weights) {
        CAPTURE(name, weight.module);
        REQUIRE(weight.elements() > 0);
      }
    }
  }
}
