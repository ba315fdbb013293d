// Which options does a layout stand for? Front door: layout_of_plan.
#include "presets/configuration/plan_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// A field of a layout and its option.
struct PlanField {
  std::string_view key;
  std::string_view flag;
  std::span<const std::string_view> names;  // that it takes; none: it is a number
};
constexpr std::string_view switched[] = {"on", "off"};
constexpr PlanField fields[] = {{"tp", "--tp", {}},
                                {"pp", "--pp", {}},
                                {"vpp", "--vpp", {}},
                                {"cp", "--cp", {}},
                                {"ep", "--ep", {}},
                                {"etp", "--etp", {}},
                                {"zero", "--zero", names<ZeroStage>()},
                                {"hsdp", "--hsdp", {}},
                                {"sequence_parallel", "--sequence-parallel", switched},
                                {"micro_batch", "--micro-batch", {}},
                                {"global_batch", "--global-batch", {}},
                                {"sequence_length", "--seq", {}},
                                {"schedule", "--schedule", names<Schedule>()},
                                {"recompute", "--recompute", names<Recompute>()},
                                {"precision", "--precision", names<Precision>()},
                                {"optimizer", "--optimizer", names<OptimizerKind>()},
                                {"attention", "--attention", names<AttentionKernel>()},
                                {"attention_flops", "--attention-flops", names<ScoreCount>()},
                                {"offload", "--offload", names<Offload>()}};

constexpr Range any_number{1, 100'000'000};

}  // namespace

std::string plan_text(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string plan_value(const JsonObject& object,
                       std::string_view key,
                       std::span<const std::string_view> allowed) {
  if (!object.has(key)) object.fail(fmt::format("'{}' is missing", key));
  std::string text = plan_text(object.value().at(std::string(key)));
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    object.fail(fmt::format("'{}' is {}: must be one of {}", key, in_quotes(text),
                            fmt::join(allowed, ", ")));
  }
  return text;
}

std::vector<TypedOption> layout_of_plan(const JsonObject& layout) {
  std::vector<TypedOption> options;
  for (const PlanField& field : fields) {
    if (!layout.has(field.key)) continue;
    std::string value = field.names.empty() ? std::to_string(layout.integer(field.key, any_number))
                                            : plan_value(layout, field.key, field.names);
    options.push_back({std::string(field.flag), std::move(value)});
  }
  return options;
}

}  // namespace zeroplan
