// What was meant? Front door: read_request.
#include "cli/request/read_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/request/plan_file.hpp"
#include "cli/request/quantity.hpp"
#include "cli/request/read_gpus.hpp"
#include "cli/request/recorded_file.hpp"
#include "cli/request/solve.hpp"
#include "cost_model/question/layer_width.hpp"
#include "presets/catalog.hpp"
#include "presets/hf_config.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/recorded_program.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

// Far above any machine or batch, far below where products of a few of them overflow.
constexpr std::int64_t largest_degree = 1'000'000;
constexpr std::int64_t largest_batch = 100'000'000;

void read_number(std::string_view flag,
                 const std::optional<std::string>& text,
                 std::optional<std::int64_t>& field,
                 std::int64_t largest = largest_degree) {
  if (text) field = read_whole(flag, *text, 1, largest);
}

// A sharding group: its ranks, or dp/N where N groups are dp, as Megatron-LM says it.
std::optional<std::int64_t> read_group(const std::optional<std::string>& text, const Request& r) {
  std::optional<std::int64_t> ranks;
  if (!text || !text->starts_with("dp/")) {
    read_number("--hsdp", text, ranks);
    return ranks;
  }
  const std::int64_t groups = read_whole("--hsdp dp/", text->substr(3), 1, largest_degree);
  if (!r.tp || !r.pp || !r.cp) {
    throw InputError(
        fmt::format("--hsdp {}: dp follows from --tp, --pp and --cp; give all three, or the ranks",
                    in_quotes(*text)));
  }
  const std::int64_t dp = r.cluster.gpus / (*r.tp * *r.pp * *r.cp);
  if (dp < groups || dp % groups != 0) {
    throw InputError(
        fmt::format("--hsdp {}: {} does not divide dp {}", in_quotes(*text), groups, dp));
  }
  return dp / groups;
}

// Micro-batches of a step, which say the global batch.
void read_accumulation(const LayoutArguments& a, Request& r) {
  if (a.gradient_accumulation && a.global_batch) {
    throw InputError("--gradient-accumulation says the global batch: give it or --global-batch");
  }
  const std::int64_t samples = r.cluster.gpus * r.micro_batch.value_or(1);
  read_number("--gradient-accumulation", a.gradient_accumulation, r.gradient_accumulation,
              std::max<std::int64_t>(1, largest_batch / samples));
}

// Samples of a step, or its tokens: then the nearest number that the layout divides.
void read_batch(const std::optional<std::string>& text, Request& r) {
  const auto tokens = text ? parse_tokens(*text) : std::nullopt;
  if (!tokens) return read_number("--global-batch", text, r.global_batch, largest_batch);
  if (lower_case(*text).find("tokens") == std::string::npos) {
    throw InputError(fmt::format("--global-batch {}: must be samples, or tokens: '{} tokens'",
                                 in_quotes(*text), *text));
  }
  constexpr double most_tokens = 1e12;
  if (*tokens > most_tokens) {
    throw InputError(fmt::format("--global-batch {}: at most 1T tokens", in_quotes(*text)));
  }
  r.batch_tokens = std::max<std::int64_t>(1, std::llround(*tokens));
}

// Memory that the plan is not to use.
void leave_free(Request& r,
                const std::string& text,
                Origin& origin,
                std::vector<std::string>& notes) {
  Bytes& memory = r.cluster.gpu.memory;
  const Bytes margin = read_size_or_share("--margin", text, memory);
  if (margin >= memory) {
    throw InputError(fmt::format("--margin {}: {} has {:.2f} GiB", in_quotes(text),
                                 r.cluster.gpu.name, gibibytes(memory)));
  }
  memory = memory - margin;
  origin.margin = margin;
  notes.push_back(fmt::format("{:.2f} GiB of each GPU stay free (--margin)", gibibytes(margin)));
}

std::optional<bool> read_switch(std::string_view flag, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const std::string word = usual_word(flag, *text);
  if (word == "on") return true;
  if (word == "off") return false;
  throw InputError(fmt::format("{} {}: must be on or off", flag, in_quotes(*text)));
}

