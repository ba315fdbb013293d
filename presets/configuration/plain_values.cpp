// What does a plain value say? Front doors: plain_value, Reading.
#include "presets/configuration/plain_values.hpp"

#include <fmt/format.h>

#include <charconv>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

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

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

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

void fail_at_line(std::string_view where, std::size_t line, std::string_view what) {
  throw InputError(fmt::format("{}: line {}: {}", where, line, what));
}

void Reading::add(Entry entry, std::size_t line) {
  if (!keys_.insert(entry.key).second) {
    fail_at_line(where_, line, fmt::format("key {} is given twice", in_quotes(entry.key)));
  }
  entries_.push_back(std::move(entry));
}

}  // namespace zeroplan
