// What are a runtime's settings at? Front door: load_runtime.
#include "presets/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/nemo_container.hpp"
#include "presets/preset_file.hpp"
#include "presets/runtime_settings.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::json;

constexpr std::string_view container_key = "container";

// The text on one line, and cut short.
std::string plain(std::string_view text) {
  const std::string quoted = in_quotes(text);
  return quoted.substr(1, quoted.size() - 2);
}

[[noreturn]] void refuse(std::string_view key, std::string_view text, std::string_view allowed) {
  throw InputError(fmt::format("--set {}={}: the value must be {}", key, plain(text), allowed));
}

double parse_number(std::string_view key, std::string_view text, std::string_view allowed) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    refuse(key, text, allowed);
  return value;
}

// Gives a setting its value from text; one overload a kind.
struct Assignment {
  RuntimeSpec& spec;
  std::string_view key;
  std::string_view text;

  void operator()(const Count& count) const {
    // A number as the runtimes' own files write it, 5e8 included.
    const std::string allowed =
        fmt::format("a whole number from {} to {:g}", count.least, static_cast<double>(count.most));
    const double value = parse_number(key, text, allowed);
    if (value != std::floor(value) || value < static_cast<double>(count.least) ||
        value > static_cast<double>(count.most)) {
      refuse(key, text, allowed);
    }
    count.place(spec) = static_cast<std::int64_t>(value);
  }
  void operator()(const Flag& flag) const {
    const bool yes = text == "true" || text == "on" || text == "1";
    if (!yes && text != "false" && text != "off" && text != "0") refuse(key, text, "true or false");
    flag.place(spec) = yes;
  }
  void operator()(const FormatBytes& format) const { format.place(spec) = format_bytes(); }
  void operator()(const IsFp32& fp32) const { fp32.place(spec) = format_bytes() == 4; }
  void operator()(const Rate& rate) const {
    const double value = parse_number(key, text, "from 0 to 1");
    if (value < 0 || value > 1) refuse(key, text, "from 0 to 1");
    rate.place(spec) = value;
  }
  void operator()(const Words& words) const {
    if (!words.take(spec, text)) refuse(key, text, words.allowed);
  }

 private:
  std::int64_t format_bytes() const {
    if (text == "fp32" || text == "float32") return 4;
    if (text == "bf16" || text == "bfloat16" || text == "fp16" || text == "float16") return 2;
    refuse(key, text, "fp32, bf16 or fp16");
  }
};

// The value of a setting as text; one overload a kind.
struct Saying {
  RuntimeSpec spec;  // a copy: places are not const

  std::string operator()(const Count& count) { return fmt::format("{}", count.place(spec)); }
  std::string operator()(const Flag& flag) { return flag.place(spec) ? "true" : "false"; }
  std::string operator()(const FormatBytes& format) { return format_name(format.place(spec) == 4); }
  std::string operator()(const IsFp32& fp32) { return format_name(fp32.place(spec)); }
  std::string operator()(const Rate& rate) { return fmt::format("{}", rate.place(spec)); }
  std::string operator()(const Words& words) { return words.say(spec); }

 private:
  static std::string format_name(bool wide) { return wide ? "fp32" : "bf16"; }
};

const RuntimeSetting* find_setting(Runtime kind, std::string_view key) {
  for (const RuntimeSetting& s : runtime_settings()) {
    if (s.runtime == kind && s.key == key) return &s;
  }
  return nullptr;
}

void assign(RuntimeSpec& spec, std::string_view key, std::string_view text) {
  if (const RuntimeSetting* setting = find_setting(spec.kind, key)) {
    std::visit(Assignment{spec, key, text}, setting->target);
    return;
  }
  const std::vector<std::string> keys = runtime_setting_keys(spec.kind);
  const std::string meant = near_name(key, keys);
  const std::string hint =
      !meant.empty() ? "nearest is " + meant
                     : fmt::format("zeroplan presets runtimes {} lists them", name_of(spec.kind));
  throw InputError(
      fmt::format("--set {}: {} has no such setting; {}", plain(key), name_of(spec.kind), hint));
}

// The settings of the container that is asked for, the last one said.
std::vector<Override> defaults_of_container(Runtime kind, const std::vector<Override>& overrides) {
  if (kind != Runtime::megatron) return {};
  const auto asked = std::find_if(overrides.rbegin(), overrides.rend(),
                                  [](const Override& o) { return o.first == container_key; });
  if (asked == overrides.rend()) return {};
  return container_settings(nemo_container(asked->second));
}

}  // namespace

RuntimeSpec load_runtime(Runtime kind, const std::vector<Override>& overrides) {
  RuntimeSpec spec{.kind = kind};
  const Json defaults = Json::parse(preset_json("runtimes", name_of(kind))).at("settings");
  for (const auto& [key, entry] : defaults.items()) {
    const Json& value = entry.at("default");
    assign(spec, key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& [key, value] : defaults_of_container(kind, overrides)) assign(spec, key, value);
  for (const auto& [key, value] : overrides) assign(spec, key, value);
  return spec;
}

std::string setting_text(const RuntimeSpec& spec, std::string_view key) {
  const RuntimeSetting* setting = find_setting(spec.kind, key);
  assert(setting != nullptr);
  return std::visit(Saying{spec}, setting->target);
}

std::vector<Override> changed_settings(const RuntimeSpec& spec) {
  const RuntimeSpec defaults = load_runtime(spec.kind, {});
  const bool contained = spec.kind == Runtime::megatron && spec.megatron.container > 0;
  const RuntimeSpec of_container =
      contained ? load_runtime(spec.kind,
                               {{std::string(container_key), setting_text(spec, container_key)}})
                : defaults;
  std::vector<Override> changed;
  for (const std::string& key : runtime_setting_keys(spec.kind)) {
    std::string text = setting_text(spec, key);
    const bool own = text == setting_text(defaults, key) && text == setting_text(of_container, key);
    if (!own) changed.emplace_back(key, std::move(text));
  }
  return changed;
}

std::vector<std::string> runtime_setting_keys(Runtime kind) {
  std::vector<std::string> keys;
  for (const RuntimeSetting& s : runtime_settings()) {
    if (s.runtime == kind) keys.emplace_back(s.key);
  }
  return keys;
}

}  // namespace zeroplan
