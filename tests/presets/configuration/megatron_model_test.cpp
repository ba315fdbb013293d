// Models as Megatron-LM's arguments, and back.
#include "presets/configuration/megatron_model.hpp"

#include <algorithm>

#include "presets/catalog.hpp"
#include "presets/configuration/model_differences.hpp"
#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

namespace {

ModelSpec built(const std::vector<Entry>& arguments) {
  std::string missing;
  const std::string config = megatron_config(Entries(arguments, "train.sh"), missing);
  REQUIRE(missing.empty());
  return read_hf_config(config, "train.sh", nullptr);
}

std::vector<Entry> arguments_of(const ModelSpec& model) {
  std::vector<Entry> list;
  add_megatron_model(list, model);
  list.push_back({"max-position-embeddings", model.max_position_embeddings});
  return list;
}

Entry& find(std::vector<Entry>& list, std::string_view key) {
  const auto found = std::ranges::find(list, key, &Entry::key);
  REQUIRE(found != list.end());
  return *found;
}

}  // namespace

TEST_CASE("Megatron's arguments say which layers attend linearly, and what is gated") {
  for (const char* name : {"qwen3.5-9b", "qwen3-next-80b-a3b", "qwen3.5-35b-a3b"}) {
    CAPTURE(name);
    const ModelSpec asked = find_model(name).spec;
    std::vector<Entry> arguments = arguments_of(asked);
    CHECK(find(arguments, "linear-attention-freq").value == 4);
    const ModelSpec model = built(arguments);
    CHECK(model_differences(asked, model) == std::vector<std::string>{});
    CHECK(model.layer_kinds == asked.layer_kinds);
    CHECK(model.attention.output_gate);
    if (asked.moe) CHECK(model.moe->shared_expert_gate);
    // The shape is what Megatron-LM's configuration has by default.
    for (const char* usual :
         {"linear-conv-kernel-dim", "linear-key-head-dim", "linear-value-head-dim",
          "linear-num-key-heads", "linear-num-value-heads"}) {
      std::erase_if(arguments, [&](const Entry& e) { return e.key == usual; });
    }
    CHECK(built(arguments).linear_attention == model.linear_attention);
  }
}

TEST_CASE("layers in no even order are said one by one") {
  ModelSpec asked = find_model("qwen3.5-35b-a3b").spec;
  std::swap(asked.layer_kinds[0], asked.layer_kinds[3]);
  std::vector<Entry> arguments = arguments_of(asked);
  const std::string pattern = find(arguments, "linear-attention-freq").value;
  CHECK(pattern.starts_with("([0]*1+[1]*6+[0]*1"));
  CHECK(built(arguments).layer_kinds == asked.layer_kinds);
  // Experts stand where they are said to, whichever attention is before them.
  asked.layer_kinds[1] = LayerKind::linear_dense;
  asked.layer_kinds[0] = LayerKind::dense;
  asked.mlp = {.intermediate_size = 1'024, .gated = true};
  arguments = arguments_of(asked);
  CHECK(find(arguments, "moe-layer-freq").value == "([0]*2+[1]*38)");
  CHECK(built(arguments).layer_kinds == asked.layer_kinds);
}

TEST_CASE("what of linear attention is not described or says too little is refused") {
  const std::vector<Entry> whole = arguments_of(find_model("qwen3.5-9b").spec);
  const auto complaint = [&](std::string_view key, ConfigValue value) {
    std::vector<Entry> list = whole;
    find(list, key).value = std::move(value);
    return error_text([&] { built(list); });
  };
  CHECK_THAT(complaint("experimental-attention-variant", "dsa"),
             ContainsSubstring("'dsa' is not described; gated_delta_net is"));
  CHECK_THAT(complaint("linear-attention-freq", "[1]*3"),
             ContainsSubstring("linear-attention-freq '[1]*3': must say each of the 32 layers"));
  CHECK_THAT(complaint("linear-num-key-heads", 5),
             ContainsSubstring("linear-num-key-heads 5 do not divide 32 value heads"));
  CHECK(complaint("experimental-attention-variant", "gdn").empty());
  std::vector<Entry> list = whole;
  std::erase_if(list, [](const Entry& e) { return e.key == "linear-attention-freq"; });
  CHECK_THAT(error_text([&] { built(list); }), ContainsSubstring("no 'linear-attention-freq'"));
  // Where every layer is the other kind, none is linear.
  list = whole;
  find(list, "linear-attention-freq").value = 1;
  CHECK_FALSE(built(list).linear_attention.has_value());
}

TEST_CASE("Megatron's pattern says layers of one half each") {
  for (const char* name : {"nemotron-h-8b", "nemotron-nano-9b-v2", "nemotron-3-nano-30b-a3b"}) {
    CAPTURE(name);
    const ModelSpec asked = find_model(name).spec;
    std::vector<Entry> arguments = arguments_of(asked);
    CHECK(std::ranges::count(arguments, "num-layers", &Entry::key) == 0);
    CHECK(find(arguments, "position-embedding-type").value == "none");
    const ModelSpec model = built(arguments);
    CHECK(model_differences(asked, model) == std::vector<std::string>{});
    CHECK(model.layer_kinds == asked.layer_kinds);
    if (asked.moe) CHECK(std::ranges::count(arguments, "moe-layer-freq", &Entry::key) == 0);
  }
  ModelSpec latents = find_model("nemotron-3-nano-30b-a3b").spec;
  latents.moe->latent_size = 1'024;
  CHECK(built(arguments_of(latents)).moe->latent_size == 1'024);
}
