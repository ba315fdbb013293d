// What does Megatron-Bridge call a precision? Front doors: read_precision, precision_keywords.
#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/megatron_fields.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

struct Recipe {
  std::string_view name;
  std::string_view format;      // bf16 or fp16; empty: fp32
  std::string_view fp8_recipe;  // empty: none
  bool fp8_param_gather = false;
  std::int64_t wide_at_start = 0;  // layers in 16 bits
  std::int64_t wide_at_end = 0;
  bool fp4 = false;
};
constexpr Recipe recipes[] = {
    {"32", "", ""},
    {"32-true", "", ""},
    {"bf16", "bf16", ""},
    {"bf16-mixed", "bf16", ""},
    {"bf16_mixed", "bf16", ""},
    {"16", "fp16", ""},
    {"16-mixed", "fp16", ""},
    {"fp16_mixed", "fp16", ""},
    {"bf16_with_fp8_delayed_scaling_mixed", "bf16", "delayed", true},
    {"bf16_with_fp8_current_scaling_mixed", "bf16", "tensorwise", true, 1, 1},
    {"nemotron_h_bf16_with_fp8_current_scaling_mixed", "bf16", "tensorwise", true, 2, 2},
    {"nanov2_bf16_with_fp8_current_scaling_mixed", "bf16", "tensorwise", true, 2, 2},
    {"bf16_with_mxfp8_mixed", "bf16", "mxfp8", true},
    {"bf16_with_fp8_subchannel_scaling_mixed", "bf16", "blockwise"},
    {"bf16_with_nvfp4_mixed", "bf16", "", false, 0, 0, true},
    {"nemotron_3_super_bf16_with_nvfp4_mixed", "bf16", "", false, 0, 14, true}};

// `MixedPrecisionConfig(...)`, whose fields say all.
constexpr Recipe own_recipe{"", "", ""};

Recipe recipe_of(Entries& entries, const std::optional<std::string>& said, bool fields) {
  if (!said && fields) return own_recipe;
  std::string name = said.value_or("bf16_mixed");
  if (name.ends_with("()")) name.resize(name.size() - 2);  // the function that makes it
  const auto known = std::find_if(std::begin(recipes), std::end(recipes),
                                  [&](const Recipe& recipe) { return recipe.name == name; });
  if (known != std::end(recipes)) return *known;
  entries.fail(
      fmt::format("precision {}: not one that is read, such as bf16_mixed", in_quotes(name)));
}

// A field of the configuration itself, which is so where the file does not say it.
bool field(Entries& entries, std::string_view name, bool otherwise) {
  const auto said = entries.take_if(fmt::format("mixed_precision.{}", name), {"true", "false"});
  return said ? *said == "true" : otherwise;
}

// Its numbers of layers are those of the recipe, and 0 where none is: not Megatron-LM's own.
void read_ends(Entries& entries, const Recipe& recipe, MegatronFields& out) {
  const bool on = field(entries, "first_last_layers_bf16", recipe.wide_at_end > 0);
  const auto number = [&](std::string_view name, std::int64_t otherwise) {
    return entries.take(fmt::format("mixed_precision.{}", name))
        .value_or(fmt::format("{}", otherwise));
  };
  const std::string at_start = number("num_layers_at_start_in_bf16", recipe.wide_at_start);
  const std::string at_end = number("num_layers_at_end_in_bf16", recipe.wide_at_end);
  if (!on) return;
  out.put("first-last-layers-bf16", nullptr);
  out.put("num-layers-at-start-in-bf16", at_start);
  out.put("num-layers-at-end-in-bf16", at_end);
}

}  // namespace

