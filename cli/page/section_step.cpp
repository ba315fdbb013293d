// Where does the step's time go? Front doors: step_section, communication_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/out/axis.hpp"
#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

struct Part {
  std::string style, name;
  double seconds;
};

// The parts of a step, which add up to it (cost_model/answer/step_time.hpp).
std::vector<Part> parts_of(const Json& step) {
  const auto of = [&](const char* key) { return step.at(key).get<double>(); };
  std::vector<Part> parts{
      {"t-compute", "computing", of("compute_seconds") - of("optimizer_seconds")},
      {"t-optimizer", "optimizer", of("optimizer_seconds")},
      {"t-communication", "communication that nothing hides", of("communication_exposed_seconds")},
      {"t-bubble", "waiting for other pipeline ranks", of("bubble_seconds")},
      {"t-straggling", "waiting for the slowest GPU", of("straggling_seconds")}};
  // Rounding may leave a bubble of 1e-14 s.
  std::erase_if(parts, [&](const Part& part) { return part.seconds < 1e-9 * of("seconds"); });
  return parts;
}

void draw_step(Drawing& to, const std::vector<Part>& parts, double whole) {
  const double left = 4;
  const double scale = (to.width() - 2 * left) / whole;
  double x = left;
  for (const Part& part : parts) {
    const double width = part.seconds * scale;
    to.rect(
        x, 4, width, 34, "part " + part.style,
        fmt::format("{}: {}, {}", part.name, seconds(part.seconds), percent(part.seconds / whole)));
    const std::string share = percent(part.seconds / whole);
    if (width > text_width(share) + 8) {
      to.text(x + width / 2, 26, share, "in-" + part.style, Anchor::middle);
    }
    x += width;
  }
  const double mark = round_step(whole, to.narrow() ? 4 : 10);
  for (double at = 0; at <= whole * 1.0001; at += mark) {
    const double place = left + at * scale;
    to.line(place, 40, place, 45, "axis");
    const Anchor anchor = at == 0                              ? Anchor::start
                          : place + 16 > to.width() - 2 * left ? Anchor::end
                                                               : Anchor::middle;
    to.text(place, 58, at == 0 ? "0" : seconds(at), "tick", anchor);
  }
  to.set_height(64);
}

std::string link_words(const Json& link) {
  const auto name = link.at("link").get<std::string>();
  const std::string who = name == "network"  ? "network between nodes"
                          : name == "nvlink" ? "NVLink"
                          : name == "xgmi"   ? "Infinity Fabric"
                                             : "PCIe";
  const double speed = link.at("bytes_per_second").get<double>();
  return speed > 0 ? fmt::format("{}, {}/s", who, decimal_bytes(speed)) : who;
}

struct LinkTotal {
  std::string link;
  double bytes = 0, seconds = 0, exposed = 0;
};

std::vector<LinkTotal> by_link(const Json& rows, const Json& links) {
  std::vector<LinkTotal> totals;
  for (std::size_t i = 0; i < rows.size() && i < links.size(); ++i) {
    const std::string link = link_words(links[i]);
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const LinkTotal& total) { return total.link == link; });
    if (found == totals.end()) found = totals.insert(totals.end(), LinkTotal{.link = link});
    found->bytes += rows[i].at("sent_bytes_per_gpu").get<double>();
    if (rows[i].at("seconds").is_null()) continue;
    found->seconds += rows[i].at("seconds").get<double>();
    found->exposed += rows[i].at("exposed_seconds").get<double>();
  }
  return totals;
}

}  // namespace

Section step_section(const Json& plan) {
  Section section{.id = section_id("step", plan),
                  .title = section_title("Where a step\u2019s time goes", plan)};
  const Json& step = plan.at("fit").at("step");
  if (step.is_null()) return section;
  const auto whole = step.at("seconds").get<double>();
  section.paragraphs.push_back(fmt::format(
      "A step takes {}, between {} and {} with 95 % probability: MFU {}, {:.0f} TFLOP/s and {} "
      "tokens/s a GPU.",
      seconds(step.at("seconds")), seconds(step.at("seconds_low")),
      seconds(step.at("seconds_high")), percent(step.at("mfu")),
      step.at("tflops_per_gpu").get<double>(), rounded(step.at("tokens_per_second_per_gpu"))));
  const std::vector<Part> parts = parts_of(step);
  PageTable table{.caption = "The rank that works longest",
                  .columns = {{"part", false}, {"time"}, {"of the step"}},
                  .rows = {},
                  .folded = true};
  std::string description;
  for (const Part& part : parts) {
    table.rows.push_back({part.name, seconds(part.seconds), percent(part.seconds / whole)});
    description += fmt::format("{} {}. ", part.name, percent(part.seconds / whole));
  }
  table.rows.push_back({"step", seconds(whole), percent(1)});
  section.figures.push_back(figure(section.id, "Parts of a step", description,
                                   [&](Drawing& to) { draw_step(to, parts, whole); }));
  for (const Part& part : parts) {
    section.figures.back().legend.push_back({part.style, part.name});
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section communication_section(const Json& plan) {
  Section section{.id = section_id("communication", plan),
                  .title = section_title("Communication by link", plan)};
  const Json& rows = plan.at("fit").at("communication");
  if (rows.empty()) return section;
  const Json& links = plan.at("links");
  section.paragraphs.push_back(fmt::format(
      "What a GPU of stage {} sends in a step. Speeds are nominal, in one direction, and what is "
      "left to one group where several share the network.",
      plan.at("fit").at("peak").at("stage").get<std::int64_t>()));
  PageTable totals{.caption = "By link",
                   .columns = {{"link", false}, {"sent GiB"}, {"time"}, {"not hidden"}},
                   .rows = {}};
  for (const LinkTotal& total : by_link(rows, links)) {
    totals.rows.push_back(
        {total.link, gib(Json(total.bytes)), seconds(total.seconds), seconds(total.exposed)});
  }
  section.tables.push_back(std::move(totals));
  PageTable table{.caption = "By collective",
                  .columns = {{"group", false},
                              {"ranks"},
                              {"collective", false},
                              {"during", false},
                              {"calls"},
                              {"each"},
                              {"sent GiB"},
                              {"time"},
                              {"not hidden"},
                              {"link", false}},
                  .rows = {},
                  .folded = true};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
    table.rows.push_back({text("group"), rounded(row.at("ranks")), text("collective"),
                          text("during"), rounded(row.at("calls")),
                          decimal_bytes(row.at("payload_bytes")), gib(row.at("sent_bytes_per_gpu")),
                          seconds(row.at("seconds")), seconds(row.at("exposed_seconds")),
                          i < links.size() ? link_words(links[i]) : "-"});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
