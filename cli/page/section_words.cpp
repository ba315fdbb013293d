// What is said in words: how sure, how to do it again, what was assumed. Front doors:
// certainty_section, commands_section, launch_section, assumptions_section, differences_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/compare/compare_words.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

std::string of_side(const Json& plan) {
  const auto label = plan.at("label").get<std::string>();
  return label.empty() ? "" : label + ": ";
}

}  // namespace

std::string section_id(const std::string& name, const Json& plan) {
  const auto label = plan.at("label").get<std::string>();
  return label.empty() ? name : name + "-" + label;
}

std::string section_title(const std::string& title, const Json& plan) {
  const auto label = plan.at("label").get<std::string>();
  return label.empty() ? title : fmt::format("{}: {}", label, title);
}

Section certainty_section(const Json& page) {
  Section section{.id = "certainty", .title = "How sure this is"};
  for (const Json& plan : page.at("plans")) {
    const Json& fit = plan.at("fit");
    const Json& peak = fit.at("peak");
    const auto device = peak.at("device_bytes").get<double>();
    section.items.push_back(fmt::format(
        "{}memory between {} and {} GiB, \u00b1{}: it fits with probability {}", of_side(plan),
        gib(peak.at("device_bytes_low")), gib(peak.at("device_bytes_high")),
        percent((peak.at("device_bytes_high").get<double>() - device) / device),
        probability(fit.at("fit_probability"))));
    const Json& step = fit.at("step");
    if (!step.is_null()) {
      const auto whole = step.at("seconds").get<double>();
      section.items.push_back(
          fmt::format("{}a step between {} and {}, \u00b1{}", of_side(plan),
                      seconds(step.at("seconds_low")), seconds(step.at("seconds_high")),
                      percent((step.at("seconds_high").get<double>() - whole) / whole)));
    }
    for (const Json& text : fit.at("assumptions")) {
      const auto assumption = text.get<std::string>();
      const bool about =
          assumption.starts_with("the step may be") || assumption.starts_with("allocated bytes");
      if (about) section.items.push_back(of_side(plan) + assumption);
    }
  }
  if (section.items.empty()) return section;
  section.paragraphs.emplace_back(
      "Bands are two standard deviations wide on each side. They are set for each runtime from "
      "measured runs; where none "
      "is known, it is said. Days and money are without interruptions, checkpoints and "
      "evaluation.");
  return section;
}

Section commands_section(const Json& page) {
  Section section{.id = "commands", .title = "To ask again"};
  section.codes.push_back({"The question of this page", page.at("typed"), true});
  for (const Json& plan : page.at("plans")) {
    section.codes.push_back(
        {of_side(plan) + "Exactly this plan, with all that was chosen", plan.at("command"), true});
  }
  return section;
}

Section launch_section(const Json& plan) {
  Section section{.id = section_id("launch", plan), .title = section_title("To launch", plan)};
  const Json& launch = plan.at("launch");
  if (launch.is_null()) return section;
  section.codes.push_back(
      {fmt::format("As zeroplan export writes it for {}", launch.at("format").get<std::string>()),
       launch.at("text")});
  for (const Json& unsaid : launch.at("unsaid")) {
    section.items.push_back(
        fmt::format("no key says {}: set it where you launch", unsaid.get<std::string>()));
  }
  return section;
}

Section assumptions_section(const Json& page) {
  Section section{.id = "assumptions", .title = "What was assumed"};
  const Json& plans = page.at("plans");
  const auto everywhere = [&](const Json& text) {
    return std::all_of(plans.begin(), plans.end(), [&](const Json& plan) {
      const Json& list = plan.at("fit").at("assumptions");
      return std::find(list.begin(), list.end(), text) != list.end();
    });
  };
  for (const Json& plan : plans) {
    for (const Json& text : plan.at("fit").at("assumptions")) {
      const bool common = everywhere(text);
      if (common && &plan != &plans.front()) continue;
      section.items.push_back((common ? "" : of_side(plan)) + text.get<std::string>());
    }
  }
  return section;
}

Section differences_section(const Json& page) {
  Section section{.id = "differences", .title = "What the two differ in"};
  if (page.at("kind") != "compare") return section;
  const Json& answer = page.at("answer");
  if (answer.at("chosen_for") != "each") {
    std::string options;
    for (const Json& option : answer.at("shared")) {
      options += fmt::format(" {} {}", option.at("flag").get<std::string>(),
                             option.at("value").get<std::string>());
    }
    const bool a = answer.at("chosen_for") == "a";
    section.paragraphs.push_back(
        fmt::format("Chosen for {}, and taken for {}:{}.", a ? "a" : "b", a ? "b" : "a", options));
  }
  PageTable table{
      .caption = "", .columns = {{"", false}, {"a"}, {"b"}, {"b \u2212 a"}}, .rows = {}};
  std::string before;
  for (const Json& row : answer.at("rows")) {
    const CompareRow read{.section = row.at("section"),
                          .name = row.at("name"),
                          .unit = row.at("unit"),
                          .a = row.at("a"),
                          .b = row.at("b")};
    if (read.a == read.b && read.section != "memory") continue;
    if (read.section != before) {
      table.rows.push_back({section_words(read.section), "", "", ""});
      table.styles.push_back({"heading", "", "", ""});
    }
    before = read.section;
    const RowWords words = row_words(read);
    table.rows.push_back({words.name, words.a, words.b, words.difference});
    table.styles.push_back({"", "", "", ""});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
