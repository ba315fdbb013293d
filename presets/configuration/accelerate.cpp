// What does an Accelerate file launch? Front doors: to_accelerate, from_accelerate.
#include "presets/configuration/accelerate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cost_model/question/units.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/trainer_entries.hpp"
#include "presets/configuration/trainer_fsdp.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view fsdp = "fsdp_config.";
constexpr std::string_view deepspeed_keys = "deepspeed_config.";

bool says_yes(const std::optional<std::string>& value) {
  return value && lower_case(*value) == "true";
}

// FSDP1 numbers its strategies from 1.
std::string strategy_word(const std::string& said) {
  constexpr std::array<std::string_view, 5> numbered{"full_shard", "shard_grad_op", "no_shard",
                                                     "hybrid_shard", "hybrid_shard_zero2"};
  const auto number = whole(said);
  if (number && *number >= 1 && *number <= std::ssize(numbered)) {
    return std::string(numbered[static_cast<std::size_t>(*number - 1)]);
  }
  return lower_case(said);
}

void add_precision(Entries& entries, std::vector<Entry>& out) {
  const auto precision = entries.take_if("mixed_precision", {"bf16", "fp16", "no", "false"});
  if (precision == "bf16") out.push_back({"bf16", true});
  if (precision == "fp16") out.push_back({"fp16", true});
}

void add_fsdp(Entries& entries, std::vector<Entry>& out) {
  const auto key = [](std::string_view name) { return std::string(fsdp) + std::string(name); };
  const auto strategy = entries.take(key("fsdp_sharding_strategy"));
  out.push_back({"fsdp", strategy ? strategy_word(*strategy) : "true"});
  if (says_yes(entries.take(key("fsdp_offload_params")))) {
    out.push_back({key("cpu_offload"), true});
  }
  for (const char* name : {"fsdp_version", "fsdp_reshard_after_forward", "fsdp_auto_wrap_policy",
                           "fsdp_min_num_params", "fsdp_activation_checkpointing",
                           "fsdp_transformer_layer_cls_to_wrap"}) {
    if (const auto value = entries.take(key(name))) {
      out.push_back({key(std::string_view(name).substr(5)), *value});
    }
  }
  // How parameters arrive, and in what form they are saved.
  for (const char* name :
       {"fsdp_backward_prefetch", "fsdp_forward_prefetch", "fsdp_state_dict_type",
        "fsdp_use_orig_params", "fsdp_sync_module_states", "fsdp_cpu_ram_efficient_loading"}) {
    entries.take(key(name));
  }
}

// Adds what the file says for DeepSpeed: DeepSpeed's own file, or a few of that file's keys.
void add_deepspeed(Entries& entries, std::vector<Entry>& out) {
  const auto key = [](std::string_view name) {
    return std::string(deepspeed_keys) + std::string(name);
  };
  if (const auto file = entries.take(key("deepspeed_config_file"))) {
    out.push_back({"deepspeed", *file});
    return;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> same{
      {{"zero_stage", "deepspeed.zero_optimization.stage"},
       {"offload_optimizer_device", "deepspeed.zero_optimization.offload_optimizer.device"},
       {"offload_param_device", "deepspeed.zero_optimization.offload_param.device"},
       {"gradient_accumulation_steps", "deepspeed.gradient_accumulation_steps"}}};
  for (const auto& [name, theirs] : same) {
    const auto value = entries.take(key(name));
    if (!value || value == "none") continue;
    const auto number = whole(value);
    out.push_back({std::string(theirs), number ? ConfigValue(*number) : ConfigValue(*value)});
  }
  for (const char* name : {"gradient_clipping", "zero3_init_flag", "zero3_save_16bit_model",
                           "deepspeed_multinode_launcher"}) {
    entries.take(key(name));
  }
}

std::vector<Entry> as_trainer(Entries& entries) {
  std::vector<Entry> out;
  add_precision(entries, out);
  const std::string type = entries.take("distributed_type").value_or("NO");
  if (type == "FSDP") {
    add_fsdp(entries, out);
  } else if (type == "DEEPSPEED") {
    add_deepspeed(entries, out);
  } else if (type != "MULTI_GPU" && type != "NO" && type != "false") {
    entries.fail(
        fmt::format("distributed_type {}: must be MULTI_GPU, FSDP or DEEPSPEED; what another "
                    "shards it by is read from its own arguments alone",
                    in_quotes(type)));
  }
  for (const Entry& entry : entries.list()) {
    if (!entry.key.starts_with("parallelism_config.") || entry.value == 1) continue;
    if (!entry.key.ends_with("_size")) continue;
    entries.fail(fmt::format("{}: such a mesh is not read: give --tp, --cp or --hsdp", entry.key));
  }
  return out;
}

bool is_said_in_code(const TypedOption& option, bool steps, bool checkpoints) {
  if (option.flag == "--gradient-accumulation") return !steps;
  if (option.flag == "--recompute") return !checkpoints;
  return option.flag == "--micro-batch" || option.flag == "--global-batch" ||
         option.flag == "--optimizer";
}

}  // namespace

