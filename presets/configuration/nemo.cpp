// How do NeMo and Megatron-Bridge say a layout? Front door: from_nemo.
#include "presets/configuration/nemo.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/mapping.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Sections whose fields Megatron-LM has as arguments.
constexpr std::string_view sections[] = {"model.", "train.", "ddp.", "optimizer.", "comm_overlap."};

// Fields that the arguments call something else.
struct Renamed {
  std::string_view field;
  std::string_view argument;
};
constexpr Renamed renamed[] = {
    {"encoder_seq_length", "seq-length"},
    {"num_moe_experts", "num-experts"},
    {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"activations_checkpoint_granularity", "recompute-granularity"},
    {"activations_checkpoint_method", "recompute-method"},
    {"activations_checkpoint_num_layers", "recompute-num-layers"},
    {"ub_tp_comm_overlap", "tp-comm-overlap"}};

// Fields that are on unless they say no, and the arguments that say it.
constexpr Renamed switched_off[] = {
    {"gradient_accumulation_fusion", "no-gradient-accumulation-fusion"},
    {"masked_softmax_fusion", "no-masked-softmax-fusion"},
    {"bias_swiglu_fusion", "no-bias-swiglu-fusion"},
    {"bias_activation_fusion", "no-bias-swiglu-fusion"}};

// What training/mixed_precision.py calls a recipe of precision.
struct PrecisionName {
  std::string_view name;
  std::string_view format;  // bf16 or fp16; empty: fp32
  std::string_view fp8_recipe;
};
constexpr PrecisionName precisions[] = {
    {"32", "", ""},
    {"32-true", "", ""},
    {"bf16", "bf16", ""},
    {"bf16-mixed", "bf16", ""},
    {"bf16_mixed", "bf16", ""},
    {"16", "fp16", ""},
    {"16-mixed", "fp16", ""},
    {"fp16_mixed", "fp16", ""},
    {"bf16_with_fp8_delayed_scaling_mixed", "bf16", "delayed"},
    {"bf16_with_fp8_current_scaling_mixed", "bf16", "tensorwise"},
    {"bf16_with_mxfp8_mixed", "bf16", "mxfp8"},
    {"bf16_with_fp8_subchannel_scaling_mixed", "bf16", "blockwise"}};

// What _pretrain_common leaves as it is. The bridges of decoders put no dropout in.
struct Usual {
  std::string_view argument;
  std::string_view value;  // empty: a flag
};
constexpr std::string_view common_base = "_pretrain_common";
constexpr Usual common[] = {{"global-batch-size", "32"}, {"micro-batch-size", "2"},
                            {"seq-length", "4096"},      {"use-distributed-optimizer", ""},
                            {"overlap-grad-reduce", ""}, {"overlap-param-gather", ""}};

class Arguments {
 public:
  explicit Arguments(Entries& entries) : entries_(entries) {}

  void put(std::string_view argument, ConfigValue value) {
    const auto known = std::find_if(list_.begin(), list_.end(),
                                    [&](const Entry& entry) { return entry.key == argument; });
    if (known == list_.end()) {
      list_.push_back({std::string(argument), std::move(value)});
    } else if (known->value != value) {
      entries_.fail(fmt::format("{} is said twice, and differently", argument));
    }
  }
  bool has(std::string_view argument) const {
    return std::any_of(list_.begin(), list_.end(),
                       [&](const Entry& entry) { return entry.key == argument; });
  }
  void drop(std::string_view argument) {
    std::erase_if(list_, [&](const Entry& entry) { return entry.key == argument; });
  }
  std::vector<Entry> take() { return std::move(list_); }

 private:
  Entries& entries_;
  std::vector<Entry> list_;
};

void add_precision(Entries& entries, Arguments& out) {
  auto name = entries.take("mixed_precision");
  if (!name) name = entries.take("trainer.precision");
  const std::string said = name.value_or("bf16_mixed");
  const auto known = std::find_if(std::begin(precisions), std::end(precisions),
                                  [&](const PrecisionName& p) { return p.name == said; });
  if (known == std::end(precisions)) {
    entries.fail(
        fmt::format("precision {}: not one that is read, such as bf16_mixed", in_quotes(said)));
  }
  if (!known->format.empty()) out.put(known->format, nullptr);
  std::string_view recipe = known->fp8_recipe;
  const auto fp8 = entries.take("model.fp8");
  if (recipe.empty() && fp8 && *fp8 != "false") recipe = "delayed";
  for (const char* key : {"model.fp8_hybrid", "model.fp8_e4m3"}) entries.take(key);
  if (recipe.empty()) return;
  out.put("fp8-format", "hybrid");
  out.put("fp8-recipe", recipe);
  if (!known->fp8_recipe.empty()) out.put("fp8-param-gather", nullptr);
}

void add_optimizer(Entries& entries, Arguments& out, std::vector<std::string>& notes) {
  const auto name = entries.take("model.optim.name");
  if (name == "mcore_distributed_optim" || name == "distributed_fused_adam") {
    out.put("use-distributed-optimizer", nullptr);
    if (name == "distributed_fused_adam") {
      notes.emplace_back("distributed_fused_adam, which is Apex's, is taken for Megatron-Core's");
    }
  } else if (name && *name != "fused_adam" && *name != "adam" && *name != "adamw") {
    out.put("optimizer", *name);
  }
  entries.take_if("optimizer.optimizer", {"adam"});
  if (entries.take_if("ddp.grad_reduce_in_fp32", {"true", "false"}) == "false") {
    out.put("grad-reduce-in-bf16", nullptr);
  }
}

