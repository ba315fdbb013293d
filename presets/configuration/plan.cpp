// Which options does a plan stand for? Front door: import_plan.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "presets/configuration/mapping.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

std::string text_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

constexpr Range any_count{1, 1'000'000};

}  // namespace

ImportedConfiguration import_plan(std::string_view text, std::string_view where) {
  const nlohmann::json document = parse_json(text, where);
  const JsonObject plan(document, std::string(where));
  if (plan.find_string("schema") != plan_schema) {
    plan.fail("not a plan: its 'schema' must be 'zeroplan.fit/1', as zeroplan fit --json writes");
  }
  const JsonObject cluster = plan.object("cluster");
  ImportedConfiguration result{.format = "plan", .model = plan.object("model").string("name")};
  const auto add = [&](std::string_view flag, std::string value) {
    result.options.push_back({std::string(flag), std::move(value)});
  };
  add("--gpus", fmt::format("{}x{}", cluster.integer("gpus", any_count), cluster.string("gpu")));
  add("--runtime", plan.string("runtime"));
  const JsonObject layout = plan.object("layout");
  for (const LayoutField& field : layout_fields) {
    if (layout.has(field.key)) add(field.flag, text_of(layout.value().at(std::string(field.key))));
  }
  if (plan.has("settings")) {
    for (const auto& [key, value] : plan.object("settings").value().items()) {
      add("--set", fmt::format("{}={}", key, text_of(value)));
    }
  }
  return result;
}

}  // namespace zeroplan
