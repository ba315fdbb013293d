// How are keys and values written as arguments, TOML and YAML? Front doors: read_arguments,
// read_toml, read_yaml.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "presets/configuration/entries.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Up to a '#' outside quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

// Calls `visit` with each line that says something, its comment cut off, and its number.
template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = without_comment(text.substr(0, end));
    if (!trimmed(line).empty()) visit(line, number);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  }
}

ConfigValue single_value(std::string_view text) {
  text = trimmed(text);
  if (text == "true" || text == "false") return text == "true";
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  if (quoted) return std::string(text.substr(1, text.size() - 2));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  return std::string(text);
}

// Or a list of them; no format has lists of lists.
ConfigValue plain_value(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return single_value(text);
  ConfigValue list = ConfigValue::array();
  text = text.substr(1, text.size() - 2);
  while (!trimmed(text).empty()) {
    const std::size_t comma = text.find(',');
    list.push_back(single_value(text.substr(0, comma)));
    text = comma == text.npos ? std::string_view{} : text.substr(comma + 1);
  }
  return list;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  line = trimmed(line);
  while (!line.empty()) {
    const bool quoted = line.front() == '"' || line.front() == '\'';
    const std::size_t end = quoted ? line.find(line.front(), 1) : line.find_first_of(" \t=\\");
    words.emplace_back(line.substr(quoted ? 1 : 0, quoted && end != line.npos ? end - 1 : end));
    line = end == line.npos ? std::string_view{} : trimmed(line.substr(end + 1));
  }
  std::erase(words, "");
  return words;
}

[[noreturn]] void fail(std::string_view where, std::size_t line, std::string_view what) {
  throw InputError(fmt::format("{}: line {}: {}", where, line, what));
}

// The entries so far, each key once.
class Reading {
 public:
  explicit Reading(std::string_view where) : where_(where) {}

  void add(Entry entry, std::size_t line) {
    if (!keys_.insert(entry.key).second) {
      fail(where_, line, fmt::format("key {} is given twice", in_quotes(entry.key)));
    }
    entries_.push_back(std::move(entry));
  }
  bool empty() const { return entries_.empty(); }
  Entry& last() { return entries_.back(); }
  std::vector<Entry> take() { return std::move(entries_); }

 private:
  std::string_view where_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string> keys_;
};

}  // namespace

std::vector<Entry> read_arguments(std::string_view text, std::string_view where) {
  Reading entries(where);
  each_line(text, [&](std::string_view line, std::size_t number) {
    for (const std::string& word : words_of(line)) {
      if (word.starts_with("--")) {
        entries.add({word.substr(2), nullptr}, number);
      } else if (entries.empty()) {
        fail(where, number, fmt::format("{}: an argument begins with --", in_quotes(word)));
      } else {
        ConfigValue& value = entries.last().value;
        if (value.is_null()) {
          value = word;
        } else {
          if (!value.is_array()) value = ConfigValue::array({value});
          value.push_back(word);
        }
      }
    }
  });
  return entries.take();
}

std::string write_arguments(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) {
    text += "--" + entry.key;
    const auto append = [&](const ConfigValue& value) {
      text += " " + (value.is_string() ? value.get<std::string>() : value.dump());
    };
    if (entry.value.is_array()) {
      for (const ConfigValue& item : entry.value) append(item);
    } else if (!entry.value.is_null()) {
      append(entry.value);
    }
    text += "\n";
  }
  return text;
}

std::vector<Entry> read_toml(std::string_view text, std::string_view where) {
  Reading entries(where);
  std::string table;
  std::unordered_set<std::string> tables;
  each_line(text, [&](std::string_view line, std::size_t number) {
    line = trimmed(line);
    if (line.front() == '[') {
      if (line.back() != ']' || line.starts_with("[[")) fail(where, number, "not a [table]");
      table = trimmed(line.substr(1, line.size() - 2));
      if (!tables.insert(table).second) {
        fail(where, number, fmt::format("table {} is declared twice", in_quotes(table)));
      }
      return;
    }
    const std::size_t equals = line.find('=');
    if (equals == line.npos) fail(where, number, "must be key = value");
    const std::string key(trimmed(line.substr(0, equals)));
    entries.add({table.empty() ? key : table + "." + key, plain_value(line.substr(equals + 1))},
                number);
  });
  return entries.take();
}

std::string write_toml(const std::vector<Entry>& entries) {
  struct Table {
    std::string name;
    std::string keys;
  };
  std::vector<Table> tables;  // TOML declares each once, wherever its keys stand in the list
  for (const Entry& entry : entries) {
    const std::size_t dot = entry.key.rfind('.');
    const std::string name = entry.key.substr(0, dot);
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const Table& known) { return known.name == name; });
    if (table == tables.end()) table = tables.insert(tables.end(), Table{name, ""});
    table->keys += fmt::format("{} = {}\n", entry.key.substr(dot + 1), entry.value.dump());
  }
  std::string text;
  for (const Table& table : tables) {
    text += fmt::format("{}[{}]\n{}", text.empty() ? "" : "\n", table.name, table.keys);
  }
  return text;
}

std::vector<Entry> read_yaml(std::string_view text, std::string_view where) {
  Reading entries(where);
  struct Level {
    std::size_t indent;
    std::string key;
  };
  std::vector<Level> open;
  each_line(text, [&](std::string_view line, std::size_t number) {
    const std::size_t indent = line.find_first_not_of(' ');
    line = trimmed(line);
    const std::size_t colon = line.find(':');
    if (line.front() == '-' || colon == line.npos) {
      fail(where, number, "must be key: value; lists of blocks are not read");
    }
    while (!open.empty() && open.back().indent >= indent) open.pop_back();
    std::string key;
    for (const Level& level : open) key += level.key + ".";
    const std::string own(trimmed(line.substr(0, colon)));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (value.empty()) {
      open.push_back({indent, own});
    } else {
      entries.add({key + own, plain_value(value)}, number);
    }
  });
  return entries.take();
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
