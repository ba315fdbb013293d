// Files: models, configurations, clusters, recorded steps.
#include <filesystem>

#include "presets/catalog.hpp"
#include "presets/configuration.hpp"
#include "presets/hf_config.hpp"
#include "presets/preset_file.hpp"
#include "presets/recorded_program.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

namespace zeroplan::fuzz {
namespace {

const std::string folder = source_dir() + "/tests/";

}  // namespace

void look_at_model(std::string_view bytes) {
  std::vector<std::string> notes;
  const ModelSpec model = read_hf_config(bytes, "file", &notes, "");
  require(model.layers >= 1 && model.layers <= 4'000, "layers are bounded");
  for (const std::string& note : notes) require_printable(note);
}

// As they are published, and as a step's recorder wrote them.
std::vector<std::string> model_seeds() {
  std::vector<std::string> texts{
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
          "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false})",
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
          "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
          "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
          "n_shared_experts": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1,
          "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
          "num_nextn_predict_layers": 1, "max_position_embeddings": 163840})",
      R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
          "vocab_size": 50257})",
      R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
          "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
          "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512,
          "sliding_window_pattern": 6, "max_position_embeddings": 32768})",
      R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
          "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
          "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
          "shared_expert_intermediate_size": 512, "linear_num_key_heads": 16,
          "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
          "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "vocab_size": 151936})"};
  for (const auto& entry : std::filesystem::directory_iterator(folder + "reference/recorded")) {
    if (entry.path().string().ends_with(".config.json")) texts.push_back(contents(entry.path()));
  }
  return texts;
}

void look_at_configuration(std::string_view bytes) {
  const ImportedConfiguration meaning = import_configuration(bytes, "file");
  for (const TypedOption& option : meaning.options) {
    require_printable(option.value);
    const std::string number = option.value.substr(option.value.find('=') + 1);
    require(number != "inf" && number != "nan", "options are numbers");
  }
  for (const auto* said : {&meaning.notes, &meaning.not_understood, &meaning.about_model}) {
    for (const std::string& text : *said) require_printable(text);
  }
}

// Every format of every runtime, and every text that a test imports.
std::vector<std::string> configuration_seeds() {
  std::vector<std::string> texts;
  for (const Runtime runtime :
       {Runtime::megatron, Runtime::fsdp2, Runtime::ddp, Runtime::deepspeed, Runtime::nanotron}) {
    const bool parts = runtime == Runtime::megatron || runtime == Runtime::fsdp2;
    const Layout layout{.dp = 2, .tp = parts ? 2 : 1, .pp = parts ? 2 : 1, .micro_batch = 2};
    const Problem p = zeroplan::tests::problem(runtime, "mixtral-8x7b", layout);
    for (const ConfigurationFormat format : formats_of(p.runtime)) {
      texts.push_back(export_configuration(p, format).text);
    }
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(folder + "presets/configuration/texts")) {
    texts.push_back(contents(entry.path()));
  }
  return texts;
}

void look_at_cluster(std::string_view bytes) {
  const ClusterSpec cluster = read_cluster(bytes, "file");
  require(cluster.gpus >= 1, "a cluster has a GPU");
}

std::vector<std::string> cluster_seeds() {
  return {
      R"({"gpu": "H100-80GB", "gpus_per_node": 8, "nodes": 4})",
      R"({"gpu": {"name": "X", "memory": "96 GB", "bf16_tflops": 500, "memory_bandwidth_gbps": 2000},
          "gpus": 16, "gpus_per_node": 8})",
      preset_json("clusters", preset_names("clusters").front())};
}

void look_at_recorded(std::string_view bytes) {
  const RecordedStep step = read_recorded_step(bytes, "file");
  require(step.gpus >= 1, "a recorded step has ranks");
}

// A step that was recorded, and the smallest.
std::vector<std::string> recorded_seeds() {
  return {contents(folder + "reference/recorded/vit-huge.json"),
          R"({"schema": "zeroplan.program/1", "model": {"name": "m", "layers": 1, "parameters": 10},
              "runtime": "r", "ranks": 1, "events": [{"allocate": "a", "bytes": 512},
              {"free": "a"}]})"};
}

}  // namespace zeroplan::fuzz
