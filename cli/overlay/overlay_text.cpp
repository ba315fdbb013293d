// How do people read a step beside its prediction? Front door: overlay_text.
#include <fmt/format.h>

#include <cmath>

#include "cli/out/report.hpp"
#include "cli/out/text_table.hpp"
#include "cli/overlay/overlay_report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t kernels_in_text = 3;

std::string verdict_line(const OverlayReport& report, const std::string& gpu) {
  const Overlay& o = report.overlay;
  const double by = 100 * (o.measured / o.predicted - 1);
  const std::string step = fmt::format("the step takes {:.4f} s, predicted {:.4f} s, {:+.1f} %",
                                       o.measured, o.predicted, by);
  switch (report.verdict) {
    case OverlayVerdict::agrees:
      return fmt::format("agrees: {}, give or take {:.0f} %", step, 100 * report.band);
    case OverlayVerdict::differs:
      return fmt::format("differs: {}, give or take {:.0f} %", step, 100 * report.band);
    case OverlayVerdict::other_device:
      break;
  }
  return fmt::format(
      "another device: the host takes {:.4f} s for the step, predicted {:.4f} s of {}", o.measured,
      o.predicted, gpu);
}

std::string step_line(const MeasuredStep& measured) {
  if (measured.name.empty()) return "";
  return measured.steps == 1
             ? fmt::format("  measured: {}, the one step of the trace\n", measured.name)
             : fmt::format("  measured: {}, the median of {} steps of {:.4f} to {:.4f} s\n",
                           measured.name, measured.steps, measured.shortest, measured.longest);
}

std::string table_text(const Overlay& overlay, std::size_t width) {
  std::vector<std::string> name, ratio;
  struct Side {
    std::vector<std::string> count, seconds, exposed;
    void add(const std::optional<WorkSum>& sum, Work work) {
      count.push_back(sum && sum->count > 0 ? with_thousands(sum->count) : "");
      seconds.push_back(sum ? fmt::format("{:.4f}", sum->seconds) : "-");
      exposed.push_back(sum && work == Work::collective ? fmt::format("{:.4f}", sum->exposed) : "");
    }
  };
  Side measured, predicted;
  for (const OverlayRow& row : overlay.rows) {
    name.push_back(row.name);
    measured.add(row.measured, row.work);
    predicted.add(row.predicted, row.work);
    ratio.push_back(row.ratio() ? fmt::format("{:.2f}", *row.ratio()) : "");
  }
  TextTable table(1);
  table.add("", std::move(name), Align::left);
  table.add("measured s", std::move(measured.seconds));
  table.add("predicted s", std::move(predicted.seconds));
  table.add("times", std::move(ratio));
  table.add("kernels", std::move(measured.count));
  table.add("predicted kernels", std::move(predicted.count));
  table.add("exposed s", std::move(measured.exposed));
  table.add("predicted exposed s", std::move(predicted.exposed));
  return table.text(width);
}

std::string named_text(const OverlayRow& row) {
  std::string out;
  if (!row.measured) return out;
  const std::vector<NamedWork>& list = row.measured->names;
  for (std::size_t i = 0; i < std::min(kernels_in_text, list.size()); ++i) {
    out += fmt::format("    {:>9.4f} s {:>6} x {:.90}\n", list[i].seconds, list[i].count,
                       list[i].name);
  }
  if (out.empty()) return out;
  return fmt::format("\n  {}, longest of {}\n{}", row.name, list.size(), out);
}

std::string exposed_line(const Overlay& overlay) {
  const OverlayRow* most = nullptr;
  for (const OverlayRow& row : overlay.rows) {
    if (row.work != Work::collective || !row.measured || row.measured->exposed <= 0) continue;
    if (most == nullptr || row.measured->exposed > most->measured->exposed) most = &row;
  }
  if (most == nullptr) return "";
  const double predicted = most->predicted ? most->predicted->exposed : 0;
  return fmt::format(
      "  waited for most: {}, {:.4f} s of {:.4f} s while nothing computes; predicted {:.4f} s\n",
      most->name, most->measured->exposed, most->measured->seconds, predicted);
}

}  // namespace

std::string overlay_text(const FitAnswer& answer, const OverlayReport& report, TextStyle style) {
  std::string out = verdict_line(report, answer.problem.cluster.gpu.name) + "\n";
  if (style.quiet) return out;
  const Problem& p = answer.problem;
  out += fmt::format("  {} on {} x {}, {}\n  {}\n", p.model.name, p.cluster.gpus,
                     p.cluster.gpu.name, *code_of(p).name, layout_text(p));
  if (p.layout.pp > 1) out += fmt::format("  of stage {} of {}\n", report.stage, p.layout.pp);
  out += step_line(report.measured) + "\n" + table_text(report.overlay, style.width);
  for (std::size_t i = 0; i < report.overlay.rows.size(); ++i) {
    const OverlayRow& row = report.overlay.rows[i];
    if (i == 0 || row.work == Work::other) out += named_text(row);
  }
  out += "\n" + exposed_line(report.overlay);
  if (report.memory) out += memory_text(*report.memory, style.width);
  if (report.calibration) {
    out += calibration_text(*report.calibration, report.overlay.measured);
  }
  for (const std::string& note : report.notes) out += fmt::format("  {}\n", note);
  if (report.verdict == OverlayVerdict::other_device) return out;
  return out + fmt::format("  {}\n", largest_difference(report.overlay));
}

std::string overlay_csv(const OverlayReport& report) {
  std::string out =
      "kind,measured_kernels,measured_seconds,measured_exposed,predicted_kernels,"
      "predicted_seconds,predicted_exposed\n";
  const WorkSum none;
  for (const OverlayRow& row : report.overlay.rows) {
    const WorkSum& m = row.measured ? *row.measured : none;
    const WorkSum& p = row.predicted ? *row.predicted : none;
    const bool quoted = row.name.find_first_of(",\"") != std::string::npos;
    std::string name = row.name;
    for (std::size_t at = 0; quoted && (at = name.find('"', at)) != std::string::npos; at += 2) {
      name.insert(at, 1, '"');
    }
    out += fmt::format("{},{},{:.9g},{:.9g},{},{:.9g},{:.9g}\n",
                       quoted ? fmt::format("\"{}\"", name) : name, m.count, m.seconds, m.exposed,
                       p.count, p.seconds, p.exposed);
  }
  return out;
}

}  // namespace zeroplan
