// How are keys and values written as JSON? Front doors: read_json, write_json.
#include "presets/configuration/entries.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

void flatten(std::vector<Entry>& out, const std::string& prefix, const nlohmann::json& object) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten(out, prefix + key + ".", value);
    } else if (!value.is_null()) {
      out.push_back({prefix + key, ConfigValue(value)});
    }
  }
}

}  // namespace

std::vector<Entry> read_json(std::string_view text, std::string_view where) {
  const nlohmann::json document = parse_json(text, where);
  const JsonObject object(document, std::string(where));
  std::vector<Entry> entries;
  flatten(entries, "", object.value());
  return entries;
}

std::string write_json(const std::vector<Entry>& entries) {
  ConfigValue document = ConfigValue::object();
  for (const Entry& entry : entries) {
    ConfigValue* object = &document;
    std::string_view rest = entry.key;
    for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      object = &(*object)[std::string(rest.substr(0, dot))];
      rest = rest.substr(dot + 1);
    }
    (*object)[std::string(rest)] = entry.value;
  }
  return document.dump(2) + "\n";
}

}  // namespace zeroplan
