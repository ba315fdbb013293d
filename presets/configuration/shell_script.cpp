// What does a shell script launch? Front door: launch_command.
#include "presets/configuration/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <vector>

namespace zeroplan {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool names_variable(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Lines, each with those that a backslash, a quote or an array continues; comments left out.
std::vector<std::string> shell_statements(std::string_view text) {
  std::vector<std::string> list(1);
  char quote = 0;
  int open = 0;  // parentheses
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& now = list.back();
    const bool starts_word = now.empty() || is_blank(now.back());
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      now += ' ';
      ++i;
    } else if (quote == 0 && c == '#' && starts_word) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (quote == 0 && open == 0 && (c == '\n' || c == ';')) {
      list.emplace_back();
    } else {
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote == c) {
        quote = 0;
      }
      if (quote == 0) open = std::max(0, open + (c == '(') - (c == ')'));
      now += c == '\n' ? ' ' : c;
    }
  }
  return list;
}

// Words as the shell divides them; quotes fall away.
std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (const char c : text) {
    if (quote == 0 && is_blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == c) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Of a text that begins with "${NAME[@]}", as many words as the array has: how long it is with its
// quotes; 0 of other texts.
std::size_t quoted_array(std::string_view text) {
  constexpr std::string_view before = "\"${", after = "[@]}\"";
  if (!text.starts_with(before)) return 0;
  std::size_t end = before.size();
  while (end < text.size() && names_variable(text[end])) ++end;
  return text.substr(end).starts_with(after) ? end + after.size() : 0;
}

// Puts in $NAME, ${NAME}, ${NAME[@]} and ${NAME:-else}. What nothing sets stays.
std::string expanded(std::string_view text, const Variables& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t size = quoted_array(text.substr(i)); size > 0) {
      out += expanded(text.substr(i + 1, size - 2), variables);
      i += size;
      continue;
    }
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i++];
      continue;
    }
    const bool braced = text[i + 1] == '{';
    const std::size_t start = i + (braced ? 2 : 1);
    std::size_t end = start;
    while (end < text.size() && names_variable(text[end])) ++end;
    std::size_t next = end;
    std::string_view rest;
    if (braced) {
      next = text.find('}', end);
      if (next == std::string_view::npos) break;
      rest = text.substr(end, next - end);
      ++next;
    }
    const auto known = variables.find(text.substr(start, end - start));
    if (known != variables.end()) {
      out += known->second;
    } else if (rest.starts_with(":-")) {
      out += expanded(rest.substr(2), variables);
    } else {
      out += text.substr(i, next - i);
    }
    i = next;
  }
  return out;
}

// NAME=value, NAME="value" and NAME=(value): whether the statement is one, which is then kept.
bool assign(std::string_view statement, Variables& variables) {
  while (!statement.empty() && is_blank(statement.front())) statement.remove_prefix(1);
  for (const std::string_view word : {"export ", "local ", "readonly ", "declare "}) {
    if (statement.starts_with(word)) statement.remove_prefix(word.size());
  }
  std::size_t end = 0;
  while (end < statement.size() && names_variable(statement[end])) ++end;
  const bool adds = statement.substr(end).starts_with("+=");
  if (end == 0 || !(adds || statement.substr(end).starts_with('='))) return false;
  const std::string name(statement.substr(0, end));
  std::string_view value = statement.substr(end + (adds ? 2 : 1));
  std::string text;
  if (value.starts_with('(')) {
    value.remove_prefix(1);
    text = value.substr(0, value.rfind(')'));
  } else {
    // NAME=value command is a command.
    const std::vector<std::string> words = shell_words(value);
    if (words.size() > 1) return false;
    text = words.empty() ? "" : words.front();
  }
  text = expanded(text, variables);  // which may name the variable itself
  std::string& variable = variables[name];
  variable = adds ? variable + " " + text : text;
  return true;
}

