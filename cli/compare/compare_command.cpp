// zeroplan compare: what do two layouts differ in? Front door: run_compare.
#include "cli/commands.hpp"
#include "cli/compare/both_sides.hpp"
#include "cli/compare/compare_report.hpp"
#include "cli/compare/side.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/page/page_document.hpp"
#include "cli/page/typed_line.hpp"
#include "cli/request/plan_file.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {

ExitCode run_compare(const CompareArguments& arguments, const OutputOptions& output) {
  LayoutArguments common = arguments.common;
  std::vector<std::string> read = files_read(common);
  read.insert(read.end(), arguments.subjects.begin(), arguments.subjects.end());
  check_outputs({{"--html", arguments.page.html}, {"--markdown", arguments.page.markdown}}, read);
  const bool plans = arguments.subjects.size() == 2;
  if (plans && (arguments.a || arguments.b)) {
    throw InputError("compare: two plans, or MODEL with --a and --b, not both");
  }
  if (!plans && (!arguments.a || !arguments.b)) {
    throw InputError(
        "compare: two sides are needed: MODEL --a \"OPTIONS\" --b \"OPTIONS\", or two plan files");
  }
  if (!plans && !arguments.subjects.empty()) common.model = arguments.subjects.front();
  if (common.model == "-") {  // which can be read once
    std::vector<std::string> notes;
    common = with_plan(common, notes);
  }
  const auto side = [&](std::string_view label, const std::string& text) {
    return Side{label, read_side(common, label, text)};
  };
  const Comparison sides =
      plans ? answer_both(side("plan a", arguments.subjects[0]),
                          side("plan b", arguments.subjects[1]), arguments.each)
            : answer_both(side("--a", *arguments.a), side("--b", *arguments.b), arguments.each);
  if (arguments.page.wanted()) {
    write_pages(arguments.page,
                compare_page(sides, {"compare", typed_line(arguments), common, std::nullopt}));
  }
  write_in_form(
      output, [&] { return compare_json(sides); }, [&] { return compare_csv(sides); },
      [&] { return compare_text(sides, output.quiet); });
  const bool none = sides.a.estimate.verdict == Verdict::does_not_fit &&
                    sides.b.estimate.verdict == Verdict::does_not_fit;
  return none ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
