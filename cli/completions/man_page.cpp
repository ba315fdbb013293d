// What does the manual say? Front door: man_page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/completions/scripts.hpp"

namespace zeroplan {
namespace {

// Text that roff sets as it is; a list of values (a|b|c) may be broken after each bar.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '|') {
      out += "|\\:";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string entry(const OptionWords& option) {
  const std::string value = option.takes_value ? " \\fIVALUE\\fR" : "";
  const bool place = !option.flags.front().starts_with('-');
  std::string flags;
  for (const std::string& flag : option.flags) {
    flags +=
        (flags.empty() ? "" : ", ") + fmt::format("\\f{}{}\\fR", place ? 'I' : 'B', plain(flag));
  }
  return fmt::format(".TP\n{}{}\n{}\n", flags, place ? "" : value, plain(option.meaning));
}

// Options of several commands, together where the same commands have them under the same heading.
std::string shared_sections(const OptionTable& table) {
  std::vector<std::pair<std::string, std::string>> sections;  // heading, entries
  for (const SharedOption& shared : shared_options(table)) {
    if (shared.commands.size() == 1) continue;
    const std::string whose = shared.commands.size() == table.commands.size()
                                  ? "all commands"
                                  : fmt::format("{}", fmt::join(shared.commands, ", "));
    const std::string heading = fmt::format("{}: {}", shared.option.heading, whose);
    auto known = std::find_if(sections.begin(), sections.end(),
                              [&](const auto& one) { return one.first == heading; });
    if (known == sections.end()) known = sections.insert(sections.end(), {heading, ""});
    known->second += entry(shared.option);
  }
  std::string out;
  for (const auto& [heading, entries] : sections) {
    out += fmt::format(".SS {}\n{}", plain(heading), entries);
  }
  return out;
}

// A command with what it alone takes.
std::string command_section(const CommandWords& command, const std::vector<SharedOption>& all) {
  std::string synopsis;
  for (const OptionWords& place : command.places) {
    const std::string name = fmt::format("\\fI{}\\fR", place.flags.front());
    synopsis += place.required ? " " + name : " [" + name + "]";
  }
  std::string out = fmt::format(".SS {}\n\\fBzeroplan {}\\fR{} [\\fIOPTIONS\\fR]\n.PP\n{}\n",
                                command.name, command.name, synopsis, plain(command.meaning));
  for (const OptionWords& place : command.places) out += entry(place);
  for (const SharedOption& shared : all) {
    const bool own = shared.commands.size() == 1 && shared.commands.front() == command.name;
    if (own) out += entry(shared.option);
  }
  return out;
}

}  // namespace

std::string man_page(const OptionTable& table) {
  std::string commands, first;
  const std::vector<SharedOption> all = shared_options(table);
  for (const CommandWords& command : table.commands) commands += command_section(command, all);
  for (const OptionWords& option : table.options) first += entry(option);
  return fmt::format(R"(.TH ZEROPLAN 1 "" "{version}" "User Commands"
.nh
.ad l
.SH NAME
zeroplan \- plan memory, communication and time of training a large model
.SH SYNOPSIS
\fBzeroplan\fR \fICOMMAND\fR [\fIMODEL\fR] [\fIOPTIONS\fR]
.br
\fBzeroplan help\fR \fICOMMAND\fR
.SH DESCRIPTION
{meaning}
The answer goes to standard output, everything else to standard error.
No GPU, network or Python is needed to plan.
{first}.SH COMMANDS
{commands}.SH OPTIONS OF SEVERAL COMMANDS
{shared}.SH EXIT STATUS
.TP
0
it fits; the answer is yes
.TP
1
a clean no: it does not fit, or is outside the tolerance
.TP
2
the question cannot be used
.TP
3
the environment is at fault: no device, no driver, a full disk, a peer lost
.SH ENVIRONMENT
.TP
NO_COLOR
where set, no colour is written
.SH EXAMPLES
.nf
zeroplan fit llama3\-70b \-\-gpus 64xH100\-80GB
zeroplan sweep llama3\-70b \-\-gpus 64xH100\-80GB \-\-global\-batch 1024
zeroplan completions bash >~/.local/share/bash\-completion/completions/zeroplan
.fi
)",
                     fmt::arg("version", table.version), fmt::arg("meaning", plain(table.meaning)),
                     fmt::arg("first", first), fmt::arg("commands", commands),
                     fmt::arg("shared", shared_sections(table)));
}

}  // namespace zeroplan
