#pragma once
// What config.json files of single families say beyond what HfFamily holds: each reads its keys
// into the model, or throws InputError where a model is no published one. Private to this room.

#include "presets/hf_families.hpp"

namespace zeroplan {

void falcon_quirks(const JsonObject& config, ModelSpec& model);
void opt_quirks(const JsonObject& config, ModelSpec& model);
void neox_quirks(const JsonObject& config, ModelSpec& model);
void phi_quirks(const JsonObject& config, ModelSpec& model);
void llama_quirks(const JsonObject& config, ModelSpec& model);
void llama4_quirks(const JsonObject& config, ModelSpec& model);
void squared_relu_quirks(const JsonObject& config, ModelSpec& model);
void seed_oss_quirks(const JsonObject& config, ModelSpec& model);
void starcoder2_quirks(const JsonObject& config, ModelSpec& model);
void bloom_quirks(const JsonObject& config, ModelSpec& model);
void glm_quirks(const JsonObject& config, ModelSpec& model);
void olmoe_quirks(const JsonObject& config, ModelSpec& model);
void phimoe_quirks(const JsonObject& config, ModelSpec& model);
void qwen2_moe_quirks(const JsonObject& config, ModelSpec& model);
void cohere_quirks(const JsonObject& config, ModelSpec& model);
void ernie_quirks(const JsonObject& config, ModelSpec& model);
void ernie_moe_quirks(const JsonObject& config, ModelSpec& model);
void afmoe_quirks(const JsonObject& config, ModelSpec& model);
void helium_quirks(const JsonObject& config, ModelSpec& model);
void hy_v3_quirks(const JsonObject& config, ModelSpec& model);
void hyperclovax_quirks(const JsonObject& config, ModelSpec& model);
void internlm3_quirks(const JsonObject& config, ModelSpec& model);
void stablelm_quirks(const JsonObject& config, ModelSpec& model);
void gpt_oss_quirks(const JsonObject& config, ModelSpec& model);

}  // namespace zeroplan
