// Which options does a plan stand for? Front door: import_plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "presets/configuration/mapping.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

// A field of a plan's layout and its option; dp and gradient_accumulation follow from the others.
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
                                {"offload", "--offload", names<Offload>()}};

constexpr Range any_count{1, 1'000'000};
constexpr Range any_number{1, 100'000'000};

std::string text_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string value_of(const JsonObject& layout, const PlanField& field) {
  if (field.names.empty()) return std::to_string(layout.integer(field.key, any_number));
  std::string text = text_of(layout.value().at(std::string(field.key)));
  if (std::find(field.names.begin(), field.names.end(), text) == field.names.end()) {
    layout.fail(fmt::format("'{}' is {}: must be one of {}", field.key, in_quotes(text),
                            fmt::join(field.names, ", ")));
  }
  return text;
}

// A name of the plan, which goes to the terminal and onto a command line.
std::string name_in(const JsonObject& object, std::string_view key) {
  std::string name = object.string(key);
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!plain) object.fail(fmt::format("'{}' is {}: not a name", key, in_quotes(name)));
  return name;
}

}  // namespace

ImportedConfiguration import_plan(std::string_view text, std::string_view where) {
  const nlohmann::json document = parse_json(text, where);
  const JsonObject plan(document, std::string(where));
  if (plan.find_string("schema") != plan_schema) {
    plan.fail("not a plan: its 'schema' must be 'zeroplan.fit/1', as zeroplan fit --json writes");
  }
  const JsonObject cluster = plan.object("cluster");
  ImportedConfiguration result{.format = "plan", .model = name_in(plan.object("model"), "name")};
  const auto add = [&](std::string_view flag, std::string value) {
    result.options.push_back({std::string(flag), std::move(value)});
  };
  add("--gpus", fmt::format("{}x{}", cluster.integer("gpus", any_count), name_in(cluster, "gpu")));
  const std::string runtime = value_of(plan, {"runtime", "--runtime", names<Runtime>()});
  add("--runtime", runtime);
  const JsonObject layout = plan.object("layout");
  for (const PlanField& field : fields) {
    if (layout.has(field.key)) add(field.flag, value_of(layout, field));
  }
  if (!plan.has("settings")) return result;
  std::vector<Override> settings;
  for (const auto& [key, value] : plan.object("settings").value().items()) {
    settings.emplace_back(key, text_of(value));
    add("--set", fmt::format("{}={}", key, settings.back().second));
  }
  try {
    load_runtime(*parse_name<Runtime>(runtime), settings);
  } catch (const InputError& error) {
    plan.fail(error.what());
  }
  return result;
}

}  // namespace zeroplan
