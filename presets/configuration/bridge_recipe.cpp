// Which recipe of Megatron-Bridge trains so? Front door: write_bridge_recipe.
#include "presets/configuration/bridge_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "presets/catalog.hpp"
#include "presets/configuration/bridge_fields.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/megatron_fields.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// What the catalog says of a model of this name; empty where it has none, or the hub does not.
std::string id_on_hub(const std::string& name) {
  try {
    return find_model(name).huggingface;
  } catch (const InputError&) {
    return "";
  }
}

const ConfigValue* find(const std::vector<Entry>& arguments, std::string_view argument) {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const Entry& entry) { return entry.key == argument; });
  return found == arguments.end() ? nullptr : &found->value;
}

// Texts that are numbers are written as numbers.
std::string written(const ConfigValue& value) {
  if (!value.is_string()) return python_value(value);
  const std::string text = value.get<std::string>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole_of_it = error == std::errc{} && end == text.data() + text.size();
  return whole_of_it ? text : python_value(value);
}

std::string torch_type(const std::string& name) {
  const auto known = std::find_if(std::begin(dtypes), std::end(dtypes),
                                  [&](const Dtype& dtype) { return dtype.name == name; });
  return fmt::format("torch.{}", known->torch);
}

// The text of a field's value; empty: nothing is written.
std::string value_of(const BridgeField& field, const ConfigValue* said) {
  switch (field.holds) {
    case BridgeValue::flag:
      return said != nullptr ? "True" : "False";
    case BridgeValue::negation:
      return said != nullptr ? "False" : "True";
    case BridgeValue::backend:
      return said != nullptr ? fmt::format("AttnBackend.{}", said->get<std::string>()) : "";
    case BridgeValue::dtype:
      return said != nullptr ? torch_type(said->get<std::string>()) : "";
    case BridgeValue::value:
      break;
  }
  if (said != nullptr) return written(*said);
  if (field.otherwise.empty() || field.otherwise == "None") return std::string(field.otherwise);
  return written(std::string(field.otherwise));
}

// Megatron-LM's arguments where Megatron-Bridge has another word for one.
std::vector<Entry> arguments_of(const Problem& p) {
  std::vector<Entry> arguments = to_megatron_fields(p);
  for (Entry& argument : arguments) {
    if (argument.key == "no-bias-gelu-fusion") argument.key = "no-bias-swiglu-fusion";
    if (argument.key == "optimizer" && argument.value == "muon") argument.value = muon_of_bridge;
  }
  // Graphs of layers are Transformer Engine's alone in Megatron-Bridge (utils/cuda_graph.py).
  std::erase_if(arguments, [](const Entry& argument) {
    return argument.key == "cuda-graph-impl" && argument.value == "local";
  });
  const bool said = find(arguments, "use-distributed-optimizer") != nullptr;
  if (p.layout.zero != ZeroStage::none && !said) {
    arguments.push_back({"use-distributed-optimizer", nullptr});  // Megatron-FSDP asks for it
  }
  return arguments;
}

// What follows from a field for the layers, the graphs and the host.
std::vector<std::string> consequences(const std::vector<Entry>& arguments) {
  std::vector<std::string> lines;
  if (find(arguments, "use-distributed-optimizer") == nullptr) {
    lines.emplace_back("optimizer.use_distributed_optimizer = False");
    lines.emplace_back("optimizer.overlap_param_gather = False");
  }
  if (const ConfigValue* format = find(arguments, "ckpt-format")) {
    lines.push_back(fmt::format("checkpoint.ckpt_format = {}", python_value(*format)));
  }
  if (find(arguments, "optimizer-cpu-offload") != nullptr) {
    lines.emplace_back("optimizer.optimizer_offload_fraction = 1.0");
  }
  const ConfigValue* graphs = find(arguments, "cuda-graph-impl");
  if (graphs != nullptr) lines.emplace_back("rng.te_rng_tracker = True");
  if (graphs != nullptr && *graphs == "full_iteration") {
    lines.emplace_back("rerun_state_machine.check_for_nan_in_loss = False");
    lines.emplace_back("ddp.check_for_nan_in_grad = False");
  }
  return lines;
}

