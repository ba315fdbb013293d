// How is the value of a setting typed, and said again?
#include "presets/setting_words.hpp"

#include <fmt/format.h>

#include <charconv>

#include "presets/nemo_container.hpp"
#include "presets/pipeline_layout.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view not_given = "none";

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Names between commas as bits.
template <class Enum>
bool take_set(unsigned& bits, std::string_view text) {
  unsigned set = 0;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto one = parse_name<Enum>(text.substr(0, comma));
    if (!one) return false;
    set |= 1U << static_cast<unsigned>(*one);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  bits = set;
  return set != 0;
}

template <class Enum>
std::string say_set(unsigned bits) {
  std::string text;
  for (std::size_t i = 0; i < names<Enum>().size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", names<Enum>()[i]);
  }
  return text;
}

// Where no release of Transformer Engine runs the layers.
constexpr std::string_view engine_beside = "local", no_engine = "none";

}  // namespace

bool take_version(std::int64_t& version, std::string_view text) {
  std::int64_t major = 0;
  std::int64_t minor = 0;
  const char* end = text.data() + text.size();
  const auto [dot, major_error] = std::from_chars(text.data(), end, major);
  if (major_error != std::errc{} || dot == end || *dot != '.') return false;
  const auto [rest, minor_error] = std::from_chars(dot + 1, end, minor);
  if (minor_error != std::errc{} || rest != end || major < 0 || major > 99 || minor < 0 ||
      minor > 99)
    return false;
  version = 100 * major + minor;
  return true;
}

bool take_engine_version(RuntimeSpec& r, std::string_view text) {
  std::int64_t& version = r.megatron.transformer_engine_version;
  if (text == engine_beside || text == no_engine) {
    version = text == engine_beside ? MegatronSettings::engine_beside : MegatronSettings::no_engine;
    return true;
  }
  return take_version(version, text) && version >= 100;
}

bool take_core_version(RuntimeSpec& r, std::string_view text) {
  return take_version(r.megatron.megatron_core, text);
}

bool take_deepspeed_version(RuntimeSpec& r, std::string_view text) {
  return take_version(r.deepspeed.version, text);
}

bool take_container(RuntimeSpec& r, std::string_view text) {
  std::int64_t& container = r.megatron.container;
  if (text == not_given) {
    container = 0;
    return true;
  }
  const std::string_view known = nemo_container(text);
  return !known.empty() && take_version(container, known);
}

std::string say_container(const RuntimeSpec& r) {
  const std::int64_t container = r.megatron.container;
  return container == 0 ? std::string(not_given)
                        : fmt::format("{}.{:02}", container / 100, container % 100);
}

std::string version_text(std::int64_t version) {
  return fmt::format("{}.{}", version / 100, version % 100);
}

std::string say_engine_version(const RuntimeSpec& r) {
  const std::int64_t version = r.megatron.transformer_engine_version;
  if (version == MegatronSettings::no_engine) return std::string(no_engine);
  return version == MegatronSettings::engine_beside ? std::string(engine_beside)
                                                    : version_text(version);
}

std::string say_core_version(const RuntimeSpec& r) {
  return version_text(r.megatron.megatron_core);
}

std::string say_deepspeed_version(const RuntimeSpec& r) {
  return version_text(r.deepspeed.version);
}

bool take_optimizer_bytes(RuntimeSpec& r, std::string_view text) {
  const std::optional<std::int64_t> bytes = whole_number(text);
  if (!bytes || (*bytes > 0 && *bytes < 4) || *bytes > 1000) return false;
  r.zero_paper.optimizer_bytes = *bytes;
  return true;
}

std::string say_optimizer_bytes(const RuntimeSpec& r) {
  return fmt::format("{}", r.zero_paper.optimizer_bytes);
}

bool take_date(RuntimeSpec& r, std::string_view text) {
  const bool has_day = text.size() == 10 && text[7] == '-';
  if ((text.size() != 7 && !has_day) || text[4] != '-') return false;
  const auto year = whole_number(text.substr(0, 4));
  const auto month = whole_number(text.substr(5, 2));
  const auto day = has_day ? whole_number(text.substr(8)) : 31;
  if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return false;
  r.fsdp2.recipe_date = 10'000 * *year + 100 * *month + *day;
  constexpr std::int64_t first = 20240301;  // FSDP2 in torchtitan
  return r.fsdp2.recipe_date >= first;
}

std::string say_date(const RuntimeSpec& r) {
  const std::int64_t date = r.fsdp2.recipe_date;
  return fmt::format("{:04}-{:02}-{:02}", date / 10'000, date / 100 % 100, date % 100);
}

bool take_torch_version(RuntimeSpec& r, std::string_view text) {
  if (text != "recipe") return take_version(r.fsdp2.torch_version, text);
  r.fsdp2.torch_version = 0;
  return true;
}

std::string say_torch_version(const RuntimeSpec& r) {
  const std::int64_t version = r.fsdp2.torch_version;
  return version == 0 ? "recipe" : version_text(version);
}

bool take_selective_option(RuntimeSpec& r, std::string_view text) {
  const std::optional<std::int64_t> every = text == "op" ? 0 : whole_number(text);
  if (!every || (*every == 0 && text != "op")) return false;
  r.fsdp2.selective_ac_layers = *every;
  return true;
}

std::string say_selective_option(const RuntimeSpec& r) {
  const std::int64_t every = r.fsdp2.selective_ac_layers;
  return every == 0 ? "op" : fmt::format("{}", every);
}

bool take_modules(RuntimeSpec& r, std::string_view text) {
  return take_set<RecomputeModule>(r.megatron.recompute_modules, text);
}

bool take_graph_scope(RuntimeSpec& r, std::string_view text) {
  return take_set<GraphScope>(r.megatron.cuda_graph_scope, text);
}

std::string say_graph_scope(const RuntimeSpec& r) {
  const unsigned scope = r.megatron.cuda_graph_scope;
  return say_set<GraphScope>(scope == 0 ? 1U : scope);
}

bool take_offloaded(RuntimeSpec& r, std::string_view text) {
  if (text != not_given) return take_set<OffloadModule>(r.megatron.offload_modules, text);
  r.megatron.offload_modules = 0;
  return true;
}

std::string say_offloaded(const RuntimeSpec& r) {
  const unsigned modules = r.megatron.offload_modules;
  return modules == 0 ? std::string(not_given) : say_set<OffloadModule>(modules);
}

std::string say_modules(const RuntimeSpec& r) {
  return say_set<RecomputeModule>(r.megatron.recompute_modules);
}

bool take_pipeline_layout(RuntimeSpec& r, std::string_view text) {
  const auto layout = text == not_given ? std::optional<PipelineLayout>(std::in_place)
                                        : parse_pipeline_layout(text);
  if (layout) r.megatron.pipeline_model_parallel_layout = *layout;
  return layout.has_value();
}

std::string say_pipeline_layout(const RuntimeSpec& r) {
  const PipelineLayout& layout = r.megatron.pipeline_model_parallel_layout;
  return layout.given() ? pipeline_layout_text(layout) : std::string(not_given);
}

}  // namespace zeroplan
