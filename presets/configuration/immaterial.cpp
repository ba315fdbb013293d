// Which keys change neither memory nor time? Front door: changes_nothing.
#include <algorithm>
#include <iterator>

#include "presets/configuration/entries.hpp"

namespace zeroplan {
namespace {

// First names of nested keys: schedules of the rate, data, what is logged and saved.
constexpr std::string_view immaterial_sections[] = {"checkpoint",
                                                    "checkpoints",
                                                    "comms_logger",
                                                    "csv_monitor",
                                                    "data_stages",
                                                    "dataloader",
                                                    "dataset",
                                                    "datasets",
                                                    "defaults",
                                                    "exp_manager",
                                                    "experiment",
                                                    "flops_profiler",
                                                    "general",
                                                    "hydra",
                                                    "job",
                                                    "lighteval",
                                                    "logger",
                                                    "logging",
                                                    "lr_scheduler",
                                                    "metrics",
                                                    "profiling",
                                                    "rerun_state_machine",
                                                    "rng",
                                                    "scheduler",
                                                    "special_tokens",
                                                    "tensorboard",
                                                    "tokenizer",
                                                    "validation",
                                                    "wandb"};

// Last names of keys, dashes written as underscores.
constexpr std::string_view immaterial_names[] = {"accelerator",
                                                 "adam_epsilon",
                                                 "bf16_full_eval",
                                                 "betas",
                                                 "chat_template",
                                                 "ckpt_format",
                                                 "data_path",
                                                 "dataloader_num_workers",
                                                 "dataset",
                                                 "dataset_prepared_path",
                                                 "dataset_text_field",
                                                 "ddp_timeout",
                                                 "distributed_backend",
                                                 "distributed_timeout_minutes",
                                                 "do_eval",
                                                 "do_train",
                                                 "early_stopping_patience",
                                                 "eps",
                                                 "explicit_log_dir",
                                                 "hf_assets_path",
                                                 "init_method_std",
                                                 "learning_rate",
                                                 "library",
                                                 "load",
                                                 "logger",
                                                 "lr",
                                                 "lr_scheduler",
                                                 "max_lr",
                                                 "max_samples",
                                                 "max_steps",
                                                 "memory_breakdown",
                                                 "merge_file",
                                                 "min_lr",
                                                 "model_revision",
                                                 "name",
                                                 "nvme_path",
                                                 "num_epochs",
                                                 "num_train_epochs",
                                                 "num_workers",
                                                 "output_dir",
                                                 "overwrite_cache",
                                                 "overwrite_output_dir",
                                                 "per_device_eval_batch_size",
                                                 "pin_memory",
                                                 "precompute_float8_dynamic_scale_for_fsdp",
                                                 "preprocessing_num_workers",
                                                 "remove_unused_columns",
                                                 "restore_from_path",
                                                 "resume_from_checkpoint",
                                                 "rotary_base",
                                                 "rotary_percent",
                                                 "run_name",
                                                 "save",
                                                 "seed",
                                                 "split",
                                                 "steps",
                                                 "steps_per_print",
                                                 "template",
                                                 "tf32",
                                                 "train_iters",
                                                 "train_samples",
                                                 "train_steps",
                                                 "trust_remote_code",
                                                 "use_mcore_models",
                                                 "val_set_size",
                                                 "vocab_file",
                                                 "wall_clock_breakdown",
                                                 "weight_decay",
                                                 "limit_test_batches",
                                                 "zero_allow_untested_optimizer"};

constexpr std::string_view beginnings[] = {"adam_beta",  "eval_",     "fp8_amax_", "hub_",
                                           "log_",       "logging_",  "lr_",       "manual_gc",
                                           "push_to",    "report_to", "save_",     "tensorboard_",
                                           "tokenizer_", "wandb_",    "warmup",    "weight_decay_"};

// How fp16 scales its loss.
constexpr std::string_view scale[] = {"fp16.hysteresis",     "fp16.initial_scale_power",
                                      "fp16.loss_scale",     "fp16.loss_scale_window",
                                      "fp16.min_loss_scale", "fp16.auto_cast"};

// A key at a value that is so anyway.
struct UsualValue {
  std::string_view name;
  std::string_view value;
};
constexpr UsualValue usual[] = {{"zero_optimization.contiguous_gradients", "true"},
                                {"zero_optimization.allgather_partitions", "true"},
                                {"zero_optimization.reduce_scatter", "true"},
                                {"zero_optimization.round_robin_gradients", "false"},
                                {"sample_packing", "true"},
                                {"packing", "true"},
                                {"trainer.accumulate_grad_batches", "1"},
                                {"fsdp_config.limit_all_gathers", "true"},
                                {"fsdp_config.use_orig_params", "true"},
                                {"fsdp_config.use_orig_params", "false"},
                                {"fsdp_config.sync_module_states", "true"},
                                {"fsdp_config.sync_module_states", "false"},
                                {"fsdp_config.cpu_ram_efficient_loading", "true"},
                                {"fsdp_config.cpu_ram_efficient_loading", "false"},
                                {"fsdp_config.backward_prefetch", "backward_pre"},
                                {"fsdp_config.forward_prefetch", "false"},
                                {"load_in_8bit", "false"},
                                {"load_in_4bit", "false"},
                                {"use_peft", "false"},
                                {"gradient_checkpointing_kwargs.use_reentrant", "false"},
                                {"gradient_checkpointing_kwargs.use_reentrant", "true"}};

// The norm that gradients are clipped to, which is taken for given unless it is none.
constexpr std::string_view norms[] = {"clip_grad", "gradient_clip_val", "gradient_clipping",
                                      "max_grad_norm", "max_norm"};

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

}  // namespace

bool changes_nothing(std::string_view key, std::string_view value) {
  std::string text(key);
  std::replace(text.begin(), text.end(), '-', '_');
  const std::string_view all = text;
  const std::size_t dot = all.find('.');
  if (contains(immaterial_sections, all.substr(0, dot))) return true;
  const bool as_usual = std::any_of(std::begin(usual), std::end(usual), [&](const UsualValue& u) {
    return u.name == all && u.value == value;
  });
  if (as_usual || contains(scale, all)) return true;
  const std::string_view name = all.substr(all.rfind('.') + 1);
  if (contains(norms, name))
    return value == "auto" || value.find_first_of("123456789") != value.npos;
  return contains(immaterial_names, name) ||
         std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view word) { return name.starts_with(word); });
}

}  // namespace zeroplan
