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
  const Comparison sides = compared(arguments, common);
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
