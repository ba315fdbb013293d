#pragma once
// Commands and options as words: what --help is made of, for shells and for the manual.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace zeroplan {

/// The words that the meaning of an option begins with, "on|off": those that it may take. None
/// where it begins with prose.
std::vector<std::string> listed_words(const std::string& meaning);

/// An option, or a place for a word without a dash.
struct OptionWords {
  std::vector<std::string> flags;  // "-h", "--help"; of a place its name in capitals, alone
  std::string meaning;             // as --help says it
  std::string heading;             // under which --help has it
  bool takes_value = false;
  bool required = false;
  std::vector<std::string> values;  // the words it may take, where they can be listed
  std::string catalog;              // else the kind of preset that it may name: "models"

  bool operator==(const OptionWords&) const = default;
};

struct CommandWords {
  std::string name;
  std::string meaning;
  std::vector<OptionWords> places;
  std::vector<OptionWords> options;
};

/// What a parser knows; hidden commands and options are left out.
struct OptionTable {
  std::string version;  // "zeroplan 0.1.0"
  std::string meaning;
  std::vector<OptionWords> options;  // before any command
  std::vector<CommandWords> commands;
};
OptionTable option_table(const CLI::App& app);

/// An option that commands share.
struct SharedOption {
  OptionWords option;
  std::vector<std::string> commands;
};

/// Every option once, in order of first appearance, with the commands that have it.
std::vector<SharedOption> shared_options(const OptionTable& table);

/// The names of a kind of preset, in order; none of an empty kind.
std::vector<std::string> catalog_names(const std::string& kind);

}  // namespace zeroplan