std::vector<Entry> to_accelerate(const Problem& p) {
  const Layout& l = p.layout;
  const Runtime kind = p.runtime.kind;
  const std::int64_t each = std::min(p.cluster.gpus, p.cluster.gpus_per_node);
  const Precision precision = p.training.precision;
  std::vector<Entry> out{{"compute_environment", "LOCAL_MACHINE"},
                         {"distributed_type", kind == Runtime::fsdp2       ? "FSDP"
                                              : kind == Runtime::deepspeed ? "DEEPSPEED"
                                                                           : "MULTI_GPU"},
                         {"mixed_precision", precision == Precision::bf16   ? "bf16"
                                             : precision == Precision::fp16 ? "fp16"
                                                                            : "no"},
                         {"num_machines", ceil_div(p.cluster.gpus, each)},
                         {"num_processes", p.cluster.gpus},
                         {"machine_rank", 0},
                         {"main_training_function", "main"},
                         {"rdzv_backend", "static"},
                         {"same_network", true},
                         {"use_cpu", false}};
  const auto add = [&](std::string_view section, std::string_view key, ConfigValue value) {
    out.push_back({std::string(section) + std::string(key), std::move(value)});
  };
  if (kind == Runtime::fsdp2) {
    add(fsdp, "fsdp_version", 2);
    add(fsdp, "fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    if (const auto layers = layers_to_name(p.model); !layers.empty()) {
      add(fsdp, "fsdp_transformer_layer_cls_to_wrap", std::string(layers));
    }
    add(fsdp, "fsdp_reshard_after_forward", l.zero == ZeroStage::parameters);
    add(fsdp, "fsdp_offload_params", l.offload == Offload::parameters);
    add(fsdp, "fsdp_activation_checkpointing", l.recompute == Recompute::full);
    add(fsdp, "fsdp_cpu_ram_efficient_loading", true);
    add(fsdp, "fsdp_state_dict_type", "SHARDED_STATE_DICT");
  } else if (kind == Runtime::deepspeed) {
    const bool optimizer = l.offload == Offload::optimizer || l.offload == Offload::parameters;
    add(deepspeed_keys, "zero_stage", static_cast<std::int64_t>(l.zero));
    add(deepspeed_keys, "gradient_accumulation_steps", micro_batches(p));
    add(deepspeed_keys, "offload_optimizer_device", optimizer ? "cpu" : "none");
    add(deepspeed_keys, "offload_param_device", l.offload == Offload::parameters ? "cpu" : "none");
    add(deepspeed_keys, "zero3_init_flag", l.zero == ZeroStage::parameters);
  }
  return out;
}

bool is_of_accelerate(const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "distributed_type" || entry.key == "compute_environment";
  });
}

ImportedConfiguration from_accelerate(Entries entries, const std::vector<Entry>& arguments) {
  const std::string where = entries.where();
  const bool whole = is_of_trainer(arguments);  // else the script is code of its own
  const auto ranks = entries.take_count("num_processes");
  const bool steps = entries.has(std::string(deepspeed_keys) + "gradient_accumulation_steps");
  const bool checkpoints =
      says_yes(entries.text(std::string(fsdp) + "fsdp_activation_checkpointing"));
  std::vector<Entry> said = as_trainer(entries);
  for (const Entry& argument : arguments) {
    const bool known = std::any_of(said.begin(), said.end(),
                                   [&](const Entry& entry) { return entry.key == argument.key; });
    if (!known) said.push_back(argument);
  }
  ImportedConfiguration result = from_trainer(Entries(std::move(said), where));
  std::erase_if(result.options, [&](const TypedOption& option) {
    return !whole && is_said_in_code(option, steps, checkpoints);
  });
  result.format = "accelerate";
  result.ranks = ranks;
  if (ranks) result.notes.push_back(fmt::format("it starts {} ranks: as many in --gpus", *ranks));
  entries.take_all({"compute_environment", "debug", "downcast_bf16", "enable_cpu_affinity",
                    "machine_rank", "main_process_ip", "main_process_port",
                    "main_training_function", "num_machines", "rdzv_backend", "same_network",
                    "tpu_env", "tpu_use_cluster", "tpu_use_sudo", "use_cpu", "gpu_ids"});
  add_left_over(result, entries);
  return result;
}

}  // namespace zeroplan
