#pragma once
// What a page is made of: the document that --json prints, and further answers beside it.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/out/cost.hpp"
#include "cli/request/arguments.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

struct Comparison;

/// What was asked, for the commands on the page and for the questions beside it.
struct Asked {
  std::string command;  // fit, sweep, compare
  std::string typed;    // the command line that asks it again
  LayoutArguments layout;
  std::optional<CostQuestion> cost;
};

/// Schema zeroplan.page/1: `kind` and `answer`, the document of `--json`; `plans`, each with the
/// fields of zeroplan.fit/1 under `fit` and what is drawn of it: `links`, `moves`, `schedule`,
/// `launch` and `command`; `sensitivity` and `zero`: the same question with one thing changed,
/// each with `fit` or `refused`; `search` (search_beside.hpp), where the plan was chosen by one.
nlohmann::ordered_json fit_page(const FitAnswer& answer, const Asked& asked);

/// Schema zeroplan.page/1 of a sweep: what fit_page has, of the recommended plan.
nlohmann::ordered_json sweep_page(const SweepAnswer& answer,
                                  const SweepQuestion& question,
                                  const Asked& asked);

/// Schema zeroplan.page/1 of a comparison: what fit_page has, of both sides, with nothing asked
/// beside them.
nlohmann::ordered_json compare_page(const Comparison& sides, const Asked& asked);

/// Writes the files that were asked for. Throws as write_file does.
void write_pages(const PageArguments& arguments, const nlohmann::ordered_json& document);

}  // namespace zeroplan
