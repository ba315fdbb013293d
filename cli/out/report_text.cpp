// How is an answer written for people? Front door: fit_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/out/memory_bars.hpp"
#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cost_model/answer/step_band.hpp"
#include "cost_model/rank/weights.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

std::string colored(std::string_view text, Verdict verdict, bool color) {
  if (!color) return std::string(text);
  constexpr std::string_view green = "32", yellow = "33", red = "31";
  const std::string_view code = verdict == Verdict::fits    ? green
                                : verdict == Verdict::tight ? yellow
                                                            : red;
  return fmt::format("\x1b[1;{}m{}\x1b[0m", code, text);
}

// Hundredths of a GiB, the last digit shown.
std::int64_t hundredths(Bytes bytes) {
  return static_cast<std::int64_t>(std::llround(gibibytes(bytes) * 100));
}

std::string verdict_line(const FitAnswer& a, std::optional<Bytes> host_memory, bool color) {
  const Estimate& e = a.estimate;
  const std::string word = colored(spaced(name_of(e.verdict)), e.verdict, color);
  // Where the GPU would hold its part.
  if (host_memory && e.host_a_node > *host_memory && e.headroom() >= Bytes{}) {
    return fmt::format("{}: the host of each node needs {:.2f} of {:.2f} GiB ({:.2f} GiB short)\n",
                       word, gibibytes(e.host_a_node), gibibytes(*host_memory),
                       gibibytes(e.host_a_node - *host_memory));
  }
  // What is free by the numbers that are shown, so that the line adds up, as the rows do.
  const std::int64_t free = hundredths(e.capacity) - hundredths(e.device());
  const std::string margin = fmt::format("{:.2f} GiB {}", std::abs(static_cast<double>(free)) / 100,
                                         e.headroom() < Bytes{} ? "short" : "free");
  return fmt::format("{}: the worst stage, {}, needs {:.2f} of {:.2f} GiB ({})\n", word,
                     e.peak().stage, gibibytes(e.device()), gibibytes(e.capacity), margin);
}

std::string question_lines(const FitAnswer& a) {
  const Problem& p = a.problem;
  std::string out = fmt::format("  {}, {} parameters, on {} x {}, {}\n", p.model.name,
                                with_thousands(parameter_count(p.model)), p.cluster.gpus,
                                p.cluster.gpu.name, *code_of(p).name);
  out += fmt::format("  {}\n", layout_text(p));
  if (!a.chosen.empty())
    out += fmt::format("  chosen: {}\n", spaced(fmt::format("{}", fmt::join(a.chosen, ", "))));
  std::vector<std::string> settings;  // typed or chosen
  for (const auto& [key, value] : changed_settings(p.runtime)) {
    settings.push_back(fmt::format("{}={}", key, value));
  }
  if (!settings.empty()) out += fmt::format("  set: {}\n", fmt::join(settings, " "));
  return out;
}

std::string row(std::string_view name, std::int64_t hundredths) {
  return fmt::format("    {:<28}{:>10.2f}\n", name, static_cast<double>(hundredths) / 100);
}

// A probability near its ends is not claimed to the percent.
std::string percent(double probability) {
  if (probability > 0.99) return "above 99 %";
  if (probability < 0.01) return "below 1 %";
  return fmt::format("{:.0f} %", 100 * probability);
}

// A host is not all for what is offloaded there: its own band is not known.
std::string host_verdict(const Estimate& e, std::optional<Bytes> memory) {
  if (!memory) return " GiB (--host-memory says whether it has that)";
  return fmt::format(" of {:.2f} GiB, {}", gibibytes(*memory),
                     e.host_a_node > *memory ? "does not fit" : "fits");
}

// Each row shows by how much it moves the rounded running sum, so that what is shown adds up too.
std::string peak_rows(const FitAnswer& a, std::optional<Bytes> host_memory) {
  const StageMemory& s = a.estimate.peak();
  std::string out = fmt::format(
      "\n  {:<36}{:>4}\n",
      fmt::format("stage {}, {} layers, in {}", s.stage, s.layers, spaced(name_of(s.phase))),
      "GiB");
  Bytes sum;
  for (std::size_t i = 0; i < names<Category>().size(); ++i) {
    const auto category = static_cast<Category>(i);
    if (category == Category::fragmentation) out += row("= allocated", hundredths(sum));
    if (category == Category::communicators) out += row("= reserved", hundredths(sum));
    const Bytes next = sum + s.memory[category];
    out += row(spaced(name_of(category)), hundredths(next) - hundredths(sum));
    sum = next;
  }
  out += row("= needed", hundredths(sum));
  out += row("free", hundredths(a.estimate.capacity) - hundredths(sum));
  out += row("= capacity", hundredths(a.estimate.capacity));
  out += fmt::format("  between {:.2f} and {:.2f} GiB; fits with probability {}\n",
                     gibibytes(a.estimate.low), gibibytes(a.estimate.high),
                     percent(a.estimate.fit_probability));
  if (a.estimate.resumed > Bytes{} && a.estimate.resumed_device() > a.estimate.device()) {
    out += fmt::format("  resumed from a checkpoint: {:.2f} GiB{}\n",
                       gibibytes(a.estimate.resumed_device()),
                       a.estimate.resumed_device() > a.estimate.capacity ? ", does not fit" : "");
  }
  if (a.estimate.host_a_node > Bytes{}) {
    out += fmt::format("  offloaded to the host of each node: {:.2f}{}\n",
                       gibibytes(a.estimate.host_a_node), host_verdict(a.estimate, host_memory));
  }
  return out;
}

