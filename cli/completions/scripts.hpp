#pragma once
// The option table as a script that a shell completes from, and as a page of the manual.

#include <string>

#include "cli/completions/option_table.hpp"

namespace zeroplan {

/// For bash, with or without the bash-completion package; what it does not list are files.
std::string bash_script(const OptionTable& table);

/// For zsh: a function of $fpath, named _zeroplan.
std::string zsh_script(const OptionTable& table);

/// For fish.
std::string fish_script(const OptionTable& table);

/// zeroplan(1), in the macros of man(7).
std::string man_page(const OptionTable& table);

}  // namespace zeroplan
