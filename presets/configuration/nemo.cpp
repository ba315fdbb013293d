// How do NeMo and Megatron-Bridge say a layout? Front door: from_nemo.
#include "presets/configuration/nemo.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/bridge_fields.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/megatron_fields.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Sections whose fields Megatron-LM has as arguments.
constexpr std::string_view sections[] = {"model.", "train.", "ddp.", "optimizer.", "comm_overlap."};

// Fields that NeMo calls something else.
struct Renamed {
  std::string_view field;
  std::string_view argument;
};
constexpr Renamed renamed[] = {{"encoder_seq_length", "seq-length"},
                               {"num_moe_experts", "num-experts"},
                               {"activations_checkpoint_granularity", "recompute-granularity"},
                               {"activations_checkpoint_method", "recompute-method"},
                               {"activations_checkpoint_num_layers", "recompute-num-layers"},
                               {"ub_tp_comm_overlap", "tp-comm-overlap"}};

// What _pretrain_common leaves as it is. The bridges of decoders put no dropout in.
struct Usual {
  std::string_view argument;
  std::string_view value;  // empty: a flag
};
constexpr Usual usual_of_common[] = {{"global-batch-size", "32"}, {"micro-batch-size", "2"},
                                     {"seq-length", "4096"},      {"use-distributed-optimizer", ""},
                                     {"overlap-grad-reduce", ""}, {"overlap-param-gather", ""}};

void add_optimizer(Entries& entries, MegatronFields& out, std::vector<std::string>& notes) {
  const auto name = entries.take("model.optim.name");
  if (name == "mcore_distributed_optim" || name == "distributed_fused_adam") {
    out.put("use-distributed-optimizer", nullptr);
    if (name == "distributed_fused_adam") {
      notes.emplace_back("distributed_fused_adam, which is Apex's, is taken for Megatron-Core's");
    }
  } else if (name && *name != "fused_adam" && *name != "adam" && *name != "adamw") {
    out.put("optimizer", *name);
  }
  const auto of_bridge = entries.take("optimizer.optimizer");
  if (of_bridge) out.put("optimizer", *of_bridge == muon_of_bridge ? "muon" : *of_bridge);
}

// A configuration of overlaps switches those of gradients and parameters on unless it says no,
// whatever `ddp` says (training/comm_overlap.py): with the distributed optimizer, and that decides.
// It chooses the buckets too.
void add_overlaps(Entries& entries, bool base, MegatronFields& out) {
  const bool there =
      std::any_of(entries.list().begin(), entries.list().end(),
                  [](const Entry& entry) { return entry.key.starts_with("comm_overlap."); });
  const std::string_view distributed = "ddp.use_distributed_optimizer";
  if (!there || entries.text(distributed).value_or(base ? "true" : "false") == "false") return;
  for (const std::string_view field : {"overlap_grad_reduce", "overlap_param_gather"}) {
    const auto said = entries.take_if(fmt::format("comm_overlap.{}", field), {"true", "false"});
    for (const char* section : {"ddp", "optimizer"}) {
      entries.take(fmt::format("{}.{}", section, field));
    }
    std::string argument(field);
    std::replace(argument.begin(), argument.end(), '_', '-');
    out.put_or_deny(argument, said != "false");
  }
  const auto bucket = entries.take("comm_overlap.bucket_size");
  if (!out.has("overlap-grad-reduce")) return;
  entries.take("ddp.bucket_size");
  out.put("ddp-bucket-size", bucket.value_or(std::to_string(bucket_of_overlaps)));
}

struct Argument {
  std::string name;
  BridgeValue holds;
};

Argument as_argument(std::string_view field) {
  for (const Renamed& name : renamed) {
    if (name.field == field) return {std::string(name.argument), BridgeValue::value};
  }
  for (const BridgeField& known : bridge_fields) {
    if (known.field.substr(known.field.find('.') + 1) == field) {
      return {std::string(known.argument), known.holds};
    }
  }
  std::string argument(field);
  std::replace(argument.begin(), argument.end(), '_', '-');
  return {argument, BridgeValue::value};
}

void add_field(const Argument& argument, const ConfigValue& value, MegatronFields& out) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const std::string last = text.substr(text.rfind('.') + 1);  // of torch.bfloat16
  if (argument.holds == BridgeValue::negation) {
    if (value == false) out.put(argument.name, nullptr);
  } else if (argument.holds == BridgeValue::backend) {
    out.put(argument.name, last);
  } else if (argument.holds == BridgeValue::dtype) {
    const auto known = std::find_if(std::begin(dtypes), std::end(dtypes),
                                    [&](const Dtype& dtype) { return dtype.torch == last; });
    out.put(argument.name, known == std::end(dtypes) ? text : std::string(known->name));
  } else if (value == true) {
    out.put(argument.name, nullptr);
  } else if (value != false) {
    out.put(argument.name, value);
  } else {
    out.deny(argument.name);
  }
}

