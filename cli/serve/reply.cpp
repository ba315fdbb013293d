// What is answered to a request? Front doors: json_reply, page_reply.
#include "cli/serve/reply.hpp"

#include <chrono>
#include <stdexcept>

#include "cli/compare/both_sides.hpp"
#include "cli/explain/explained.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/report.hpp"
#include "cli/page/html.hpp"
#include "cli/page/page.hpp"
#include "cli/page/page_document.hpp"
#include "cli/page/typed_line.hpp"
#include "cli/request/variants.hpp"
#include "cli/serve/form.hpp"
#include "cli/sweep/searched.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using Clock = std::chrono::steady_clock;
using GoesOn = std::function<bool()>;

// A visitor waits no longer for a search; the best so far is the answer then.
constexpr std::chrono::seconds longest_search{20};

Searched searched_in_time(const SweepArguments& asked, const GoesOn& goes_on) {
  const auto last = Clock::now() + longest_search;
  Searched found =
      searched(asked, [&](const Progress&) { return goes_on() && Clock::now() < last; });
  if (found.answer.search.stopped && found.answer.plans.empty()) {
    throw std::runtime_error("the search takes too long here: ask it on the command line");
  }
  return found;
}

void require_one(const LayoutArguments& asked) {
  if (variants(asked).size() > 1) {
    throw InputError("one question at a time here: lists are for the command line");
  }
}

std::string json_of(const FitArguments& asked, const GoesOn&) {
  require_one(asked.layout);
  return fit_json(answer_of(asked.layout), read_cost(asked.cost));
}

std::string json_of(const SweepArguments& asked, const GoesOn& goes_on) {
  const std::optional<CostQuestion> cost = read_cost(asked.cost);
  const Searched found = searched_in_time(asked, goes_on);
  return sweep_json(found.answer, found.question, cost);
}

std::string json_of(const CompareArguments& asked, const GoesOn&) {
  LayoutArguments common = asked.common;
  return compare_json(compared(asked, common));
}

std::string json_of(const ExplainArguments& asked, const GoesOn&) {
  return explain_json(explained(asked).view());
}

nlohmann::ordered_json document_of(const FitArguments& asked, const GoesOn&) {
  require_one(asked.layout);
  const std::optional<CostQuestion> cost = read_cost(asked.cost);
  const std::string typed = typed_line("fit", asked.layout) + typed_cost(asked.cost);
  return fit_page(answer_of(asked.layout), {"fit", typed, asked.layout, cost});
}

nlohmann::ordered_json document_of(const SweepArguments& asked, const GoesOn& goes_on) {
  const std::optional<CostQuestion> cost = read_cost(asked.cost);
  const Searched found = searched_in_time(asked, goes_on);
  return sweep_page(found.answer, found.question, {"sweep", typed_line(asked), asked.layout, cost});
}

nlohmann::ordered_json document_of(const CompareArguments& asked, const GoesOn&) {
  LayoutArguments common = asked.common;
  const Comparison sides = compared(asked, common);
  return compare_page(sides, {"compare", typed_line(asked), common, std::nullopt});
}

nlohmann::ordered_json document_of(const ExplainArguments&, const GoesOn&) {
  throw InputError("explain has no page; ask for explain.json");
}

}  // namespace

std::string json_reply(const std::string& command,
                       const Parameters& parameters,
                       const GoesOn& goes_on) {
  return std::visit([&](const auto& asked) { return json_of(asked, goes_on); },
                    read_question(command, parameters));
}

std::string page_reply(const std::string& command,
                       const Parameters& parameters,
                       const GoesOn& goes_on) {
  const nlohmann::ordered_json document =
      std::visit([&](const auto& asked) { return document_of(asked, goes_on); },
                 read_question(command, parameters));
  return page_html(page_of(document), live_form(parameters, ""));
}

std::string form_reply(const Parameters& parameters, const std::string& error) {
  Page page{.title = "zeroplan", .verdict = "", .sentence = "", .answer = {}};
  page.footer = "Plans the training of large models: will it fit, and which layout.";
  return page_html(page, live_form(parameters, error));
}

}  // namespace zeroplan
