// What is said in words: how sure, how to do it again, what was assumed. Front doors:
// certainty_section, commands_section, launch_section, assumptions_section, differences_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/out/report.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

std::string of_side(const Json& plan) {
  const auto label = plan.at("label").get<std::string>();
  return label.empty() ? "" : label + ": ";
}

std::string value_words(const Json& value, const std::string& unit) {
  if (value.is_null()) return "-";
  if (unit == "bytes") return gib(value) + " GiB";
  if (unit == "seconds") return seconds(value);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_integer()) return rounded(value);
  if (value.is_number()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  section.codes.push_back({"The question of this page", page.at("typed")});
  for (const Json& plan : page.at("plans")) {
    section.codes.push_back(
        {of_side(plan) + "Exactly this plan, with all that was chosen", plan.at("command")});
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
  PageTable table{.caption = "",
                  .columns = {{"", false}, {"", false}, {"a"}, {"b"}, {"b \u2212 a"}},
                  .rows = {}};
  std::string before;
  for (const Json& row : answer.at("rows")) {
    const auto section_name = row.at("section").get<std::string>();
    const auto unit = row.at("unit").get<std::string>();
    const bool number = row.at("section") != "layout" && row.at("name") != "stage";
    if (row.at("a") == row.at("b") && row.at("section") != "memory") continue;
    table.rows.push_back({section_name == before ? "" : section_name,
                          spaced(row.at("name").get<std::string>()), value_words(row.at("a"), unit),
                          value_words(row.at("b"), unit),
                          number && unit != "seconds" ? value_words(row.at("difference"), unit)
                          : number && !row.at("difference").is_null()
                              ? fmt::format("{:+.4g} s", row.at("difference").get<double>())
                              : ""});
    before = section_name;
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
