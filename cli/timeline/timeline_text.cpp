// How does a step look in a terminal? Front door: timeline_text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/out/report.hpp"
#include "cli/timeline/timeline_report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t usual_width = 72;
constexpr std::size_t beside_chart = 11;  // the numbers at its left
constexpr int chart_height = 12;
constexpr std::size_t shown_tensors = 12;

std::size_t columns_of(const Timeline& timeline, const TextStyle& style) {
  const std::size_t room =
      style.width == 0 ? usual_width : std::min(style.width, widest_drawing) - beside_chart;
  return std::min(room, timeline.live.size());
}

// The highest allocated bytes of each column.
std::vector<Bytes> columns(const Timeline& timeline, const TextStyle& style) {
  const std::size_t events = timeline.live.size();
  std::vector<Bytes> out(columns_of(timeline, style));
  for (std::size_t i = 0; i < events; ++i) {
    Bytes& column = out[i * out.size() / events];
    column = std::max(column, timeline.live[i].allocated());
  }
  return out;
}

std::string chart(const Timeline& timeline, const TextStyle& style) {
  const Bytes low = timeline.resident.allocated();
  const Bytes high = timeline.live[timeline.highest].allocated();
  const double span = std::max(1.0, static_cast<double>((high - low).count()));
  const std::vector<Bytes> heights = columns(timeline, style);
  const bool ascii = style.width > 0 && !style.blocks;
  const char* const whole = ascii ? "#" : "\u2588";
  const char* const half = ascii ? "." : "\u2584";
  std::string out;
  for (int row = chart_height; row > 0; --row) {
    const double level = gibibytes(low) + span * row / chart_height / static_cast<double>(gibi);
    std::string line;
    for (const Bytes column : heights) {
      const double filled = chart_height * static_cast<double>((column - low).count()) / span;
      line += filled >= row ? whole : filled >= row - 0.5 ? half : " ";
    }
    out += fmt::format("{:>9.2f} |{}\n", level, line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return out + fmt::format("{:>9.2f} +{:-<{}}\n", gibibytes(low), "", heights.size());
}

// Names of passes under the columns where they begin, as many as have room.
std::string pass_ruler(const Timeline& timeline, bool with_chunk, const TextStyle& style) {
  const std::size_t width = columns_of(timeline, style);
  std::string ruler(width, ' ');
  std::size_t free = 0;
  for (const PassSpan& span : timeline.passes) {
    const auto at = static_cast<std::size_t>(span.first) * width / timeline.live.size();
    const std::string name = pass_name(span.pass, with_chunk);
    if (at < free || at + name.size() > width) continue;
    ruler.replace(at, name.size(), name);
    free = at + name.size() + 1;
  }
  return fmt::format("{:>9}  {}\n", "GiB", ruler.substr(0, ruler.find_last_not_of(' ') + 1));
}

struct Total {
  std::int64_t count = 0;
  Bytes bytes;
};

// What lives at the highest moment, largest first.
std::string live_tensors(const Timeline& timeline) {
  std::map<std::string_view, Total> by_name;
  for (const LiveTensors& tensors : live_at_highest(timeline)) {
    Total& total = by_name[tensors.name];
    total.count += tensors.count;
    total.bytes += tensors.total();
  }
  std::vector<std::pair<std::string_view, Total>> sorted(by_name.begin(), by_name.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::string out = fmt::format("\n  live at the highest moment       tensors       GiB\n");
  out += fmt::format("    {:<28}{:>9}{:>10.2f}\n", "what stays through the step", "",
                     gibibytes(timeline.resident.allocated()));
  Total rest;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, total] = sorted[i];
    if (i < shown_tensors) {
      out += fmt::format("    {:<28}{:>9}{:>10.2f}\n", name, total.count, gibibytes(total.bytes));
    } else {
      rest.count += total.count;
      rest.bytes += total.bytes;
    }
  }
  if (rest.count > 0)
    out += fmt::format("    {:<28}{:>9}{:>10.2f}\n", "smaller ones", rest.count,
                       gibibytes(rest.bytes));
  return out;
}

std::string phase_rows(const std::vector<PhasePeak>& phases) {
  if (phases.empty()) return {};
  std::string out = "\n  phase           allocated  reserved  highest at\n";
  for (const PhasePeak& peak : phases) {
    out += fmt::format("    {:<14}{:>9.2f}{:>10.2f}  {}\n", spaced(name_of(peak.phase)),
                       gibibytes(peak.allocated), gibibytes(peak.reserved),
                       peak.tensor.empty() ? "its start" : peak.tensor);
  }
  return out;
}

}  // namespace

std::string timeline_text(const Problem& problem, const RankMemory& memory, TextStyle style) {
  const Timeline& timeline = memory.step;
  const Played& event = timeline.events[timeline.highest];
  const bool with_chunk = has_chunks(timeline);
  std::string where = event.phase == Phase::optimizer_step ? "the optimizer step"
                      : event.phase == Phase::checkpoint   ? "saving a checkpoint"
                                                           : "";
  const auto highest = static_cast<std::int64_t>(timeline.highest);
  for (const PassSpan& span : timeline.passes) {
    const bool here = span.first <= highest && highest < span.last;
    if (where.empty() && here) where = "pass " + pass_name(span.pass, with_chunk);
  }
  std::string out =
      fmt::format("stage {} of {}, {}: at most {:.2f} GiB allocated, in {} at '{}'\n", memory.stage,
                  problem.layout.pp, problem.model.name,
                  gibibytes(timeline.live[timeline.highest].allocated()), where, event.tensor.name);
  if (style.quiet) return out;
  return out + "\n" + chart(timeline, style) + pass_ruler(timeline, with_chunk, style) +
         live_tensors(timeline) + phase_rows(memory.phases);
}

}  // namespace zeroplan
