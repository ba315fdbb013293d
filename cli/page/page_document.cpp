// What is a page made of? Front doors: fit_page, sweep_page, compare_page.
#include "cli/page/page_document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/compare/compare_report.hpp"
#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cli/out/written_file.hpp"
#include "cli/page/page.hpp"
#include "cli/page/plan_parts.hpp"
#include "cli/page/questions_beside.hpp"
#include "cli/page/search_beside.hpp"
#include "cli/sweep/sweep_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json opened(const Asked& asked, Json answer) {
  return {{"schema", "zeroplan.page/1"}, {"kind", asked.command},
          {"versions", versions_json()}, {"typed", asked.typed},
          {"answer", std::move(answer)}, {"plans", Json::array()}};
}

Json plan_document(const std::string& label, const FitAnswer& answer, const Asked& asked) {
  Json fit = fit_fields(answer);
  if (asked.cost) fit["training"] = cost_json(answer, *asked.cost);
  Json out{{"label", label}, {"fit", std::move(fit)}};
  out.update(plan_parts(answer, asked.layout));
  return out;
}

void add_questions(Json& page, const FitAnswer& answer, const Asked& asked) {
  page["sensitivity"] = sensitivity(answer, asked.layout, asked.cost);
  page["zero"] = zero_stages(answer, asked.layout);
}

}  // namespace

Json fit_page(const FitAnswer& answer, const Asked& asked) {
  Json page = opened(asked, Json::parse(fit_json(answer, asked.cost)));
  page["plans"].push_back(plan_document("", answer, asked));
  if (Json search = search_beside(answer, asked.layout); !search.is_null()) {
    page["search"] = std::move(search);
  }
  add_questions(page, answer, asked);
  return page;
}

Json sweep_page(const SweepAnswer& answer, const SweepQuestion& question, const Asked& asked) {
  Json page = opened(asked, Json::parse(sweep_json(answer, question, asked.cost)));
  page["search"] = search_fields(answer, question);
  page["model"] = question.request.model.name;
  page["gpus"] =
      fmt::format("{} x {}", question.request.cluster.gpus, question.request.cluster.gpu.name);
  if (answer.plans.empty()) return page;
  const FitAnswer& taken = answer.plans[answer.recommended].answer;
  page["plans"].push_back(plan_document("", taken, asked));
  add_questions(page, taken, asked);
  return page;
}

Json compare_page(const Comparison& sides, const Asked& asked) {
  Json page = opened(asked, Json::parse(compare_json(sides)));
  page["plans"].push_back(plan_document("a", sides.a, asked));
  page["plans"].push_back(plan_document("b", sides.b, asked));
  return page;
}

void write_pages(const PageArguments& arguments, const Json& document) {
  const Page page = page_of(document);
  if (!arguments.html.empty()) write_file(arguments.html, page_html(page));
  if (!arguments.markdown.empty()) write_file(arguments.markdown, page_markdown(page));
}

}  // namespace zeroplan
