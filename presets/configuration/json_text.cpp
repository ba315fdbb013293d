// How are keys and values written as JSON? Front doors: read_json, write_json, without_comments.
#include <algorithm>

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

// Past the string that begins at `i`.
std::size_t end_of_json_string(std::string_view text, std::size_t i) {
  for (++i; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') ++i;
  }
  return std::min(i + 1, text.size());
}

// Past the comment that begins at `i`; `i` where none does.
std::size_t end_of_comment(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("/*")) {
    const std::size_t end = text.find("*/", i + 2);
    return end == text.npos ? i : end + 2;
  }
  if (!rest.starts_with('#') && !rest.starts_with("//")) return i;
  return std::min(text.find('\n', i), text.size());
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string plain(text);
  std::size_t comma = text.npos;  // after which nothing but blanks and comments stands so far
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = end_of_comment(text, i); end > i) {
      for (; i < end; ++i) {
        if (text[i] != '\n') plain[i] = ' ';
      }
      continue;
    }
    const char c = text[i];
    if ((c == '}' || c == ']') && comma != text.npos) plain[comma] = ' ';
    if (c == ',') {
      comma = i;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      comma = text.npos;
    }
    i = c == '"' ? end_of_json_string(text, i) : i + 1;
  }
  return plain;
}

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
