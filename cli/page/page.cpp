// What does a page say? Front door: page_of.
#include "cli/page/page.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/out/report.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

std::string model_words(const Json& fit) {
  return fit.at("model").at("name").get<std::string>();
}

std::string gpus_words(const Json& fit) {
  const Json& cluster = fit.at("cluster");
  return fmt::format("{} \u00d7 {}", rounded(cluster.at("gpus")),
                     cluster.at("gpu").get<std::string>());
}

std::string free_words(const Json& fit) {
  const auto free = fit.at("headroom_bytes").get<std::int64_t>();
  return fmt::format("{} GiB {}", gib(Json(std::abs(free))), free < 0 ? "short" : "free");
}

std::string cost_words(const Json& fit) {
  if (!fit.contains("training") || fit.at("training").is_null()) return "";
  const Json& t = fit.at("training");
  std::string text =
      fmt::format(" {} tokens take {:.1f} days and {} GPU hours", tokens_words(t.at("tokens")),
                  t.at("days").get<double>(), rounded(t.at("gpu_hours")));
  if (t.contains("money")) {
    text += fmt::format(", {} at {:g} a GPU hour", rounded(t.at("money")),
                        t.at("price_per_gpu_hour").get<double>());
  }
  return text + ".";
}

std::string memory_words(const Json& fit) {
  return fmt::format("the fullest GPU needs {} of {} GiB, {}, and it fits with probability {}",
                     gib(fit.at("peak").at("device_bytes")), gib(fit.at("capacity_bytes")),
                     free_words(fit), probability(fit.at("fit_probability")));
}

std::string plan_sentence(const Json& fit) {
  std::string text = fmt::format(
      "{} {} on {} with {}, {}: {}.", model_words(fit), verdict_words(fit.at("verdict")),
      gpus_words(fit), fit.at("runtime").get<std::string>(), layout_words(fit), memory_words(fit));
  const Json& step = fit.at("step");
  if (!step.is_null()) {
    text +=
        fmt::format(" A step takes {} ({} to {}), {} tokens/s a GPU.", seconds(step.at("seconds")),
                    seconds(step.at("seconds_low")), seconds(step.at("seconds_high")),
                    rounded(step.at("tokens_per_second_per_gpu")));
  }
  return text + cost_words(fit);
}

std::string side_sentence(const Json& plan) {
  const Json& fit = plan.at("fit");
  std::string text =
      fmt::format("{}, {}, {}: {}.", plan.at("label").get<std::string>(), layout_words(fit),
                  verdict_words(fit.at("verdict")), memory_words(fit));
  const Json& step = fit.at("step");
  if (!step.is_null()) {
    text += fmt::format(" {} a step, {} tokens/s a GPU.", seconds(step.at("seconds")),
                        rounded(step.at("tokens_per_second_per_gpu")));
  }
  return text;
}

std::vector<Tile> tiles_of(const Json& fit) {
  std::vector<Tile> tiles{
      {"memory", gib(fit.at("peak").at("device_bytes")) + " GiB",
       "of " + gib(fit.at("capacity_bytes"))},
      {"chance it fits", probability(fit.at("fit_probability")), free_words(fit)}};
  const Json& step = fit.at("step");
  if (!step.is_null()) {
    tiles.push_back({"step", seconds(step.at("seconds")),
                     fmt::format("{} to {}", seconds(step.at("seconds_low")),
                                 seconds(step.at("seconds_high")))});
    tiles.push_back({"tokens/s a GPU", rounded(step.at("tokens_per_second_per_gpu")),
                     "MFU " + percent(step.at("mfu"))});
  }
  if (fit.contains("training") && !fit.at("training").is_null()) {
    const Json& t = fit.at("training");
    tiles.push_back({"days", fmt::format("{:.1f}", t.at("days").get<double>()),
                     tokens_words(t.at("tokens")) + " tokens"});
    tiles.push_back({"GPU hours", rounded(t.at("gpu_hours")), gpus_words(fit)});
    if (t.contains("money")) {
      tiles.push_back({"money", rounded(t.at("money")),
                       fmt::format("{:g} a GPU hour", t.at("price_per_gpu_hour").get<double>())});
    }
  }
  return tiles;
}

std::string footer_words(const Json& versions) {
  const auto of = [&](const char* key) { return versions.at(key).get<std::string>(); };
  return fmt::format(
      "zeroplan {}, presets {}, constants of {}, corpus {}. Predicted, not measured.",
      of("program"), of("presets"), of("constants"), of("corpus"));
}

bool says_something(const Section& s) {
  return !s.paragraphs.empty() || !s.figures.empty() || !s.tables.empty() || !s.codes.empty() ||
         !s.items.empty();
}

void open(Page& page, const Json& document) {
  const Json& plans = document.at("plans");
  if (plans.empty()) {
    page.title =
        document.at("model").get<std::string>() + " on " + document.at("gpus").get<std::string>();
    page.verdict = "does_not_fit";
    page.sentence = fmt::format("{} on {}: no layout of this space fits.",
                                document.at("model").get<std::string>(),
                                document.at("gpus").get<std::string>());
    return;
  }
  const Json& fit = plans[0].at("fit");
  page.title = model_words(fit) + " on " + gpus_words(fit);
  page.verdict = fit.at("verdict").get<std::string>();
  if (plans.size() == 1) {
    page.sentence = plan_sentence(fit);
    page.tiles = tiles_of(fit);
    return;
  }
  const Json& other = plans[1].at("fit");
  if (page.title != model_words(other) + " on " + gpus_words(other))
    page.title += ", and " + model_words(other) + " on " + gpus_words(other);
  page.sentence = side_sentence(plans[0]) + " " + side_sentence(plans[1]);
  if (page.verdict == "does_not_fit") page.verdict = other.at("verdict").get<std::string>();
}

}  // namespace

Page page_of(const Json& document) {
  Page page;
  open(page, document);
  std::vector<Section> all{differences_section(document), remedies_section(document)};
  const Json& plans = document.at("plans");
  const auto of_each = [&](auto section) {
    for (const Json& plan : plans) all.push_back(section(plan));
  };
  of_each(memory_section);
  of_each(step_section);
  all.push_back(search_section(document));
  all.push_back(map_section(document));
  all.push_back(sensitivity_section(document));
  all.push_back(zero_section(document));
  of_each(moves_section);
  of_each(schedule_section);
  of_each(communication_section);
  all.push_back(certainty_section(document));
  all.push_back(commands_section(document));
  of_each(launch_section);
  all.push_back(assumptions_section(document));
  for (Section& section : all) {
    if (says_something(section)) page.sections.push_back(std::move(section));
  }
  page.footer = footer_words(document.at("versions"));
  page.answer = document.at("answer");
  return page;
}

}  // namespace zeroplan
