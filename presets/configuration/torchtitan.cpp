// How does torchtitan's TOML say a layout? Front doors: to_torchtitan, from_torchtitan.
#include <fmt/format.h>

#include "cost_model/question/units.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/torchtitan_float8.hpp"
#include "presets/configuration/torchtitan_python.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

struct Name {
  std::string_view ours;
  std::string_view theirs;
};
constexpr Name schedules[] = {{"gpipe", "GPipe"},
                              {"1f1b", "1F1B"},
                              {"interleaved", "Interleaved1F1B"},
                              {"zb-v", "ZBVZeroBubble"}};

// Settings whose key is the key of the file.
constexpr std::string_view formats[] = {"training.dtype", "training.mixed_precision_param"};
constexpr std::string_view plain[] = {"activation_checkpoint.selective_ac_option", "compile.enable",
                                      titan_float8::gather};
// Settings under the key of the file which are said where they are not left to the code.
constexpr std::string_view unless_recipe[] = {"optimizer.implementation",
                                              "training.disable_cuda_graphs"};
constexpr std::string_view async_products = "compile.enable_async_tensor_parallel";
constexpr std::string_view older_async = "parallelism.enable_async_tensor_parallel";
constexpr const char* micro_tokens = "training.num_tokens_per_microbatch_per_dp_rank";
constexpr const char* step_tokens = "training.num_tokens_per_train_step";
constexpr const char* context_length = "training.max_context_length";
constexpr std::string_view reduction = "training.mixed_precision_reduce";
constexpr std::int64_t default_chunks = 2;  // of a schedule with several stages a rank

std::string_view long_name(std::string_view format) {
  return format == "fp32" ? "float32" : format == "fp16" ? "float16" : "bfloat16";
}

ConfigValue flag_or_text(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return text;
}

bool counts_tokens(const Problem& p) {
  return p.runtime.fsdp2.recipe_date >= titan_dates::tokens;
}

void add_parallelism(std::vector<Entry>& out, const Problem& p) {
  const Layout& l = p.layout;
  const auto add = [&](std::string_view key, ConfigValue value) {
    out.push_back({"parallelism." + std::string(key), std::move(value)});
  };
  add("data_parallel_replicate_degree", l.hsdp > 0 ? l.dp / l.hsdp : 1);
  add("data_parallel_shard_degree", l.hsdp > 0 ? l.hsdp : l.dp);
  const bool never = l.zero == ZeroStage::gradients;
  add("fsdp_reshard_after_forward",
      never ? "never" : setting_text(p.runtime, "parallelism.fsdp_reshard_after_forward"));
  add("tensor_parallel_degree", l.tp);
  if (l.tp > 1) {
    if (!l.sequence_parallel) add("enable_sequence_parallel", false);
    if (!reads_python(p)) {
      add("disable_loss_parallel", !p.runtime.fsdp2.loss_parallel);
    }
  }
  add("context_parallel_degree", l.cp);
  add("pipeline_parallel_degree", l.pp);
  if (l.pp > 1) {
    for (const Name& name : schedules) {
      if (name.ours == name_of(l.schedule)) add("pipeline_parallel_schedule", name.theirs);
    }
    if (counts_tokens(p)) {
      add("num_pp_microbatches", micro_batches(p));
    } else {
      add("pipeline_parallel_microbatch_size", l.micro_batch);
    }
    // Embedding and head count as a layer each.
    if (l.vpp > default_chunks) {
      add("pipeline_parallel_layers_per_stage", ceil_div(p.model.layers + 2, l.pp * l.vpp));
    }
  }
  if (p.model.moe) add("expert_parallel_degree", l.ep);
}

void add_batch(std::vector<Entry>& out, const Problem& p) {
  const Layout& l = p.layout;
  const TrainingSpec& t = p.training;
  if (counts_tokens(p)) {
    out.push_back({micro_tokens, l.micro_batch * t.sequence_length});
    out.push_back({step_tokens, t.global_batch * t.sequence_length});
    out.push_back({context_length, t.sequence_length});
    return;
  }
  out.push_back({"training.local_batch_size", l.pp > 1 ? t.global_batch / l.dp : l.micro_batch});
  out.push_back({"training.global_batch_size", t.global_batch});
  out.push_back({"training.seq_len", t.sequence_length});
}

std::int64_t read_pipeline(Entries& entries, Meaning& meaning) {
  const std::string key = "parallelism.pipeline_parallel_";
  const std::int64_t pp = entries.take_count(key + "degree").value_or(1);
  meaning.say("--pp", pp);
  const auto schedule =
      entries.take_if(key + "schedule", {"GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"});
  const bool unknown = entries.has(key + "schedule");
  for (const Name& name : schedules) {
    if (name.theirs != schedule.value_or("1F1B") || unknown) continue;
    meaning.say("--schedule", pp == 1 ? "1f1b" : name.ours);
  }
  const bool several = schedule == "Interleaved1F1B" || schedule == "ZBVZeroBubble";
  const bool said = entries.has(key + "layers_per_stage");  // needs the model's layers
  if (!said) meaning.say("--vpp", pp > 1 && several ? default_chunks : std::int64_t{1});
  return pp;
}