void read_precision(Entries& entries,
                    bool base,
                    MegatronFields& out,
                    std::vector<std::string>& notes) {
  const auto name = entries.take("mixed_precision");
  const auto of_nemo = entries.take("trainer.precision");
  const bool fields =
      std::any_of(entries.list().begin(), entries.list().end(),
                  [](const Entry& entry) { return entry.key.starts_with("mixed_precision."); });
  const Recipe recipe = recipe_of(entries, name ? name : of_nemo, fields && !base);
  entries.take_all({"mixed_precision.params_dtype", "mixed_precision.pipeline_dtype",
                    "mixed_precision.autocast_dtype", "mixed_precision.autocast_enabled",
                    "mixed_precision.fp32", "mixed_precision.fp4_recipe",
                    "mixed_precision.reuse_grad_buf_for_mxfp8_param_ag"});
  const bool asks_fp16 = entries.text("mixed_precision.fp16") == "true";
  const bool fp16 = field(entries, "fp16", recipe.format == "fp16");
  const bool bf16 = field(entries, "bf16", recipe.format == "bf16" && !asks_fp16);
  if (bf16 || fp16) out.put(bf16 ? "bf16" : "fp16", nullptr);
  const auto own_fp8 = entries.take("mixed_precision.fp8");
  const auto own_recipe = entries.take("mixed_precision.fp8_recipe");
  const auto of_model = entries.take("model.fp8");
  for (const char* key : {"model.fp8_hybrid", "model.fp8_e4m3"}) entries.take(key);
  const bool named = !recipe.fp8_recipe.empty();
  const bool fp8 = own_fp8 || named || (of_model && *of_model != "false");
  if (fp8) out.put("fp8-format", "hybrid");
  const std::string_view usual = named ? recipe.fp8_recipe : own_fp8 ? "tensorwise" : "delayed";
  if (own_recipe || fp8) out.put("fp8-recipe", own_recipe.value_or(std::string(usual)));
  if (field(entries, "fp8_param_gather", recipe.fp8_param_gather)) {
    out.put("fp8-param-gather", nullptr);
  }
  if (field(entries, "fp8_dot_product_attention", false)) {
    out.put("fp8-dot-product-attention", nullptr);
  }
  if (entries.take("mixed_precision.fp4") || recipe.fp4) out.put("fp4-format", "e2m1");
  read_ends(entries, recipe, out);
  // What the precision says of the reduction overwrites what else says it.
  const bool in_16_bits =
      !field(entries, "grad_reduce_in_fp32", of_nemo || recipe.format != "fp16");
  const auto of_ddp = entries.take_if("ddp.grad_reduce_in_fp32", {"true", "false"});
  const bool decides = base || name || fields;
  if (decides ? in_16_bits : of_ddp == "false") out.put("grad-reduce-in-bf16", nullptr);
  if (decides && of_ddp && (of_ddp == "false") != in_16_bits) {
    notes.emplace_back("ddp.grad_reduce_in_fp32 is overwritten by the mixed precision's");
  }
}

std::vector<std::string> precision_keywords(const std::vector<Entry>& arguments) {
  const auto find = [&](std::string_view argument) {
    return std::find_if(arguments.begin(), arguments.end(),
                        [&](const Entry& entry) { return entry.key == argument; });
  };
  const auto has = [&](std::string_view argument) { return find(argument) != arguments.end(); };
  const std::string_view dtype = has("bf16")   ? "torch.bfloat16"
                                 : has("fp16") ? "torch.float16"
                                               : "torch.float32";
  std::vector<std::string> list;
  list.push_back(fmt::format("bf16={}", has("bf16") ? "True" : "False"));
  list.push_back(fmt::format("fp16={}", has("fp16") ? "True" : "False"));
  list.push_back(fmt::format("params_dtype={}", dtype));
  list.push_back(fmt::format("pipeline_dtype={}", dtype));
  list.push_back(
      fmt::format("grad_reduce_in_fp32={}", has("grad-reduce-in-bf16") ? "False" : "True"));
  const std::string recipe =
      has("fp8-recipe") ? find("fp8-recipe")->value.get<std::string>() : "delayed";
  const bool fp8 = has("fp8-format");
  if (fp8) list.push_back(fmt::format("fp8=\"{}\"", recipe == "mxfp8" ? "e4m3" : "hybrid"));
  if (fp8 || has("fp8-recipe")) list.push_back(fmt::format("fp8_recipe=\"{}\"", recipe));
  if (has("fp8-param-gather")) list.emplace_back("fp8_param_gather=True");
  if (has("first-last-layers-bf16")) {
    list.emplace_back("first_last_layers_bf16=True");
    for (const char* end : {"start", "end"}) {
      const auto said = find(fmt::format("num-layers-at-{}-in-bf16", end));
      list.push_back(fmt::format("num_layers_at_{}_in_bf16={}", end,
                                 said != arguments.end() ? said->value.get<std::string>() : "1"));
    }
  }
  if (has("fp8-dot-product-attention")) list.emplace_back("fp8_dot_product_attention=True");
  if (fp8 && recipe == "mxfp8" && has("fp8-param-gather") && !has("use-megatron-fsdp")) {
    list.emplace_back("reuse_grad_buf_for_mxfp8_param_ag=True");  // else refused
  }
  if (has("fp4-format")) list.emplace_back("fp4=\"e2m1\"");
  return list;
}

}  // namespace zeroplan