// Adds what the fields say as arguments; no argument has the name of a nested field.
void add_fields(Entries& entries, MegatronFields& out) {
  for (const Entry& entry : std::vector<Entry>(entries.list())) {
    const auto section =
        std::find_if(std::begin(sections), std::end(sections),
                     [&](std::string_view name) { return entry.key.starts_with(name); });
    if (section == std::end(sections) || changes_nothing(entry.key, *entries.text(entry.key))) {
      continue;
    }
    const std::string_view field = std::string_view(entry.key).substr(section->size());
    if (field.find('.') != field.npos) continue;
    add_field(as_argument(field == "bias_swiglu_fusion" ? "bias_activation_fusion" : field),
              entry.value, out);
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

void MegatronFields::put(std::string_view argument, ConfigValue value) {
  const auto known = std::find_if(list_.begin(), list_.end(),
                                  [&](const Entry& entry) { return entry.key == argument; });
  if (known == list_.end()) {
    list_.push_back({std::string(argument), std::move(value)});
  } else if (known->value != value) {
    entries_.fail(fmt::format("{} is said twice, and differently", argument));
  }
}

void MegatronFields::put_or_deny(std::string_view flag, bool on) {
  if (on) return put(flag, nullptr);
  deny(flag);
}

bool MegatronFields::has(std::string_view argument) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Entry& entry) { return entry.key == argument; });
}

bool MegatronFields::decided(std::string_view argument) const {
  return has(argument) || std::find(denied_.begin(), denied_.end(), argument) != denied_.end();
}

bool is_of_nemo(const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "model.tensor_model_parallel_size" ||
           entry.key == "model.micro_batch_size" || entry.key == "train.global_batch_size" ||
           entry.key == "train.micro_batch_size" ||
           entry.key == "model.pipeline_model_parallel_size";
  });
}

ImportedConfiguration from_nemo(Entries entries, std::string_view base) {
  const bool common = base == common_recipe;
  if (!base.empty() && !common) {
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
                    "model.pipeline_dtype"});
  const bool masks =
      entries.take_if("model.get_attention_mask_from_fusion", {"true", "false"}) == "false" ||
      entries.take_if("dataset.skip_getting_attention_mask_from_dataset", {"true", "false"}) ==
          "false";
  std::vector<std::string> about_model = entries.take_all(
      {"model", "model.tokenizer.model", "model.max_position_embeddings", "model.bias",
       "model.activation", "model.share_embeddings_and_output_weights", "model.num_query_groups"});
  MegatronFields out(entries);
  read_precision(entries, common, out, notes);
  add_optimizer(entries, out, notes);
  add_overlaps(entries, common, out);
  const bool local = entries.take_if("model.transformer_layer_spec", {local_layers}).has_value();
  if (local) out.put("transformer-impl", "local");
  add_fields(entries, out);
  // The file says no of experts that the model brings, without saying how many there are.
  const std::string_view grouped = "moe-grouped-gemm";
  if (out.decided(grouped) && !out.has(grouped)) out.put(grouped, false);
  if (!masks) out.put("no-create-attention-mask-in-dataloader", nullptr);
  if (out.has("hidden-dropout") == false) out.put("hidden-dropout", "0");
  if (out.has("attention-dropout") == false) out.put("attention-dropout", "0");
  if (common) {
    for (const Usual& usual : usual_of_common) {
      if (out.decided(usual.argument)) continue;
      out.put(usual.argument, usual.value.empty() ? ConfigValue() : ConfigValue(usual.value));
    }
  } else if (!nemo) {
    notes.emplace_back("what the recipe that this changes says is not known here");
  }
  std::vector<Entry> arguments = out.take();
  // Beside selective recompute NeMo takes neither a method nor a number of layers.
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
  result.format = nemo ? "NeMo" : name_of(ConfigurationFormat::megatron_bridge);
  if (devices) result.ranks = *devices * nodes.value_or(1);
  if (result.ranks) {
    result.notes.push_back(fmt::format("it starts {} ranks: as many in --gpus", *result.ranks));
  }
  add_left_over(result, entries);
  return result;
}

}  // namespace zeroplan