std::string step_lines(const FitAnswer& a) {
  const StepTime& s = a.step;
  if (!has_time(a.problem, s)) return "";
  const double half = 100 * step_band(a.problem).half_width;
  std::string out = fmt::format("\n  step {:.3f} s, give or take {:.0f} %: computing {:.3f}",
                                s.seconds, half, s.computed);
  if (s.exposed > 0) out += fmt::format(", exposed communication {:.3f}", s.exposed);
  if (a.problem.layout.pp > 1) out += fmt::format(", bubble {:.3f}", s.bubble);
  if (s.straggling > 0) out += fmt::format(", stragglers {:.3f}", s.straggling);
  return out +
         fmt::format(
             "\n  MFU {:.1f} %, {:.0f} TFLOP/s and {:.0f} tokens/s a GPU, with {} attention\n",
             100 * mfu(a.problem, s), tflops_per_gpu(a.problem, s),
             tokens_per_second_per_gpu(a.problem, s), name_of(a.problem.training.scores));
}

// What the recommended layout is recommended instead of.
std::string fastest_line(const FitAnswer& a) {
  if (!a.fastest) return "";
  const auto& [problem, step] = *a.fastest;
  if (problem.layout == a.problem.layout) return "  no layout that fits is faster\n";
  const double tokens = tokens_per_second_per_gpu(problem, step);
  const double more = tokens / tokens_per_second_per_gpu(a.problem, a.step) - 1;
  return fmt::format("  fastest, {:.1f} % more tokens/s: {}\n", 100 * more, layout_text(problem));
}

// Places of nodes as 0-3, 8, 10-12; of many the first.
std::string places_text(const std::vector<std::int64_t>& places) {
  constexpr std::size_t shown = 16;
  std::string out;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < places.size(); ++runs) {
    if (runs == shown) return out + " and so on, as --json has it";
    std::size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    if (runs > 0) out += ", ";
    out += end == i + 1 ? fmt::format("{}", places[i])
                        : fmt::format("{}-{}", places[i], places[end - 1]);
    i = end;
  }
  return out;
}

// The layout of the answer with its ranks on other nodes.
std::string placement_line(const FitAnswer& a) {
  if (!a.placement) return "";
  const double saved = 1 - a.placement->step_seconds / a.step.seconds;
  return fmt::format(
      "  {:.1f} % shorter with {} under as few switches as can be: list the nodes as {}\n",
      100 * saved, a.placement->what, places_text(a.placement->nodes));
}

std::string other_stages(const FitAnswer& a) {
  if (a.estimate.stages.size() < 2) return "";
  std::string out = "\n  stage  layers  highest in        GiB\n";
  for (const StageMemory& s : a.estimate.stages) {
    out += fmt::format("  {:>5}  {:>6}  {:<14}{:>7.2f}\n", s.stage, s.layers,
                       spaced(name_of(s.phase)), gibibytes(s.memory.device()));
  }
  return out;
}

std::string next_lines(const FitAnswer& a, const std::string& next) {
  std::string out;
  if (!a.nearest_fits.empty()) {
    out += "\n  what would make it fit, all else of this layout as it is\n";
    for (const NearestFit& n : a.nearest_fits) {
      out += fmt::format("    {:<32}{:>7.2f} GiB\n", n.change, gibibytes(n.device));
    }
  }
  if (!a.fewest_gpus) return out;
  const std::string& gpu = a.problem.cluster.gpu.name;
  // Another layout than the one that the changes above keep.
  out += fmt::format("\n  smallest number of {} that fits{}: {}\n", gpu,
                     a.nearest_fits.empty() ? "" : ", in a layout of its own", *a.fewest_gpus);
  if (*a.fewest_gpus != a.problem.cluster.gpus) {
    out += fmt::format("  next: {}\n", next);
  }
  return out;
}

}  // namespace

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string with_thousands(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string layout_text(const Problem& p) {
  const Layout& l = p.layout;
  std::string grid = fmt::format("dp {} x tp {} x pp {}", l.dp, l.tp, l.pp);
  if (l.vpp > 1) grid += fmt::format(", vpp {}", l.vpp);
  if (l.cp > 1) grid += fmt::format(" x cp {}", l.cp);
  if (p.model.moe) grid += fmt::format(", ep {} x etp {}", l.ep, l.etp);
  return fmt::format("{}, ZeRO {}, micro-batch {} x {}, recompute {}", grid, name_of(l.zero),
                     l.micro_batch, micro_batches(p), name_of(l.recompute));
}

std::string fit_text(const FitAnswer& answer, const AnswerExtras& extras, TextStyle style) {
  std::string out = verdict_line(answer, extras.host_memory, style.color);
  if (style.quiet) return out;
  out += question_lines(answer);
  if (style.width > 0) {
    out += "\n" + memory_bars(answer.estimate, {style.width, style.blocks, style.color});
  }
  out += peak_rows(answer, extras.host_memory) + other_stages(answer) + step_lines(answer) +
         placement_line(answer);
  if (extras.cost) out += cost_text(answer, *extras.cost);
  out += fastest_line(answer) + "\n  assumed\n";
  for (const std::string& assumption : answer.assumptions)
    out += fmt::format("    {}\n", assumption);
  return out + next_lines(answer, extras.next);
}

}  // namespace zeroplan