// Whether the file counts tokens; then the batch is said.
bool read_tokens(Entries& entries, Meaning& meaning, std::int64_t pp) {
  const bool said =
      entries.has(micro_tokens) || entries.has(step_tokens) || entries.has(context_length);
  if (!said) return false;
  const std::int64_t length = entries.take_count(context_length).value_or(2048);
  const auto samples = [&](const char* key, std::int64_t tokens) {
    if (tokens % length == 0) return tokens / length;
    entries.fail(fmt::format("{} {}: no multiple of {} {}", key, tokens, context_length, length));
  };
  meaning.say("--micro-batch",
              samples(micro_tokens, entries.take_count(micro_tokens).value_or(16384)));
  const std::int64_t passes = entries.take_count("parallelism.num_pp_microbatches").value_or(1);
  entries.take_if(step_tokens, {"-1"});
  if (const auto step = entries.take_count(step_tokens)) {
    meaning.say("--global-batch", samples(step_tokens, *step));
  } else {
    meaning.say("--gradient-accumulation", pp > 1 ? passes : 1);
  }
  meaning.say("--seq", length);
  return true;
}

// With a pipeline a rank's batch is that of the step, cut into micro-batches. Absent keys have the
// defaults of config/job_config.py.
void read_batch(Entries& entries, Meaning& meaning, std::int64_t pp) {
  const auto older = entries.take_count("training.batch_size");  // its older name
  const std::int64_t local =
      entries.take_count("training.local_batch_size").value_or(older.value_or(8));
  const auto cut = entries.take_count("parallelism.pipeline_parallel_microbatch_size");
  const std::int64_t micro = pp > 1 ? cut.value_or(1) : local;
  if (local % micro != 0) {
    entries.fail(
        fmt::format("a rank's batch of {} does not divide into micro-batches of {}", local, micro));
  }
  meaning.say("--micro-batch", micro);
  const bool of_all_ranks = !entries.take_if("training.global_batch_size", {"-1"}) &&
                            entries.has("training.global_batch_size");
  if (of_all_ranks) {
    meaning.say("--global-batch", *entries.take_count("training.global_batch_size"));
  } else {
    meaning.say("--gradient-accumulation", local / micro);
  }
  meaning.say("--seq", entries.take_count("training.seq_len").value_or(2048));
}

void read_sharding(Entries& entries, Meaning& meaning) {
  const auto replicas = entries.take_count("parallelism.data_parallel_replicate_degree");
  const bool the_rest =
      entries.take_if("parallelism.data_parallel_shard_degree", {"-1"}).has_value();
  const auto shard = entries.take_count("parallelism.data_parallel_shard_degree");
  if (replicas.value_or(1) > 1) {
    // -1, the default, stands for all ranks that are left.
    meaning.say("--hsdp",
                the_rest || !shard ? fmt::format("dp/{}", *replicas) : std::to_string(*shard));
  }
  const auto reshard =
      entries.take_if("parallelism.fsdp_reshard_after_forward", {"default", "always", "never"});
  meaning.say("--zero", reshard == "never" ? "2" : "3");
  if (reshard == "always") meaning.set_if("parallelism.fsdp_reshard_after_forward", reshard);
}

// What the code requires is no choice: `cannot` is without CUDA graphs in any case.
void read_graphs(Entries& entries, Meaning& meaning, bool cannot) {
  const char* key = "training.disable_cuda_graphs";
  const auto without = entries.take(key);
  if (without && *without != (cannot ? "true" : "false")) meaning.set(key, *without);
}

// The loss is made in parts by a wrapper, else whole.
void read_loss(Entries& entries, Meaning& meaning) {
  const auto made =
      entries.take_if("loss", {"ChunkedLossWrapper.Config", "CrossEntropyLoss.Config"});
  const auto parts = entries.take_count("loss.num_chunks");
  if (made == "CrossEntropyLoss.Config") {
    meaning.set("loss_chunks", "1");
  } else if (parts) {
    meaning.set("loss_chunks", std::to_string(*parts));
  }
  entries.take_all({"loss.loss_fn", "loss.loss_fn.global_vocab_size", "loss.global_vocab_size"});
}

}  // namespace

