// Which options does a plan stand for? Front door: import_plan.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/configuration/mapping.hpp"
#include "presets/configuration/plan_layout.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

constexpr Range any_count{1, 10'000'000};
constexpr Range any_memory{1, std::int64_t{1} << 50};

// A name of the plan, which goes to the terminal and onto a command line.
std::string name_in(const JsonObject& object, std::string_view key) {
  std::string name = object.string(key);
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!plain) object.fail(fmt::format("'{}' is {}: not a name", key, in_quotes(name)));
  return name;
}

// The GPUs, by their cluster where the plan says which.
void add_cluster(const JsonObject& cluster, ImportedConfiguration& result) {
  const std::int64_t gpus = cluster.integer("gpus", any_count);
  if (cluster.has("preset")) {
    result.options.push_back({"--cluster", name_in(cluster, "preset")});
  }
  if (cluster.has("file")) result.cluster_config = cluster.object("file").value().dump();
  const bool counted = cluster.has("preset") || cluster.has("file");
  result.options.push_back({"--gpus", counted
                                          ? std::to_string(gpus)
                                          : fmt::format("{}x{}", gpus, name_in(cluster, "gpu"))});
  if (const auto margin = cluster.find_integer("margin_bytes", any_memory)) {
    result.options.push_back({"--margin", fmt::format("{}B", *margin)});
  }
}

ImportedConfiguration read_plan(const JsonObject& plan) {
  const JsonObject model = plan.object("model");
  ImportedConfiguration result{.format = "plan", .model = name_in(model, "name")};
  if (model.has("config")) {
    result.model_config = model.object("config").value().dump();
    result.as = model.find_string("as").value_or("");
    result.notes.emplace_back("the plan itself carries its model: no catalog has it");
  }
  add_cluster(plan.object("cluster"), result);
  const auto add = [&](std::string_view flag, std::string value) {
    result.options.push_back({std::string(flag), std::move(value)});
  };
  const std::string runtime = plan_value(plan, "runtime", names<Runtime>());
  add("--runtime", runtime);
  for (TypedOption& option : layout_of_plan(plan.object("layout"))) {
    result.options.push_back(std::move(option));
  }
  if (!plan.has("settings")) return result;
  std::vector<Override> settings;
  for (const auto& [key, value] : plan.object("settings").value().items()) {
    settings.emplace_back(key, plan_text(value));
    add("--set", fmt::format("{}={}", key, settings.back().second));
  }
  try {
    load_runtime(*parse_name<Runtime>(runtime), settings);
  } catch (const InputError& error) {
    plan.fail(error.what());
  }
  return result;
}

// The plan of this row of a sweep.
ImportedConfiguration read_row(const JsonObject& sweep, std::optional<std::int64_t> row) {
  const nlohmann::json& value = sweep.value();
  if (!value.contains("plans") || !value.at("plans").is_array() || value.at("plans").empty()) {
    sweep.fail("holds no plans");
  }
  const nlohmann::json& plans = value.at("plans");
  const auto count = static_cast<std::int64_t>(plans.size());
  if (!row || *row > count) {
    const auto best = sweep.find_integer("recommended", {0, count - 1});
    sweep.fail(fmt::format("holds {} plans: say which, FILE#1 to FILE#{}{}", count, count,
                           best ? fmt::format("; #{} is recommended", *best + 1) : ""));
  }
  const nlohmann::json& plan = plans.at(static_cast<std::size_t>(*row - 1));
  return read_plan(JsonObject(plan, fmt::format("{}: plan {}", sweep.where(), *row)));
}

// Nothing where a program that did not say so made it.
std::map<std::string, std::string> versions_of(const JsonObject& document) {
  std::map<std::string, std::string> versions;
  if (!document.has("versions")) return versions;
  for (const auto& [what, value] : document.object("versions").value().items()) {
    if (value.is_string()) versions[printable(what)] = printable(value.get<std::string>());
  }
  return versions;
}

ImportedConfiguration read(const JsonObject& document, std::optional<std::int64_t> row) {
  const auto schema = document.find_string("schema");
  if (schema == sweep_schema) return read_row(document, row);
  if (schema != plan_schema) {
    document.fail(
        "not a plan: its 'schema' must be 'zeroplan.fit/1' or 'zeroplan.sweep/1', as zeroplan fit "
        "--json and sweep --json write");
  }
  if (row) document.fail("is one plan, without rows: drop #");
  return read_plan(document);
}

}  // namespace

ImportedConfiguration import_plan(std::string_view text,
                                  std::string_view where,
                                  std::optional<std::int64_t> row) {
  const nlohmann::json document = parse_json(text, where);
  const JsonObject plan(document, std::string(where));
  ImportedConfiguration result = read(plan, row);
  result.versions = versions_of(plan);
  return result;
}

}  // namespace zeroplan