// "a=1,b=2" is two settings, "modules=norm,mlp" one.
std::vector<std::string> split_settings(const std::string& text) {
  std::vector<std::string> list;
  std::size_t start = 0;
  for (std::size_t comma = text.find(','); comma != std::string::npos;
       comma = text.find(',', comma + 1)) {
    const std::size_t next = text.find_first_of(",=", comma + 1);
    if (next == std::string::npos || text[next] == ',') continue;
    list.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  list.push_back(text.substr(start));
  return list;
}

std::vector<Override> read_settings(const std::vector<std::string>& texts) {
  std::vector<Override> overrides;
  const auto read = [&](const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError(fmt::format("--set {}: must be KEY=VALUE", in_quotes(text)));
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    for (const auto& [given, as] : overrides) {
      if (given != key || as == value) continue;
      throw InputError(fmt::format("--set {}: given as {} and as {}", in_quotes(key), in_quotes(as),
                                   in_quotes(value)));
    }
    overrides.emplace_back(key, value);
  };
  for (const std::string& text : texts) {
    for (const std::string& setting : split_settings(text)) read(setting);
  }
  return overrides;
}

// Whether --attention names the package that Transformers calls so, and the runtime may run layers
// of Transformers.
bool names_package(const LayoutArguments& a,
                   Runtime runtime,
                   const std::vector<Override>& settings) {
  if (!a.attention || lower_case(*a.attention) != "flash_attention_2") return false;
  const std::vector<std::string> keys = runtime_setting_keys(runtime);
  const auto names = [&](const std::string& key) { return key == "attn_implementation"; };
  if (std::none_of(keys.begin(), keys.end(), names)) return false;
  const Override transformers{"layers", "huggingface"};
  return runtime != Runtime::fsdp2 ||
         std::find(settings.begin(), settings.end(), transformers) != settings.end();
}

// The runtime that is asked for. Of a model known by its size alone only one can say anything.
Runtime read_runtime(const LayoutArguments& a, std::vector<std::string>& notes) {
  if (a.recorded) return a.recorded->runtime.kind;
  const auto given = read_choice<Runtime>("--runtime", a.runtime);
  if (given) return *given;
  if (!a.model_config.empty() || !parse_parameter_count(a.model)) {
    return *parse_name<Runtime>(default_runtime);
  }
  notes.emplace_back("the ZeRO paper's arithmetic (--runtime zero-paper)");
  return Runtime::zero_paper;
}

ModelSpec read_model(const LayoutArguments& a,
                     Runtime runtime,
                     Origin& origin,
                     std::vector<std::string>& notes) {
  const std::string& text = a.model;
  if (text.empty()) throw InputError("MODEL is missing: a catalog name, a config.json or a plan");
  if (a.recorded) return a.recorded->model;
  origin.as = a.as;
  if (!a.model_config.empty()) {
    origin.model_config = a.model_config;
    ModelSpec model = read_hf_config(a.model_config, in_quotes(text), &notes, a.as);
    model.name = text;
    return model;
  }
  const auto count = parse_parameter_count(text);
  if (!count) return load_model(text, notes, &origin.model_config, a.as);
  if (runtime != Runtime::zero_paper) {
    throw InputError(
        fmt::format("model {}: a size alone has no layers; only --runtime zero-paper takes it",
                    in_quotes(text)));
  }
  notes.emplace_back("only the size is known: model states, no activations");
  return model_of_size(text, *count);
}

}  // namespace

void refuse_choice(std::string_view flag,
                   std::string_view text,
                   std::span<const std::string_view> allowed) {
  const std::vector<std::string> all(allowed.begin(), allowed.end());
  const std::string meant = near_name(text, all);
  throw InputError(fmt::format("{} {}: must be one of {}{}", flag, in_quotes(text),
                               fmt::join(all, ", "), meant.empty() ? "" : "; nearest is " + meant));
}

ModelSpec model_of_size(std::string_view name, std::int64_t parameters) {
  ModelSpec model{.name = std::string(name), .family = "size only"};
  model.hidden_size = 1;
  model.vocab_size = parameters;
  model.tied_embeddings = true;
  model.final_norm = false;
  model.attention.heads = model.attention.kv_heads = 1;
  return model;
}

