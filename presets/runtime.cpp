// What are a runtime's settings? Front door: load_runtime.
#include "presets/runtime.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::json;

// Where a key's value goes; the kind of place says which values it takes.
struct Count {
  std::int64_t& (*place)(RuntimeSpec&);
  std::int64_t least = 0;
};
struct Flag {
  bool& (*place)(RuntimeSpec&);
};
struct FormatBytes {
  std::int64_t& (*place)(RuntimeSpec&);
};  // fp32: 4, bf16 and fp16: 2
struct IsFp32 {
  bool& (*place)(RuntimeSpec&);
};

struct Setting {
  Runtime runtime;
  std::string_view key;
  std::variant<Count, Flag, FormatBytes, IsFp32> target;
};

using R = RuntimeSpec;
const Setting settings[] = {
    {Runtime::megatron, "make_vocab_size_divisible_by",
     Count{[](R& r) -> std::int64_t& { return r.megatron.make_vocab_size_divisible_by; }, 1}},
    {Runtime::megatron, "grad_reduce_in_bf16",
     Flag{[](R& r) -> bool& { return r.megatron.grad_reduce_in_bf16; }}},
    {Runtime::megatron, "gradient_accumulation_fusion",
     Flag{[](R& r) -> bool& { return r.megatron.gradient_accumulation_fusion; }}},
    {Runtime::megatron, "cross_entropy_loss_fusion",
     Flag{[](R& r) -> bool& { return r.megatron.cross_entropy_loss_fusion; }}},
    {Runtime::megatron, "exp_avg_dtype",
     FormatBytes{[](R& r) -> std::int64_t& { return r.megatron.exp_avg_bytes; }}},
    {Runtime::megatron, "exp_avg_sq_dtype",
     FormatBytes{[](R& r) -> std::int64_t& { return r.megatron.exp_avg_sq_bytes; }}},
    {Runtime::megatron, "account_for_embedding_in_pipeline_split",
     Flag{[](R& r) -> bool& { return r.megatron.account_for_embedding_in_pipeline_split; }}},
    {Runtime::megatron, "account_for_loss_in_pipeline_split",
     Flag{[](R& r) -> bool& { return r.megatron.account_for_loss_in_pipeline_split; }}},
    {Runtime::megatron, "decoder_first_pipeline_num_layers",
     Count{[](R& r) -> std::int64_t& { return r.megatron.decoder_first_pipeline_num_layers; }}},
    {Runtime::megatron, "decoder_last_pipeline_num_layers",
     Count{[](R& r) -> std::int64_t& { return r.megatron.decoder_last_pipeline_num_layers; }}},
    {Runtime::fsdp2, "training.dtype",
     FormatBytes{[](R& r) -> std::int64_t& { return r.fsdp2.parameter_bytes; }}},
    {Runtime::fsdp2, "training.mixed_precision_param",
     FormatBytes{[](R& r) -> std::int64_t& { return r.fsdp2.mixed_precision_bytes; }}},
    {Runtime::fsdp2, "loss_chunks",
     Count{[](R& r) -> std::int64_t& { return r.fsdp2.loss_chunks; }, 1}},
    {Runtime::ddp, "gradient_as_bucket_view",
     Flag{[](R& r) -> bool& { return r.ddp.gradient_as_bucket_view; }}},
    {Runtime::deepspeed, "reduce_bucket_size",
     Count{[](R& r) -> std::int64_t& { return r.deepspeed.reduce_bucket_size; }}},
    {Runtime::deepspeed, "overlap_comm",
     Flag{[](R& r) -> bool& { return r.deepspeed.overlap_comm; }}},
    {Runtime::deepspeed, "data_types.grad_accum_dtype",
     IsFp32{[](R& r) -> bool& { return r.deepspeed.fp32_grad_accumulation; }}},
    {Runtime::deepspeed, "stage3_prefetch_bucket_size",
     Count{[](R& r) -> std::int64_t& { return r.deepspeed.stage3_prefetch_bucket_size; }}},
    {Runtime::deepspeed, "stage3_max_live_parameters",
     Count{[](R& r) -> std::int64_t& { return r.deepspeed.stage3_max_live_parameters; }}},
    {Runtime::deepspeed, "stage3_max_reuse_distance",
     Count{[](R& r) -> std::int64_t& { return r.deepspeed.stage3_max_reuse_distance; }}},
    {Runtime::deepspeed, "sub_group_size",
     Count{[](R& r) -> std::int64_t& { return r.deepspeed.sub_group_size; }}},
    {Runtime::zero_paper, "K",
     Count{[](R& r) -> std::int64_t& { return r.zero_paper.optimizer_bytes; }}},
};

