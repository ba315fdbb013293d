// What was meant? Front door: read_request.
#include "cli/request/read_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "presets/catalog.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
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

std::optional<bool> read_switch(std::string_view flag, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  if (*text == "on") return true;
  if (*text == "off") return false;
  throw InputError(fmt::format("{} {}: must be on or off", flag, in_quotes(*text)));
}

ClusterSpec read_gpus(const LayoutArguments& a, std::vector<std::string>& notes) {
  const std::size_t x = a.gpus.find('x');
  const std::string count = a.gpus.substr(0, x);
  const std::string gpu = x == std::string::npos ? "" : a.gpus.substr(x + 1);
  if (a.cluster.empty()) {
    if (a.gpus.empty())
      throw InputError("--gpus is missing: say how many of which, e.g. --gpus 128xA100-80GB");
    if (gpu.empty()) {
      throw InputError(
          fmt::format("--gpus {}: must be COUNTxGPU, e.g. 128xA100-80GB", in_quotes(a.gpus)));
    }
    return cluster_of(gpu, read_whole("--gpus", count, 1, largest_degree), &notes);
  }
  ClusterSpec cluster = load_cluster(a.cluster);
  if (a.gpus.empty()) return cluster;
  cluster.gpus = read_whole("--gpus", count, 1, largest_degree);
  if (!gpu.empty() && find_gpu(gpu).name != cluster.gpu.name) {
    throw InputError(fmt::format("--gpus {}: cluster {} has {}", in_quotes(a.gpus), cluster.name,
                                 cluster.gpu.name));
  }
  return cluster;
}

std::vector<Override> read_settings(const std::vector<std::string>& texts) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
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
  }
  return overrides;
}

ModelSpec read_model(const std::string& text, Runtime runtime, std::vector<std::string>& notes) {
  const auto count = parse_parameter_count(text);
  if (!count) return load_model(text, notes);
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
  throw InputError(fmt::format("{} {}: must be one of {}; nearest is {}", flag, in_quotes(text),
                               fmt::join(all, ", "), nearest(text, all)));
}

std::int64_t read_whole(std::string_view flag,
                        std::string_view text,
                        std::int64_t least,
                        std::int64_t largest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least ||
      value > largest) {
    throw InputError(fmt::format("{} {}: must be a whole number from {} to {}", flag,
                                 in_quotes(text), least, largest));
  }
  return value;
}

Bytes read_size(std::string_view flag, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> units{
      {{"MiB", 1 << 20},
       {"GiB", 1 << 30},
       {"TiB", 1e12 * 1.099511627776},
       {"MB", 1e6},
       {"GB", 1e9},
       {"TB", 1e12}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, bytes] : units) {
    constexpr double largest = 1e15;
    if (error != std::errc{} || unit != name || !(value * bytes >= 1 && value * bytes <= largest)) {
      continue;
    }
    return Bytes{static_cast<std::int64_t>(value * bytes)};
  }
  throw InputError(fmt::format("{} {}: must be a size with its unit, e.g. 70GiB or 80GB", flag,
                               in_quotes(text)));
}

std::optional<std::int64_t> parse_parameter_count(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  double unit = 0;
  switch (text.back()) {
    case 'M':
    case 'm':
      unit = 1e6;
      break;
    case 'B':
    case 'b':
      unit = 1e9;
      break;
    case 'T':
    case 't':
      unit = 1e12;
      break;
    default:
      return std::nullopt;
  }
  text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  constexpr double largest = 1e15;
  const double parameters = value * unit;
  if (!(parameters >= 1 && parameters <= largest)) {
    throw InputError(fmt::format("model {}{}: must be from 1 to 1e15 parameters", text,
                                 unit == 1e6   ? 'M'
                                 : unit == 1e9 ? 'B'
                                               : 'T'));
  }
  return static_cast<std::int64_t>(std::llround(parameters));
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

Request read_request(const LayoutArguments& a, std::vector<std::string>& notes) {
  const Runtime runtime =
      *read_choice<Runtime>("--runtime", a.runtime.value_or(std::string(default_runtime)));
  const std::vector<Override> given = read_settings(a.set);
  const auto precision = read_choice<Precision>("--precision", a.precision);
  std::vector<Override> settings = given;
  // FSDP2 gathers weights in the format that it computes in. What is given comes later, and wins.
  if (runtime == Runtime::fsdp2 && precision == Precision::fp32) {
    settings.insert(settings.begin(), {"training.mixed_precision_param", "fp32"});
  }
  Request r{.model = read_model(a.model, runtime, notes),
            .cluster = read_gpus(a, notes),
            .runtime = load_runtime(runtime, settings)};
  for (const auto& [setting, value] : given) r.given_settings.push_back(setting);
  read_number("--tp", a.tp, r.tp);
  read_number("--pp", a.pp, r.pp);
  read_number("--vpp", a.vpp, r.vpp);
  read_number("--cp", a.cp, r.cp);
  read_number("--ep", a.ep, r.ep);
  read_number("--etp", a.etp, r.etp);
  r.hsdp = read_group(a.hsdp, r);
  read_number("--micro-batch", a.micro_batch, r.micro_batch);
  read_number("--global-batch", a.global_batch, r.global_batch, largest_batch);
  read_accumulation(a, r);
  read_number("--seq", a.seq, r.sequence_length, largest_batch);
  r.zero = read_choice<ZeroStage>("--zero", a.zero);
  r.sequence_parallel = read_switch("--sequence-parallel", a.sequence_parallel);
  r.schedule = read_choice<Schedule>("--schedule", a.schedule);
  r.recompute = read_choice<Recompute>("--recompute", a.recompute);
  r.precision = precision;
  r.optimizer = read_choice<OptimizerKind>("--optimizer", a.optimizer);
  r.attention = read_choice<AttentionKernel>("--attention", a.attention);
  r.offload = read_choice<Offload>("--offload", a.offload);
  return r;
}

double read_tie(const LayoutArguments& a) {
  if (!a.tie) return default_tie;
  std::string_view text = *a.tie;
  if (text.ends_with('%')) text.remove_suffix(1);
  constexpr double most = 100;
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(percent >= 0 && percent <= most)) {
    throw InputError(
        fmt::format("--tie {}: must be per cent from 0 to {}", in_quotes(*a.tie), most));
  }
  return percent / 100;
}

SweepQuestion read_question(const SweepArguments& a, std::vector<std::string>& notes) {
  constexpr std::int64_t most_plans = 1000;
  constexpr std::int64_t most_threads = 1024;
  SweepQuestion q{.request = read_request(a.layout, notes)};
  if (a.tp_within_node) q.tensor_reach = TensorReach::node;
  q.objective = read_choice<Objective>("--objective", a.objective).value_or(q.objective);
  if (a.top) q.top = static_cast<std::size_t>(read_whole("--top", *a.top, 1, most_plans));
  q.tie = read_tie(a.layout);
  q.all = a.all;
  q.exhaustive = a.exhaustive;
  q.front = a.front;
  if (a.threads) {
    q.threads = static_cast<std::size_t>(read_whole("--threads", *a.threads, 1, most_threads));
  }
  if (a.max_memory) q.max_memory = read_size("--max-memory", *a.max_memory);
  return q;
}

}  // namespace zeroplan
