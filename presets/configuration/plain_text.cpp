// How are keys and values written as arguments and TOML? Front doors: read_arguments, read_toml.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "presets/configuration/plain_values.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

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

}  // namespace

std::vector<Entry> read_arguments(std::string_view text, std::string_view where) {
  Reading entries(where);
  each_line(text, [&](std::string_view line, std::size_t number) {
    for (const std::string& word : words_of(line)) {
      if (word.starts_with("--")) {
        entries.add({word.substr(2), nullptr}, number);
      } else if (entries.empty()) {
        fail_at_line(where, number, fmt::format("{}: an argument begins with --", in_quotes(word)));
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
      if (line.back() != ']' || line.starts_with("[["))
        fail_at_line(where, number, "not a [table]");
      table = trimmed(line.substr(1, line.size() - 2));
      if (!tables.insert(table).second) {
        fail_at_line(where, number, fmt::format("table {} is declared twice", in_quotes(table)));
      }
      return;
    }
    const std::size_t equals = line.find('=');
    if (equals == line.npos) fail_at_line(where, number, "must be key = value");
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

}  // namespace zeroplan