bool is_training(std::string_view script) {
  const std::string_view name = script.substr(script.rfind('/') + 1);
  return name.find("train") != std::string_view::npos || name.find("finetune") == 0;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// --name of --name or --name=VALUE, with dashes for underscores.
std::string flag_of(std::string_view word) {
  std::string flag(word.substr(0, word.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// A program without its folder.
std::string_view program_of(std::string_view word) {
  return word.substr(word.rfind('/') + 1);
}

// The value of --name VALUE or --name=VALUE, dashes and underscores alike.
std::optional<std::string> launcher_text(const std::vector<std::string>& words,
                                         std::string_view name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (flag_of(words[i]) != name) continue;
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) return words[i].substr(equals + 1);
    if (i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

std::optional<std::int64_t> launcher_number(const std::vector<std::string>& words,
                                            std::string_view name) {
  const auto text = launcher_text(words, name);
  return text ? number(*text) : std::nullopt;
}

bool runs(const std::vector<std::string>& words, std::string_view program) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return program_of(word) == program; });
}

// How many ranks a launcher starts. torchrun must be given both numbers; DeepSpeed's launcher takes
// one node for given.
std::optional<std::int64_t> ranks_of(const std::vector<std::string>& launcher) {
  if (runs(launcher, "accelerate")) return launcher_number(launcher, "--num-processes");
  if (runs(launcher, "deepspeed")) {
    const auto gpus = launcher_number(launcher, "--num-gpus");
    const auto said_nodes = launcher_text(launcher, "--num-nodes");
    const auto nodes = said_nodes ? number(*said_nodes) : std::optional<std::int64_t>(1);
    return gpus && nodes ? std::optional(*gpus * *nodes) : std::nullopt;
  }
  const auto each = launcher_number(launcher, "--nproc-per-node");
  const auto nodes = launcher_number(launcher, "--nnodes");
  return each && nodes ? std::optional(*each * *nodes) : std::nullopt;
}

// Accelerate's flags, and the file that it takes where none is named, say what it shards.
std::string refusal_of(const std::vector<std::string>& launcher) {
  if (!runs(launcher, "accelerate")) return "";
  for (const std::string& word : launcher) {
    const std::string flag = flag_of(word);
    const bool shards = flag.starts_with("--use-") || flag.starts_with("--fsdp") ||
                        flag.starts_with("--deepspeed") || flag.starts_with("--zero") ||
                        flag.starts_with("--offload") || flag == "--mixed-precision";
    if (shards) return "accelerate launch " + flag + ": write it into a file for --config_file";
  }
  if (launcher_text(launcher, "--config-file")) return "";
  return "accelerate launch without --config_file takes the one that is configured here or there: "
         "name it";
}

// The text that a shell among these words is given.
std::optional<std::string> given_to_shell(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const std::string_view program = program_of(words[i]);
    const bool shell = program == "sh" || program == "bash";
    if (shell && words[i + 1].starts_with('-') && words[i + 1].ends_with('c')) return words[i + 2];
  }
  return std::nullopt;
}

// Words as arguments: a line an argument, its values in quotes.
std::string as_arguments(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      text += (text.empty() ? "" : "\n") + word;
    } else if (!word.empty()) {
      const char quote = word.find('"') == std::string::npos ? '"' : '\'';
      text += " " + (quote + word + quote);
    }
  }
  return text + "\n";
}

}  // namespace

std::optional<LaunchCommand> launch_command(std::string_view text) {
  Variables variables;
  std::optional<LaunchCommand> found;
  for (const std::string& statement : shell_statements(text)) {
    if (assign(statement, variables)) continue;
    const std::vector<std::string> words = shell_words(expanded(statement, variables));
    if (const auto inner = given_to_shell(words)) {
      const auto command = launch_command(*inner);
      if (command && (!found || is_training(command->script))) found = command;
      continue;
    }
    const auto script = std::find_if(words.begin(), words.end(),
                                     [](const std::string& word) { return word.ends_with(".py"); });
    if (script == words.end() || std::next(script) == words.end()) continue;
    if (found && (is_training(found->script) || !is_training(*script))) continue;
    const std::vector<std::string> launcher(words.begin(), script);
    found = LaunchCommand{.script = *script,
                          .arguments = as_arguments({std::next(script), words.end()}),
                          .ranks = ranks_of(launcher),
                          .refused = refusal_of(launcher)};
    if (runs(launcher, "accelerate")) {
      found->accelerate_file = launcher_text(launcher, "--config-file").value_or("");
    }
  }
  return found;
}

}  // namespace zeroplan