[[noreturn]] void wrong_value(const Setting& s, std::string_view text, std::string_view allowed) {
  throw InputError(fmt::format("--set {}={}: the value must be {}", s.key, text, allowed));
}

// A count may be written as the runtimes' own files write it, 5e8 included.
std::int64_t parse_count(const Setting& s, std::string_view text, std::int64_t least) {
  constexpr double largest = 1e15;
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole =
      error == std::errc{} && end == text.data() + text.size() && value == std::floor(value);
  if (!whole || value < static_cast<double>(least) || value > largest) {
    wrong_value(s, text, fmt::format("a whole number from {} to 1e15", least));
  }
  return static_cast<std::int64_t>(value);
}

bool parse_flag(const Setting& s, std::string_view text) {
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  wrong_value(s, text, "true or false");
}

std::int64_t format_bytes(const Setting& s, std::string_view text) {
  if (text == "fp32" || text == "float32") return 4;
  if (text == "bf16" || text == "bfloat16" || text == "fp16" || text == "float16") return 2;
  wrong_value(s, text, "fp32, bf16 or fp16");
}

void assign(const Setting& s, RuntimeSpec& spec, std::string_view text) {
  if (const auto* count = std::get_if<Count>(&s.target)) {
    count->place(spec) = parse_count(s, text, count->least);
  }
  if (const auto* flag = std::get_if<Flag>(&s.target)) flag->place(spec) = parse_flag(s, text);
  if (const auto* format = std::get_if<FormatBytes>(&s.target))
    format->place(spec) = format_bytes(s, text);
  if (const auto* fp32 = std::get_if<IsFp32>(&s.target))
    fp32->place(spec) = format_bytes(s, text) == 4;
}

const Setting* find_setting(Runtime kind, std::string_view key) {
  for (const Setting& s : settings) {
    if (s.runtime == kind && s.key == key) return &s;
  }
  return nullptr;
}

}  // namespace

RuntimeSpec load_runtime(Runtime kind, const std::vector<Override>& overrides) {
  RuntimeSpec spec{.kind = kind};
  const Json defaults = Json::parse(preset_json("runtimes", name_of(kind))).at("settings");
  for (const auto& [key, entry] : defaults.items()) {
    const Setting* setting = find_setting(kind, key);
    if (setting == nullptr)
      throw InputError(fmt::format("preset runtimes/{}: unknown setting {}", name_of(kind), key));
    const Json& value = entry.at("default");
    assign(*setting, spec, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& [key, value] : overrides) {
    const Setting* setting = find_setting(kind, key);
    if (setting == nullptr) {
      const std::vector<std::string> keys = runtime_setting_keys(kind);
      const std::string hint = keys.empty() ? std::string("it has no settings")
                                            : fmt::format("nearest is {}", nearest(key, keys));
      throw InputError(
          fmt::format("--set {}: {} has no such setting; {}", key, name_of(kind), hint));
    }
    assign(*setting, spec, value);
  }
  return spec;
}

std::vector<std::string> runtime_setting_keys(Runtime kind) {
  std::vector<std::string> keys;
  for (const Setting& s : settings) {
    if (s.runtime == kind) keys.emplace_back(s.key);
  }
  return keys;
}

}  // namespace zeroplan
