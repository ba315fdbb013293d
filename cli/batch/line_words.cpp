// What does one line ask? Front door: words_of_line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/batch/batch.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::string value_of(const std::string& name, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number()) return value.dump();
  throw InputError(fmt::format("{}: must be a text, a number, true or false", in_quotes(name)));
}

// Settings have names of their own: {"set": {"overlap_grad_reduce": true}}.
void add_settings(Parameters& parameters, const nlohmann::json& settings) {
  for (const auto& [key, value] : settings.items()) {
    const std::string text = value.is_boolean() ? value.dump() : value_of(key, value);
    parameters.emplace_back("set", key + "=" + text);
  }
}

nlohmann::json object_of(const std::string& line) {
  std::set<std::string> keys;
  const auto once = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& key) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 && !keys.insert(key).second) {
      throw InputError(fmt::format("{} is said twice", in_quotes(key.get<std::string>())));
    }
    return true;
  };
  nlohmann::json object = nlohmann::json::parse(line, once, false);
  if (!object.is_object()) throw InputError("a line that begins with { must be a JSON object");
  return object;
}

Parameters parameters_of_object(const std::string& line) {
  const nlohmann::json object = object_of(line);
  Parameters parameters;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    std::string name = key;
    std::ranges::replace(name, '_', '-');  // as the layout of an answer spells them
    if (name == "set" && value.is_object()) {
      add_settings(parameters, value);
    } else if (name == "set" && value.is_array()) {
      for (const nlohmann::json& one : value) parameters.emplace_back(name, value_of(key, one));
    } else {
      parameters.emplace_back(name, value_of(key, value));
    }
  }
  return parameters;
}

}  // namespace

std::vector<std::string> words_of_line(const CLI::App& command, const std::string& line) {
  if (line.starts_with('{')) return words_of(command, parameters_of_object(line));
  return CLI::detail::split_up(line);
}

}  // namespace zeroplan
