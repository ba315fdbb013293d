// Whatever stands in a file, a reader understands it or refuses it: it does not crash, hang, throw
// anything else or answer with what a terminal would obey.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "presets/configuration.hpp"
#include "presets/hf_config.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// What the readers read: a file of each format for a layout with everything in it.
std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const Runtime runtime :
       {Runtime::megatron, Runtime::fsdp2, Runtime::ddp, Runtime::deepspeed, Runtime::nanotron}) {
    const bool parts = runtime == Runtime::megatron || runtime == Runtime::fsdp2;
    const Layout layout{.dp = 2, .tp = parts ? 2 : 1, .pp = parts ? 2 : 1, .micro_batch = 2};
    const Problem p = tests::problem(runtime, "mixtral-8x7b", layout);
    for (const ConfigurationFormat format : formats_of(p.runtime)) {
      texts.push_back(export_configuration(p, format).text);
    }
  }
  texts.emplace_back(
      R"({"schema": "zeroplan.fit/1", "model": {"name": "llama3-8b"}, "runtime": "megatron",
          "cluster": {"gpus": 8, "gpu": "H100-80GB"}, "settings": {"hidden_dropout": "0"},
          "layout": {"dp": 2, "tp": 2, "pp": 2, "zero": 1, "sequence_parallel": true}})");
  texts.emplace_back(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n"
      "mixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: false\n");
  texts.emplace_back(
      "#!/bin/bash\nTP=2\nARGS=(\n  --tensor-model-parallel-size $TP\n  --bf16\n)\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --seq-length 4096\n");
  return texts;
}

std::vector<std::string> model_seeds() {
  return {
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
          "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false})",
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
          "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
          "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
          "n_shared_experts": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1,
          "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
          "num_nextn_predict_layers": 1, "max_position_embeddings": 163840})"};
}

// Changes a text at a few places: bytes, words that break readers, pieces of itself.
class Spoiler {
 public:
  explicit Spoiler(unsigned seed) : random_(seed) {}

  std::string spoiled(std::string text) {
    for (std::size_t i = 0, times = 1 + at_most(3); i < times && !text.empty(); ++i) once(text);
    return text;
  }

 private:
  std::size_t at_most(std::size_t most) { return random_() % (most + 1); }

  void once(std::string& text) {
    static const std::vector<std::string> words{
        "inf",  "nan",      "-1",     "0",    "1e999", "99999999999999999999",
        "null", "\x1b[31m", "\xff",   "{",    "}",     "[",
        "]",    "\"",       "\n",     ",",    ":",     "=",
        "--",   "$(x)",     "${A",    "auto", "true",  "4294967296",
        "-0.0", "\\u0000",  "\"a\":", "#",    "\t",    "\xe2\x80"};
    const std::size_t at = at_most(text.size() - 1);
    const std::size_t length = std::min(at_most(30), text.size() - at);
    switch (at_most(5)) {
      case 0:
        text[at] = static_cast<char>(1 + at_most(254));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, words[at_most(words.size() - 1)]);
        break;
      case 4: {  // a whole value
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        text.replace(digit, end - digit, words[at_most(words.size() - 1)]);
        break;
      }
      default:
        text.resize(at);
    }
  }

  std::mt19937 random_;
};

// Calls read(text) for so many spoiled texts of the seeds; what it refuses must fit a line.
template <class Read>
int read_spoiled(const std::vector<std::string>& texts, int count, const Read& read) {
  Spoiler spoiler(20261123);
  int understood = 0;
  for (int i = 0; i < tests::draws(count); ++i) {
    const std::string text = spoiler.spoiled(texts[static_cast<std::size_t>(i) % texts.size()]);
    CAPTURE(text);
    try {
      read(text);
      ++understood;
    } catch (const InputError& error) {
      const std::string said = error.what();
      CAPTURE(said);
      REQUIRE(printable(said) == said);
      REQUIRE(said.size() < 2'000);
    }
  }
  return understood;
}

}  // namespace

TEST_CASE("a spoiled configuration or plan is understood or refused", "[hostile]") {
  const int understood = read_spoiled(seeds(), 4'000, [](const std::string& text) {
    const ImportedConfiguration meaning = import_configuration(text, "file");
    for (const TypedOption& option : meaning.options) {
      REQUIRE(printable(option.value) == option.value);
      const std::string number = option.value.substr(option.value.find('=') + 1);
      REQUIRE(number != "inf");
      REQUIRE(number != "nan");
    }
    for (const auto* said : {&meaning.notes, &meaning.not_understood, &meaning.about_model}) {
      for (const std::string& text_of : *said) REQUIRE(printable(text_of) == text_of);
    }
  });
  REQUIRE(understood > tests::draws(4'000) / 20);  // else only the front door was tried
}

TEST_CASE("a spoiled model is understood or refused, and its sizes are bounded", "[hostile]") {
  const int understood = read_spoiled(model_seeds(), 6'000, [](const std::string& text) {
    std::vector<std::string> notes;
    const ModelSpec model = read_hf_config(text, "file", &notes, "");
    REQUIRE(model.layers >= 1);
    REQUIRE(model.layers <= 4'000);
    for (const std::string& note : notes) REQUIRE(printable(note) == note);
  });
  REQUIRE(understood > tests::draws(6'000) / 50);
}

// A model is handed on as JSON, which knows no such bytes.
TEST_CASE("a configuration whose keys are no UTF-8 is read as any other", "[hostile]") {
  std::ifstream file(ZEROPLAN_SOURCE_DIR "/tests/presets/configuration/texts/nanotron_llama.yaml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t key = text.find("num_key_value_heads");
  REQUIRE(key != std::string::npos);
  text[key + 16] = '\xfa';
  const ImportedConfiguration meaning = import_configuration(text, "file");
  CHECK(!meaning.options.empty());
  CHECK(!meaning.model_config.empty());
}
