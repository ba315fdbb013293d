// Which keys and values does a Python configuration write? Front doors: read_python, python_value.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "presets/configuration/plain_values.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// Where a string that begins at `at` ends: past its last quote.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const std::string_view triple = text.substr(at, 3);
  const bool long_one = triple == "\"\"\"" || triple == "'''";
  const std::string_view quote = long_one ? triple : triple.substr(0, 1);
  std::size_t i = at + quote.size();
  while (i < text.size() && text.substr(i, quote.size()) != quote) i += text[i] == '\\' ? 2 : 1;
  return std::min(text.size(), i + quote.size());
}

struct Statement {
  std::string text;  // on one line, comments left out
  std::size_t line;
  std::size_t indent;
};

// Lines, each with those that an open bracket continues.
std::vector<Statement> statements(std::string_view text) {
  std::vector<Statement> list;
  std::size_t number = 1;
  int open = 0;
  bool begins = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      ++number;
      begins = begins || open == 0;
      if (!begins) list.back().text += ' ';
      ++i;
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (begins && (c == ' ' || c == '\t' || c == '\r')) {
      ++i;
      continue;
    }
    if (begins) {
      const std::size_t start = text.rfind('\n', i);
      list.push_back({"", number, i - (start == text.npos ? 0 : start + 1)});
      begins = false;
    }
    std::size_t end = i + 1;
    if (c == '"' || c == '\'') end = end_of_string(text, i);
    number +=
        static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                            text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    open = std::max(open, 0);
    list.back().text += text.substr(i, end - i);
    i = end;
  }
  return list;
}

// The parts between commas outside brackets and strings.
std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> parts;
  int open = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == ',' && open == 0) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
    i = c == '"' || c == '\'' ? end_of_string(text, i) : i + 1;
  }
  const std::string_view last = trimmed(text.substr(start));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

struct Assignment {
  std::string_view name;
  std::string_view value;
};

// name = value, where the name may have dots.
std::optional<Assignment> assignment(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && in_name(text[end])) ++end;
  const std::string_view rest = trimmed(text.substr(end));
  if (end == 0 || !rest.starts_with('=') || rest.starts_with("==")) return std::nullopt;
  return Assignment{text.substr(0, end), trimmed(rest.substr(1))};
}

struct Call {
  std::string_view function;
  std::vector<std::string_view> arguments;
};

// The whole of the text as f(...).
std::optional<Call> call(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && in_name(text[end])) ++end;
  if (end == 0 || end == text.size() || text[end] != '(' || text.back() != ')') return std::nullopt;
  int open = 0;
  for (std::size_t i = end; i < text.size();) {
    const char c = text[i];
    open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (open == 0 && i + 1 < text.size()) return std::nullopt;  // f(...).g(...)
    i = c == '"' || c == '\'' ? end_of_string(text, i) : i + 1;
  }
  return Call{text.substr(0, end), split_arguments(text.substr(end + 1, text.size() - end - 2))};
}

class Python {
 public:
  explicit Python(std::string_view where) : where_(where) {}

  void statement(const Statement& said) {
    std::string_view text = said.text;
    if (text.starts_with("def ")) {
      functions_.emplace_back(text.substr(4, text.find('(') - 4));
      first_indent_.reset();
      return;
    }
    const auto assigned = assignment(text);
    if (!assigned) {
      if (text.starts_with("return ")) text = trimmed(text.substr(7));
      if (const auto made = call(text)) configuration(*made, text, said);
      return;
    }
    // A key of the configuration: the variable that holds it falls away.
    const std::size_t dot = assigned->name.find('.');
    if (dot != std::string_view::npos) {
      value(std::string(assigned->name.substr(dot + 1)), assigned->value, said);
    } else if (const auto made = call(assigned->value)) {
      configuration(*made, assigned->value, said);
    } else {
      variables_.insert_or_assign(std::string(assigned->name), std::string(assigned->value));
    }
  }