Request read_request(const LayoutArguments& typed, std::vector<std::string>& notes) {
  const LayoutArguments a = with_plan(typed, notes);
  const Runtime runtime = read_runtime(a, notes);
  const std::vector<Override> given = read_settings(a.set);
  const auto precision = read_choice<Precision>("--precision", a.precision);
  std::vector<Override> settings = given;
  // FSDP2 gathers weights in the format that it computes in. What is given comes later, and wins.
  if (runtime == Runtime::fsdp2 && precision == Precision::fp32) {
    settings.insert(settings.begin(), {"training.mixed_precision_param", "fp32"});
  }
  if (names_package(a, runtime, given)) {
    settings.insert(settings.begin(), {"attn_implementation", "flash_attention_2"});
  }
  Origin origin;
  Request r{.model = read_model(a, runtime, origin, notes),
            .cluster = {},
            .runtime = a.recorded ? a.recorded->runtime : load_runtime(runtime, settings)};
  if (precision && is_quantized(*precision)) widen_ends(r.model, r.runtime.megatron);
  const GpuQuestion gpus = read_gpus(a, origin, notes);
  r.cluster = gpus.cluster;
  if (a.recorded && r.cluster.gpus != a.recorded->gpus) {
    throw InputError(fmt::format("{}: recorded on {} GPUs, not on {}", in_quotes(a.model),
                                 a.recorded->gpus, r.cluster.gpus));
  }
  if (a.margin) leave_free(r, *a.margin, origin, notes);
  r.origin = std::move(origin);
  for (const auto& [setting, value] : given) r.given_settings.push_back(setting);
  if (a.whole) r.given_settings = runtime_setting_keys(runtime);
  read_number("--tp", a.tp, r.tp);
  read_number("--pp", a.pp, r.pp);
  read_number("--vpp", a.vpp, r.vpp);
  read_number("--cp", a.cp, r.cp);
  read_number("--ep", a.ep, r.ep);
  read_number("--etp", a.etp, r.etp);
  r.hsdp = read_group(a.hsdp, r);
  if (a.whole && !r.hsdp) r.hsdp = r.runtime.deepspeed.mics_shard_size;
  const bool fullest = a.micro_batch && asks_largest(*a.micro_batch);
  if (!fullest) read_number("--micro-batch", a.micro_batch, r.micro_batch);
  read_batch(a.global_batch, r);
  read_accumulation(a, r);
  const bool longest = a.seq && asks_largest(*a.seq);
  if (a.seq && !longest) r.sequence_length = read_length("--seq", *a.seq, 1, largest_batch);
  r.zero = read_choice<ZeroStage>("--zero", a.zero);
  r.sequence_parallel = read_switch("--sequence-parallel", a.sequence_parallel);
  r.schedule = read_choice<Schedule>("--schedule", a.schedule);
  r.recompute = read_choice<Recompute>("--recompute", a.recompute);
  r.precision = precision;
  r.optimizer = read_choice<OptimizerKind>("--optimizer", a.optimizer);
  r.attention = read_choice<AttentionKernel>("--attention", a.attention);
  r.scores =
      read_choice<ScoreCount>("--attention-flops", a.attention_flops).value_or(ScoreCount::causal);
  r.offload = read_choice<Offload>("--offload", a.offload);
  if (longest + fullest + !gpus.counted > 1) {
    throw InputError(
        "of --gpus without a count, --seq max and --micro-batch max one can be found at a time");
  }
  if (!gpus.counted) count_gpus(r, notes);
  if (longest) lengthen_sequence(r, notes);
  if (fullest) enlarge_micro_batch(r, notes);
  return r;
}

double read_tie(const LayoutArguments& a) {
  return a.tie ? read_percent("--tie", *a.tie) : default_tie;
}

std::size_t read_threads(const SweepArguments& a) {
  constexpr std::int64_t most_threads = 1024;
  if (!a.threads) return 0;
  return static_cast<std::size_t>(read_whole("--threads", *a.threads, 1, most_threads));
}

SweepQuestion read_question(const SweepArguments& a, std::vector<std::string>& notes) {
  constexpr std::int64_t most_plans = 1000;
  SweepQuestion q{.request = read_request(a.layout, notes)};
  require_described("sweep", q.request.runtime);
  if (a.tp_within_node) q.tensor_reach = TensorReach::node;
  q.objective = read_choice<Objective>("--objective", a.objective).value_or(q.objective);
  if (a.top) q.top = static_cast<std::size_t>(read_whole("--top", *a.top, 1, most_plans));
  q.tie = read_tie(a.layout);
  q.all = a.all;
  q.exhaustive = a.exhaustive;
  q.front = a.front;
  q.threads = read_threads(a);
  if (a.max_memory) {
    q.max_memory = read_size_or_share("--max-memory", *a.max_memory, q.request.cluster.gpu.memory);
  }
  return q;
}

}  // namespace zeroplan