std::string as_argument(std::string_view field) {
  for (const Renamed& name : renamed) {
    if (name.field == field) return std::string(name.argument);
  }
  std::string argument(field);
  std::replace(argument.begin(), argument.end(), '_', '-');
  return argument;
}

// Of nested fields no argument has the name.
void add_fields(Entries& entries, Arguments& out) {
  for (const Entry& entry : std::vector<Entry>(entries.list())) {
    const auto section =
        std::find_if(std::begin(sections), std::end(sections),
                     [&](std::string_view name) { return entry.key.starts_with(name); });
    if (section == std::end(sections) || changes_nothing(entry.key, *entries.text(entry.key))) {
      continue;
    }
    const std::string_view field = std::string_view(entry.key).substr(section->size());
    if (field.find('.') != field.npos) continue;
    const auto off = std::find_if(std::begin(switched_off), std::end(switched_off),
                                  [&](const Renamed& name) { return name.field == field; });
    if (off != std::end(switched_off)) {
      if (entry.value == false) out.put(off->argument, nullptr);
    } else if (entry.value == true) {
      out.put(as_argument(field), nullptr);
    } else if (entry.value != false) {
      out.put(as_argument(field), entry.value);
    }
    entries.take(entry.key);
  }
  for (const char* key : {"dataset.seq_length", "dataset.sequence_length"}) {
    if (const auto length = entries.take_count(key)) out.put("seq-length", *length);
  }
}

void require_usual(const Entries& entries, bool nemo) {
  for (const char* key : {"model.peft.peft_scheme", "peft", "model.peft", "peft.dim"}) {
    const auto scheme = entries.text(key);
    if (!scheme || scheme == "none" || scheme == "null") continue;
    entries.fail(fmt::format("{} {}: adapters are not modelled", key, in_quotes(*scheme)));
  }
  if (nemo && entries.text("model.megatron_amp_O2").value_or("false") != "true") {
    entries.fail("model.megatron_amp_O2 false: fp32 weights under autocast are not modelled");
  }
}

}  // namespace

bool is_of_nemo(const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "model.tensor_model_parallel_size" ||
           entry.key == "model.micro_batch_size" || entry.key == "train.global_batch_size" ||
           entry.key == "train.micro_batch_size" ||
           entry.key == "model.pipeline_model_parallel_size";
  });
}

ImportedConfiguration from_nemo(Entries entries, std::string_view base) {
  if (!base.empty() && base != common_base) {
    entries.fail(fmt::format("{}() says the rest, and nothing is run: write its settings out",
                             printable(base)));
  }
  const bool nemo = std::any_of(entries.list().begin(), entries.list().end(),
                                [](const Entry& e) { return e.key.starts_with("trainer."); });
  require_usual(entries, nemo);
  std::vector<std::string> notes;
  const auto devices = entries.take_count("trainer.devices");
  const auto nodes = entries.take_count("trainer.num_nodes");
  entries.take_all({"model.mcore_gpt", "model.megatron_amp_O2", "model.transformer_engine",
                    "model.pipeline_dtype", "model.attention_backend"});
  const bool masks =
      entries.take_if("model.get_attention_mask_from_fusion", {"true", "false"}) == "false";
  std::vector<std::string> about_model = entries.take_all(
      {"model", "model.tokenizer.model", "model.max_position_embeddings", "model.bias",
       "model.activation", "model.share_embeddings_and_output_weights", "model.num_query_groups"});
  Arguments out(entries);
  add_precision(entries, out);
  add_optimizer(entries, out, notes);
  add_fields(entries, out);
  if (!masks) out.put("no-create-attention-mask-in-dataloader", nullptr);
  if (out.has("hidden-dropout") == false) out.put("hidden-dropout", "0");
  if (out.has("attention-dropout") == false) out.put("attention-dropout", "0");
  std::vector<Entry> arguments = out.take();
  const auto has = [&](std::string_view name) {
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const Entry& entry) { return entry.key == name; });
  };
  if (base == common_base) {
    for (const Usual& usual : common) {
      if (has(usual.argument)) continue;
      arguments.push_back({std::string(usual.argument),
                           usual.value.empty() ? ConfigValue() : ConfigValue(usual.value)});
    }
  } else if (!nemo) {
    notes.emplace_back("what the recipe that this changes says is not known here");
  }
  // NeMo takes neither beside selective recompute.
  const bool selective = std::any_of(arguments.begin(), arguments.end(), [](const Entry& e) {
    return e.key == "recompute-granularity" && e.value == "selective";
  });
  if (selective) {
    std::erase_if(arguments, [](const Entry& e) {
      return e.key == "recompute-method" || e.key == "recompute-num-layers";
    });
  }
  ImportedConfiguration result = from_megatron(Entries(std::move(arguments), entries.where()));
  // The names of a model's parts are not Megatron-LM's.
  result.model_config.clear();
  result.notes = std::move(notes);
  result.about_model.insert(result.about_model.end(), about_model.begin(), about_model.end());
  result.format = nemo ? "NeMo" : "Megatron-Bridge";
  if (devices) result.ranks = *devices * nodes.value_or(1);
  if (result.ranks) {
    result.notes.push_back(fmt::format("it starts {} ranks: as many in --gpus", *result.ranks));
  }
  add_left_over(result, entries);
  return result;
}

}  // namespace zeroplan