std::vector<Entry> to_torchtitan(const Problem& p) {
  const Layout& l = p.layout;
  const TrainingSpec& t = p.training;
  std::vector<Entry> out;
  if (t.precision == Precision::fp8) {
    out.push_back({"model.converters", ConfigValue::array({titan_float8::converter})});
  }
  add_batch(out, p);
  for (const std::string_view key : formats) {
    std::string_view format = long_name(setting_text(p.runtime, key));
    const bool computes = key != "training.dtype";
    if (computes && t.precision == Precision::fp16) format = "float16";
    out.push_back({std::string(key), format});
  }
  if (l.offload == Offload::parameters) out.push_back({"training.enable_cpu_offload", true});
  add_parallelism(out, p);
  out.push_back({"activation_checkpoint.mode", name_of(l.recompute)});
  for (const std::string_view key : plain) {
    const bool gathers = key == titan_float8::gather;
    if (gathers && t.precision != Precision::fp8) continue;
    const std::string name(gathers ? titan_float8::gather_key : key);
    out.push_back({name, flag_or_text(setting_text(p.runtime, key))});
  }
  if (const std::string recipe = titan_float8::said_recipe(p); !recipe.empty()) {
    out.push_back({std::string(titan_float8::recipe_key), recipe});
  }
  if (p.runtime.fsdp2.async_tensor_parallel) {
    const bool of_compile = p.runtime.fsdp2.recipe_date >= titan_dates::async_of_compile;
    out.push_back({std::string(of_compile ? async_products : older_async), true});
  }
  for (const std::string_view key : unless_recipe) {
    const std::string text = setting_text(p.runtime, key);
    if (text != "recipe") out.push_back({std::string(key), flag_or_text(text)});
  }
  if (const std::string format = setting_text(p.runtime, reduction); format != "recipe") {
    out.push_back({std::string(reduction), long_name(format)});
  }
  const CompiledParts parts = p.runtime.fsdp2.compile_components;
  ConfigValue compiled = ConfigValue::array();
  if (parts != CompiledParts::loss) compiled.push_back("model");
  if (parts != CompiledParts::model) compiled.push_back("loss");
  out.push_back({"compile.components", std::move(compiled)});
  if (t.optimizer == OptimizerKind::adam) out.push_back({"optimizer.name", "AdamW"});
  return out;
}

ImportedConfiguration from_torchtitan(Entries entries) {
  Meaning meaning(Runtime::fsdp2);
  const std::int64_t pp = read_pipeline(entries, meaning);
  if (!read_tokens(entries, meaning, pp)) read_batch(entries, meaning, pp);
  read_sharding(entries, meaning);
  const std::int64_t tp = entries.take_count("parallelism.tensor_parallel_degree").value_or(1);
  meaning.say("--tp", tp);
  const bool plain_norms =
      entries.take_if("parallelism.enable_sequence_parallel", {"true", "false"}) == "false";
  meaning.say("--sequence-parallel", tp > 1 && !plain_norms ? "on" : "off");
  if (entries.take_if("parallelism.disable_loss_parallel", {"true", "false"}) == "true") {
    meaning.set("parallelism.loss_parallel", "false");
  }
  meaning.say("--cp", entries.take_count("parallelism.context_parallel_degree").value_or(1));
  const std::int64_t ep = entries.take_count("parallelism.expert_parallel_degree").value_or(1);
  meaning.say("--ep", ep);
  meaning.say("--etp", "1");
  auto mode = entries.take_if("activation_checkpoint.mode", {"none", "selective", "full"});
  if (const auto made = entries.text("activation_checkpoint"); made && !mode) {
    const bool full = made->starts_with("FullAC");
    if (!full && !made->starts_with("SelectiveAC") &&
        !made->starts_with("ActivationCheckpointConfig")) {
      entries.fail(fmt::format("activation_checkpoint {}: not read", in_quotes(*made)));
    }
    if (full) mode = "full";
  }
  entries.take("activation_checkpoint");
  meaning.say("--recompute", mode.value_or("selective"));
  read_loss(entries, meaning);
  const bool fp8 = titan_float8::read_converters(entries, meaning);
  for (const std::string_view key : formats) {
    const auto format = entries.take(key);
    if (key == "training.mixed_precision_param") {
      meaning.say("--precision", fp8                   ? "fp8"
                                 : format == "float16" ? "fp16"
                                 : format == "float32" ? "fp32"
                                                       : "bf16");
    }
    meaning.set_if(key, format);
  }
  for (const std::string_view key : plain) meaning.set_if(key, entries.take(key));
  for (const std::string_view key : {async_products, older_async}) {
    if (entries.take_if(key, {"true", "false"}) == "true") meaning.set(async_products, "true");
  }
  meaning.set_if("optimizer.implementation", entries.take("optimizer.implementation"));
  read_graphs(entries, meaning, bars_graphs(pp, ep));
  if (const auto format = entries.take_if(reduction, {"float32", "bfloat16"})) {
    meaning.set(reduction, *format == "float32" ? "fp32" : "bf16");
  }
  meaning.set_if("compile.components",
                 entries.take_if("compile.components", {"model,loss", "model", "loss"}));
  const bool offloads = entries.take_if("training.enable_cpu_offload", {"true", "false"}) == "true";
  meaning.say("--offload", offloads ? "parameters" : "none");
  entries.take_if("optimizer.name", {"Adam", "AdamW"});
  if (!entries.has("optimizer.name")) meaning.say("--optimizer", "adam");
  meaning.say("--attention", "flash");
  meaning.about_model(entries.take_all({"model.name", "model.flavor", "model_spec"}));
  return meaning.finish(ConfigurationFormat::torchtitan, entries);
}

}  // namespace zeroplan
