// How are keys and values written as YAML? Front doors: read_yaml, write_yaml.
#include <fmt/format.h>

#include "presets/configuration/plain_values.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Where a key ends: at a colon before a blank or the end of the line.
std::size_t colon_of(std::string_view line) {
  if (line.front() == '{' || line.front() == '[') return line.npos;
  std::size_t from = 0;
  if (line.front() == '"' || line.front() == '\'') from = line.find(line.front(), 1);
  for (std::size_t at = line.find(':', from); at != line.npos; at = line.find(':', at + 1)) {
    if (at + 1 == line.size() || line[at + 1] == ' ' || line[at + 1] == '\t') return at;
  }
  return line.npos;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

// As YAML 1.1 reads it, which the runtimes' readers do.
ConfigValue yaml_value(std::string_view text) {
  if (is_one_of(text, {"True", "TRUE", "yes", "Yes", "on", "On"})) return true;
  if (is_one_of(text, {"False", "FALSE", "no", "No", "NO", "off", "Off"})) return false;
  return plain_value(text);
}

class Yaml {
 public:
  explicit Yaml(std::string_view where) : where_(where), entries_(where) {}

  void line(std::string_view text, std::size_t number) {
    const std::size_t indent = text.find_first_not_of(' ');
    if (block_ && indent > *block_) return;  // of a text over several lines
    block_.reset();
    text = trimmed(text);
    if (text == "---" && entries_.empty()) return;
    if (text == "---") fail_at_line(where_, number, "one document alone is read");
    if (text == "-" || text.starts_with("- ")) {
      item(text, indent, number);
    } else {
      while (!open_.empty() && open_.back().indent >= indent) open_.pop_back();
      pair(text, indent, number);
    }
  }

  std::vector<Entry> take() { return entries_.take(); }

 private:
  struct Level {
    std::size_t indent;
    std::string key;
    bool is_item = false;
    std::size_t items = 0;
  };

  std::string path() const {
    std::string text;
    for (const Level& level : open_) text += (text.empty() ? "" : ".") + level.key;
    return text;
  }

  // One of a list, which may stand as far left as the key it belongs to.
  void item(std::string_view text, std::size_t indent, std::size_t number) {
    while (!open_.empty() && (open_.back().indent > indent ||
                              (open_.back().indent == indent && open_.back().is_item))) {
      open_.pop_back();
    }
    if (open_.empty()) fail_at_line(where_, number, "must be key: value; a list needs a key");
    const std::size_t index = open_.back().items++;
    const std::string_view rest = trimmed(text.substr(1));
    if (!rest.empty() && colon_of(rest) != rest.npos) {
      open_.push_back({.indent = indent, .key = std::to_string(index), .is_item = true});
      pair(rest, indent + text.size() - rest.size(), number);
    } else if (index == 0) {
      entries_.add({path(), ConfigValue::array({yaml_value(rest)})}, number);
    } else if (!entries_.empty() && entries_.last().value.is_array()) {
      entries_.last().value.push_back(yaml_value(rest));
    } else {
      fail_at_line(where_, number, "a list must be of values or of mappings alone");
    }
  }

  void pair(std::string_view text, std::size_t indent, std::size_t number) {
    const std::size_t colon = colon_of(text);
    if (colon == text.npos) fail_at_line(where_, number, "must be key: value");
    std::string_view own = trimmed(text.substr(0, colon));
    const bool quoted = own.size() > 1 && (own.front() == '"' || own.front() == '\'');
    if (quoted) own = own.substr(1, own.size() - 2);
    const std::string_view value = trimmed(text.substr(colon + 1));
    if (own == "<<" || value.starts_with('&') || value.starts_with('*')) {
      fail_at_line(where_, number, "anchors are not read: write the keys out");
    }
    if (value.empty()) {
      open_.push_back({.indent = indent, .key = std::string(own)});
      return;
    }
    if (is_one_of(value, {"null", "~", "Null", "NULL"})) return;  // as if it were not there
    if (value.front() == '|' || value.front() == '>') block_ = indent;
    const std::string before = path();
    entries_.add(
        {before.empty() ? std::string(own) : before + "." + std::string(own), yaml_value(value)},
        number);
  }

  std::string_view where_;
  Reading entries_;
  std::vector<Level> open_;
  std::optional<std::size_t> block_;  // the indent of a key whose text follows
};

}  // namespace

std::vector<Entry> read_yaml(std::string_view text, std::string_view where) {
  Yaml yaml(where);
  each_line(text, [&](std::string_view line, std::size_t number) { yaml.line(line, number); });
  return yaml.take();
}

std::string write_yaml(const std::vector<Entry>& entries) {
  std::string text;
  std::vector<std::string> open;
  for (const Entry& entry : entries) {
    std::vector<std::string> path;
    std::string_view rest = entry.key;
    for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      path.emplace_back(rest.substr(0, dot));
      rest = rest.substr(dot + 1);
    }
    std::size_t shared = 0;
    while (shared < path.size() && shared < open.size() && path[shared] == open[shared]) ++shared;
    for (std::size_t i = shared; i < path.size(); ++i) {
      text += std::string(2 * i, ' ') + path[i] + ":\n";
    }
    const std::string value =
        entry.value.is_string() ? entry.value.get<std::string>() : entry.value.dump();
    text += fmt::format("{}{}: {}\n", std::string(2 * path.size(), ' '), rest, value);
    open = std::move(path);
  }
  return text;
}

}  // namespace zeroplan