  PythonConfiguration take() {
    if (configuring_.size() > 1) {
      fail_at_line(where_, 1,
                   fmt::format("{} configurations, {}: leave the one that you launch",
                               configuring_.size(), fmt::join(configuring_, ", ")));
    }
    PythonConfiguration result{.base = base_};
    for (Entry& entry : entries_) {
      if (entry.value.is_null()) {
        result.none.push_back(std::move(entry.key));
      } else {
        result.entries.push_back(std::move(entry));
      }
    }
    return result;
  }

 private:
  // What makes a whole one, and what another function made.
  void configuration(const Call& made, std::string_view text, const Statement& said) {
    const std::string_view name = made.function;
    if (name.ends_with("Config") || name.ends_with("Arguments") || name.ends_with("Container")) {
      value("", text, said);
    } else if (made.arguments.empty() && said.indent > 0) {
      base_ = name;
    }
  }

  void value(const std::string& path, std::string_view text, const Statement& said) {
    if (const auto made = call(text)) {
      bool keyed = false;
      for (const std::string_view argument : made->arguments) {
        const auto own = assignment(argument);
        if (!own) continue;
        keyed = true;
        value(path.empty() ? std::string(own->name) : path + "." + std::string(own->name),
              own->value, said);
      }
      const std::string_view maker = made->function;
      if (keyed && maker.ends_with(".Config")) {
        keep(path.empty() ? "class" : path, maker, said);  // which of several
      }
      if (keyed || path.empty()) return;
    }
    keep(path, text, said);
  }

  // Later ones win, as they do in Python; but not what may or may not run.
  void keep(const std::string& path, std::string_view text, const Statement& said) {
    if (!first_indent_) first_indent_ = said.indent;
    if (said.indent > *first_indent_) {
      fail_at_line(where_, said.line,
                   fmt::format("{}: stands under a condition or a loop, and nothing is run: write "
                               "it out",
                               path));
    }
    const std::string function = functions_.empty() ? "" : functions_.back();
    if (configuring_.empty() || configuring_.back() != function) configuring_.push_back(function);
    const auto variable = variables_.find(text);
    ConfigValue read = literal(variable == variables_.end() ? text : variable->second);
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.key == path; });
    if (known != entries_.end()) {
      known->value = std::move(read);
    } else {
      entries_.push_back({path, std::move(read)});
    }
  }

  // 8 * 2048
  static std::optional<std::int64_t> product(std::string_view text) {
    if (text.find('*') == text.npos) return std::nullopt;
    std::int64_t result = 1;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('*', at), text.size());
      std::string factor(trimmed(text.substr(at, end - at)));
      std::erase(factor, '_');
      const auto number = whole(factor);
      if (!number || *number < 1 || *number > 1'000'000'000 || result > 1'000'000'000) {
        return std::nullopt;
      }
      result *= *number;
      at = end + 1;
    }
    return result;
  }

  static ConfigValue literal(std::string_view text) {
    if (text == "True" || text == "False") return text == "True";
    if (text == "None") return nullptr;
    std::string digits(text);
    const bool number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_';
    });
    if (number) std::erase(digits, '_');
    if (const auto result = product(text)) return *result;
    return plain_value(digits);
  }

  std::string_view where_;
  std::vector<Entry> entries_;
  std::vector<std::string> functions_;
  std::vector<std::string> configuring_;  // those that set a key
  std::map<std::string, std::string, std::less<>> variables_;
  std::optional<std::size_t> first_indent_;
  std::string base_;
};

}  // namespace

PythonConfiguration read_python(std::string_view text, std::string_view where) {
  Python python(where);
  for (const Statement& statement : statements(text)) python.statement(statement);
  return python.take();
}

std::string python_value(const ConfigValue& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (!value.is_array()) return value.dump();  // numbers and texts are written alike
  std::vector<std::string> parts;
  for (const ConfigValue& part : value) parts.push_back(part.dump());
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

bool looks_like_python(std::string_view text) {
  const std::vector<Statement> list = statements(text);
  return std::any_of(list.begin(), list.end(), [](const Statement& statement) {
    const std::string_view line = statement.text;
    return line.starts_with("import ") || line.starts_with("def ") ||
           (line.starts_with("from ") && line.find(" import ") != line.npos);
  });
}

}  // namespace zeroplan