// Fields of CommOverlapConfig, none where no overlap of its own is on. It would choose larger
// buckets than Megatron-Core, so it is told which.
std::string overlaps(const Problem& p, const std::vector<Entry>& arguments) {
  constexpr std::string_view own[] = {"tp-comm-overlap", "overlap-moe-expert-parallel-comm",
                                      "delay-wgrad-compute"};
  const auto has = [&](std::string_view name) { return find(arguments, name) != nullptr; };
  if (std::none_of(std::begin(own), std::end(own), has)) return "";
  std::string text;
  for (const std::string_view name :
       {own[0], own[1], own[2], std::string_view("overlap-grad-reduce"),
        std::string_view("overlap-param-gather")}) {
    std::string field(name);
    std::replace(field.begin(), field.end(), '-', '_');
    text += fmt::format("        {}={},\n", field, has(name) ? "True" : "False");
  }
  if (has("overlap-grad-reduce") && p.layout.zero != ZeroStage::none) {
    text += fmt::format("        bucket_size={},\n", p.runtime.megatron.bucket_elements(p.layout));
  }
  return text;
}

std::string model_lines(const Problem& p, bool local) {
  const std::string id = id_on_hub(p.model.name);
  std::string text;
  if (id.empty()) {
    text += fmt::format("    # {}: its id on the hub or its folder is yours to add\n",
                        printable(p.model.name));
  }
  text += fmt::format(
      "    cfg.model = "
      "AutoBridge.from_hf_pretrained({}).to_megatron_provider(load_weights=False)\n",
      python_value(id.empty() ? "MODEL" : id));
  if (local) text += fmt::format("    cfg.model.transformer_layer_spec = {}\n", local_layers);
  text += "    cfg.tokenizer.tokenizer_type = \"NullTokenizer\"\n";
  text += fmt::format("    cfg.tokenizer.vocab_size = {}\n", p.model.vocab_size);
  return text;
}

std::string imports(bool overlapping, bool local) {
  std::string text = "import torch\n\nfrom megatron.bridge import AutoBridge\n";
  if (local) {
    text += fmt::format("from megatron.bridge.models.gpt_provider import {}\n", local_layers);
  }
  text += fmt::format("from megatron.bridge.recipes.common import {}\n", common_recipe);
  if (overlapping) {
    text += "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n";
  }
  return text +
         "from megatron.bridge.training.config import ConfigContainer\n"
         "from megatron.bridge.training.gpt_step import forward_step\n"
         "from megatron.bridge.training.mixed_precision import MixedPrecisionConfig\n"
         "from megatron.bridge.training.pretrain import pretrain\n"
         "from megatron.core.transformer.enums import AttnBackend\n\n\n";
}

}  // namespace

std::string write_bridge_recipe(const Problem& p) {
  const std::vector<Entry> arguments = arguments_of(p);
  const ConfigValue* layers = find(arguments, "transformer-impl");
  const bool local = layers != nullptr && *layers == "local";
  const std::string overlap = overlaps(p, arguments);
  std::string text = imports(!overlap.empty(), local);
  text += "def plan() -> ConfigContainer:\n";
  text += fmt::format("    cfg = {}()  # data, learning rate and steps\n", common_recipe);
  text += model_lines(p, local);
  for (const BridgeField& field : bridge_fields) {
    const ConfigValue* said = find(arguments, field.argument);
    if (field.of_experts && !p.model.moe && said == nullptr) continue;
    const std::string value = value_of(field, said);
    if (!value.empty()) text += fmt::format("    cfg.{} = {}\n", field.field, value);
  }
  const bool masks = find(arguments, "no-create-attention-mask-in-dataloader") == nullptr;
  text += fmt::format("    cfg.dataset.seq_length = {}\n", p.training.sequence_length);
  text += fmt::format("    cfg.dataset.skip_getting_attention_mask_from_dataset = {}\n",
                      masks ? "False" : "True");
  for (const std::string& line : consequences(arguments)) text += "    cfg." + line + "\n";
  text += fmt::format("    cfg.mixed_precision = MixedPrecisionConfig(\n        {},\n    )\n",
                      fmt::join(precision_keywords(arguments), ",\n        "));
  if (!overlap.empty()) {
    text += fmt::format("    cfg.comm_overlap = CommOverlapConfig(\n{}    )\n", overlap);
  }
  return text +
         "    return cfg\n\n\nif __name__ == \"__main__\":\n"
         "    pretrain(config=plan(), forward_step_func=forward_step)\n";
}

}  // namespace zeroplan
