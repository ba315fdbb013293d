// How does Megatron-LM say a layout? Front doors: to_megatron, to_megatron_fields,
// from_megatron.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "presets/configuration/hybrid_pattern.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/megatron_model.hpp"
#include "presets/configuration/megatron_settings.hpp"
#include "presets/megatron_hybrid.hpp"
#include "presets/pipeline_layout.hpp"

namespace zeroplan {
namespace {

// Arguments that say one number of the layout, 1 where they are absent.
struct Degree {
  const char* argument;
  const char* flag;
  std::int64_t Layout::*field;
};
constexpr Degree degrees[] = {{"tensor-model-parallel-size", "--tp", &Layout::tp},
                              {"pipeline-model-parallel-size", "--pp", &Layout::pp},
                              {"context-parallel-size", "--cp", &Layout::cp},
                              {"expert-model-parallel-size", "--ep", &Layout::ep},
                              {"micro-batch-size", "--micro-batch", &Layout::micro_batch}};

// Fields of TransformerConfig that are no arguments (training/arguments.py @d98e8a64dd): what
// follows from another one, and what Megatron-Bridge alone can say.
constexpr std::string_view no_arguments[] = {"cpu-offloading", "fp8-dot-product-attention",
                                             "activation-func-fp8-input-store"};
constexpr const char* copies_argument = "num-distributed-optimizer-instances";
constexpr const char* layers_a_chunk = "num-layers-per-virtual-pipeline-stage";
constexpr const char* chunks_a_rank = "num-virtual-stages-per-pipeline-rank";

void add_zero_stage(std::vector<Entry>& out, ZeroStage zero) {
  if (zero == ZeroStage::optimizer) out.push_back({"use-distributed-optimizer", nullptr});
  if (zero < ZeroStage::gradients) return;
  out.push_back({"use-megatron-fsdp", nullptr});
  out.push_back({"data-parallel-sharding-strategy",
                 zero == ZeroStage::gradients ? "optim_grads" : "optim_grads_params"});
  // training/arguments.py asserts this format; how a checkpoint is written changes nothing here.
  out.push_back({"ckpt-format", "fsdp_dtensor"});
}

std::string_view read_stage(Entries& entries) {
  const bool distributed = entries.take_flag("use-distributed-optimizer");
  const bool with_its_format = entries.text("ckpt-format") == "fsdp_dtensor";
  if (!entries.take_flag("use-megatron-fsdp")) return distributed ? "1" : "0";
  if (with_its_format) entries.take("ckpt-format");
  const std::string strategy =
      entries
          .take_if("data-parallel-sharding-strategy",
                   {"no_shard", "optim", "optim_grads", "optim_grads_params"})
          .value_or("optim_grads_params");
  return strategy == "no_shard"      ? "0"
         : strategy == "optim"       ? "1"
         : strategy == "optim_grads" ? "2"
                                     : "3";
}

// Chunks of a pipeline rank, which may be said by a layout of all, or by the layers of one
// (training/arguments.py validate_args): of an even split alone, where embedding and loss may count
// as a layer each.
std::int64_t read_chunks(Entries& entries,
                         std::int64_t pp,
                         const std::optional<PipelineLayout>& pattern) {
  if (pattern && pattern->layers.size() > 1) {
    const std::int64_t all = std::ssize(pattern->layers);
    if (all % pp != 0) {
      entries.fail(fmt::format("{}: {} chunks are no multiple of {} pipeline stages",
                               pattern_argument, all, pp));
    }
    return all / pp;
  }
  const auto chunks = entries.take_count(chunks_a_rank);
  const auto each = entries.take_count(layers_a_chunk);
  if (!each) {
    const auto text = entries.text(megatron_layout_argument);
    const auto layout = text ? parse_pipeline_layout(*text) : std::nullopt;
    const bool counted = layout && std::ssize(layout->layers) % pp == 0;
    return counted ? std::ssize(layout->layers) / pp : chunks.value_or(1);
  }
  const std::string said = fmt::format("{} {}", layers_a_chunk, *each);
  for (const char* other :
       {chunks_a_rank, megatron_layout_argument, "decoder-first-pipeline-num-layers",
        "decoder-last-pipeline-num-layers"}) {
    const bool beside = other == chunks_a_rank ? chunks.has_value() : entries.has(other);
    if (beside) entries.fail(fmt::format("{}: Megatron-LM refuses it beside {}", said, other));
  }
  const auto layers = entries.count("num-layers");
  if (!layers) entries.fail(said + ": how many chunks that makes follows from num-layers: give it");
  const std::int64_t all = *layers + entries.has("account-for-embedding-in-pipeline-split") +
                           entries.has("account-for-loss-in-pipeline-split");
  if (all % (pp * *each) != 0) {
    entries.fail(
        fmt::format("{}: does not divide {} layers over {} pipeline stages", said, all, pp));
  }
  return all / pp / *each;
}

// What a pattern says beside the layers: a split of its own where chunks are not alike, and modules
// that predict further tokens.
void read_pattern(const PipelineLayout& said,
                  const Entries& entries,
                  std::int64_t pp,
                  Meaning& meaning) {
  if (said.mtp_modules > 0 && !entries.has("mtp-num-layers")) {
    meaning.set("mtp_num_layers", std::to_string(said.mtp_modules));
  }
  const std::vector<std::int64_t>& layers = said.layers;
  if (std::ranges::count(layers, layers.front()) == std::ssize(layers)) return;
  // The first and the last stage alone may differ by settings of their own.
  const std::span<const std::int64_t> between(layers.begin() + 1, layers.end() - 1);
  const bool alike =
      between.empty() || std::ranges::count(between, between.front()) == std::ssize(between);
  if (alike && std::ssize(layers) == pp) {
    meaning.set("decoder_first_pipeline_num_layers", std::to_string(layers.front()));
    meaning.set("decoder_last_pipeline_num_layers", std::to_string(layers.back()));
    return;
  }
  meaning.set("pipeline_model_parallel_layout", pipeline_layout_text(said));
}

// The copies of the states are said, not the ranks of each: these need the number of GPUs.
void read_zero_stage(Entries& entries, Meaning& meaning) {
  const std::string_view stage = read_stage(entries);
  meaning.say("--zero", stage);
  if (!entries.has(copies_argument) || stage == "0") return;
  meaning.say("--hsdp", fmt::format("dp/{}", *entries.take_count(copies_argument)));
}

void add_recompute(std::vector<Entry>& out, const Problem& p) {
  if (p.layout.recompute == Recompute::none) return;
  out.push_back({"recompute-granularity", name_of(p.layout.recompute)});
  if (p.layout.recompute == Recompute::selective) {
    out.push_back(
        {"recompute-modules", megatron_list(setting_text(p.runtime, "recompute_modules"))});
    return;
  }
  const MegatronSettings& set = p.runtime.megatron;
  const bool uniform = set.recompute_method == RecomputeMethod::uniform;
  const std::int64_t all = uniform ? 1 : p.model.layers;
  out.push_back({"recompute-method", name_of(set.recompute_method)});
  out.push_back(
      {"recompute-num-layers", set.recompute_num_layers > 0 ? set.recompute_num_layers : all});
}

// `layers`: of the model, where the file says.
void read_recompute(Entries& entries, Meaning& meaning, std::optional<std::int64_t> layers) {
  const bool alias = entries.take_flag("recompute-activations");
  const auto granularity = entries.take_if("recompute-granularity", {"full", "selective"});
  meaning.say("--recompute", granularity ? *granularity : alias ? "selective" : "none");
  meaning.set_if("recompute_modules", entries.take("recompute-modules"));
  const auto method = entries.take("recompute-method");
  meaning.set_if("recompute_method", method);
  const auto count = entries.take("recompute-num-layers");
  const std::int64_t all = method == "block" ? layers.value_or(0) : 1;
  if (whole(count).value_or(0) != all) meaning.set_if("recompute_num_layers", count);
}

void add_number_format(std::vector<Entry>& out, const Problem& p) {
  const Precision precision = p.training.precision;
  if (precision == Precision::fp16) out.push_back({"fp16", nullptr});
  if (precision == Precision::bf16 || is_quantized(precision)) out.push_back({"bf16", nullptr});
  if (precision == Precision::fp8) out.push_back({"fp8-format", "hybrid"});
  if (precision == Precision::nvfp4) out.push_back({"fp4-format", "e2m1"});
}

void read_number_format(Entries& entries, Meaning& meaning) {
  const bool bf16 = entries.take_flag("bf16");
  const bool fp16 = entries.take_flag("fp16");
  const bool fp8 = entries.take("fp8-format").has_value();
  const bool fp4 = entries.take("fp4-format").has_value();
  meaning.say("--precision", fp4 ? "nvfp4" : fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
}

}  // namespace

std::vector<Entry> to_megatron(const Problem& p) {
  std::vector<Entry> arguments = to_megatron_fields(p);
  std::erase_if(arguments, [](const Entry& entry) {
    return std::find(std::begin(no_arguments), std::end(no_arguments), entry.key) !=
           std::end(no_arguments);
  });
  return arguments;
}

std::vector<Entry> to_megatron_fields(const Problem& p) {
  const Layout& l = p.layout;
  std::vector<Entry> out;
  add_megatron_model(out, p.model);
  out.push_back({"max-position-embeddings",
                 std::max(p.model.max_position_embeddings, p.training.sequence_length)});
  out.push_back({"seq-length", p.training.sequence_length});
  for (const Degree& d : degrees) {
    if (l.*d.field > 1 || d.field == &Layout::micro_batch) out.push_back({d.argument, l.*d.field});
  }
  if (p.model.moe) out.push_back({"expert-tensor-parallel-size", l.etp});
  out.push_back({"global-batch-size", p.training.global_batch});
  const bool in_layout = p.runtime.megatron.pipeline_model_parallel_layout.given();
  if (l.vpp > 1 && !in_layout) out.push_back({chunks_a_rank, l.vpp});
  if (l.sequence_parallel) out.push_back({"sequence-parallel", nullptr});
  add_zero_stage(out, l.zero);
  if (l.hsdp > 0) out.push_back({copies_argument, l.dp / l.hsdp});
  add_number_format(out, p);
  out.push_back({"optimizer", name_of(p.training.optimizer)});
  if (l.offload == Offload::optimizer) out.push_back({"optimizer-cpu-offload", nullptr});
  add_recompute(out, p);
  add_megatron_kernels(out, p);
  add_megatron_settings(out, p);
  say_by_pattern(out, p);
  return out;
}

ImportedConfiguration from_megatron(Entries entries) {
  // What these mean is in other files.
  for (const char* other : {"deepspeed", "use-torch-fsdp2"}) {
    if (entries.has(other)) {
      entries.fail(
          fmt::format("{}: the states are not sharded by Megatron-LM's own arguments, "
                      "which alone are read",
                      other));
    }
  }
  rename_older_patterns(entries);
  Meaning meaning(Runtime::megatron);
  std::optional<PipelineLayout> pattern;
  if (const auto text = entries.text(pattern_argument)) pattern = layout_of_pattern(*text);
  const std::optional<std::int64_t> layers =
      pattern ? std::reduce(pattern->layers.begin(), pattern->layers.end())
              : whole(entries.text("num-layers"));
  const bool experts = entries.has("num-experts");
  Layout said;
  for (const Degree& d : degrees) {
    const auto value = entries.take_count(d.argument);
    said.*d.field = value.value_or(1);
    // The micro-batch has no default.
    if (value || d.field != &Layout::micro_batch) meaning.say(d.flag, said.*d.field);
  }
  // Experts are divided as the rest is, unless said.
  const auto etp = entries.take_count("expert-tensor-parallel-size");
  meaning.say("--etp", etp.value_or(experts ? said.tp : 1));
  const auto batch = entries.take_count("global-batch-size");
  meaning.say_if("--global-batch", batch);
  if (!batch) meaning.say("--gradient-accumulation", 1);
  meaning.say_if("--seq", entries.take_count("seq-length"));
  const std::int64_t chunks = read_chunks(entries, said.pp, pattern);
  meaning.say("--vpp", chunks);
  if (pattern) read_pattern(*pattern, entries, said.pp, meaning);
  meaning.say("--schedule", chunks == 1 ? "1f1b" : "interleaved");
  // With one rank of tp Megatron-LM switches sequence parallelism off again (training/arguments.py
  // validate_args).
  const bool sequence = entries.take_flag("sequence-parallel") && said.tp > 1;
  meaning.say("--sequence-parallel", sequence ? "on" : "off");
  read_zero_stage(entries, meaning);
  read_number_format(entries, meaning);
  const auto optimizer = entries.take_if("optimizer", {"adam", "sgd", "muon"});
  if (!entries.has("optimizer")) meaning.say("--optimizer", optimizer.value_or("adam"));
  entries.take_if("optimizer-offload-fraction", {"1.0", "1"});
  read_recompute(entries, meaning, layers);
  read_megatron_kernels(entries, meaning);
  read_megatron_settings(entries, meaning);
  meaning.say("--offload", entries.take_flag("optimizer-cpu-offload") ? "optimizer" : "none");
  std::string missing;
  std::string model = megatron_config(entries, missing);
  if (!missing.empty()) meaning.note(missing);
  meaning.about_model(take_megatron_model(entries));
  ImportedConfiguration result = meaning.finish(ConfigurationFormat::megatron, entries);
  result.model_config = std::move(model);
  return result;
}

}  // namespace zeroplan
