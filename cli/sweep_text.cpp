// How is a sweep's answer written for people? Front door: sweep_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/sweep_report.hpp"
#include "cost_model/weights.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

std::string flag(bool on) {
  return on ? "on" : "off";
}

// One column of the table: what it is called, what a plan has in it, and the value that needs no
// column where every plan has it.
struct Column {
  std::string_view name;
  std::string (*cell)(const Plan&);
  std::string_view usual;
};

const Layout& layout(const Plan& plan) {
  return plan.answer.problem.layout;
}

constexpr std::string_view always_shown = "";

const Column columns[] = {
    {"GPUs", [](const Plan& p) { return fmt::format("{}", p.scored.gpus); }, always_shown},
    {"dp", [](const Plan& p) { return fmt::format("{}", layout(p).dp); }, always_shown},
    {"tp", [](const Plan& p) { return fmt::format("{}", layout(p).tp); }, always_shown},
    {"pp", [](const Plan& p) { return fmt::format("{}", layout(p).pp); }, always_shown},
    {"vpp", [](const Plan& p) { return fmt::format("{}", layout(p).vpp); }, "1"},
    {"cp", [](const Plan& p) { return fmt::format("{}", layout(p).cp); }, "1"},
    {"ep", [](const Plan& p) { return fmt::format("{}", layout(p).ep); }, "1"},
    {"etp", [](const Plan& p) { return fmt::format("{}", layout(p).etp); }, "1"},
    {"ZeRO", [](const Plan& p) { return std::string(name_of(layout(p).zero)); }, always_shown},
    {"hsdp", [](const Plan& p) { return fmt::format("{}", layout(p).hsdp); }, "0"},
    {"sp", [](const Plan& p) { return flag(layout(p).sequence_parallel); }, "off"},
    {"batch",
     [](const Plan& p) {
       return fmt::format("{} x {}", layout(p).micro_batch, micro_batches(p.answer.problem));
     },
     always_shown},
    {"schedule", [](const Plan& p) { return std::string(name_of(layout(p).schedule)); }, "1f1b"},
    {"recompute",
     [](const Plan& p) {
       const Layout& l = layout(p);
       if (l.recompute_modules > 0)
         return setting_text(p.answer.problem.runtime, "recompute_modules");
       return l.recompute_layers > 0
                  ? fmt::format("{} x {}", name_of(l.recompute), l.recompute_layers)
                  : std::string(name_of(l.recompute));
     },
     "none"},
    {"ends",
     [](const Plan& p) {
       const Layout& l = layout(p);
       return l.first_stage > 0 ? fmt::format("{}+{}", l.first_stage, l.last_stage) : "as set";
     },
     "as set"},
    {"overlap",
     [](const Plan& p) -> std::string {
       switch (layout(p).overlap) {
         case Overlap::as_set:
           return "as set";
         case Overlap::gradients:
           return "g";
         case Overlap::parameters:
           break;
       }
       return "g+p";
     },
     "as set"},
    {"step s", [](const Plan& p) { return fmt::format("{:.3f}", p.scored.seconds); }, always_shown},
    {"MFU %",
     [](const Plan& p) {
       return fmt::format("{:.1f}", 100 * mfu(p.answer.problem, p.answer.step));
     },
     always_shown},
    {"bubble %",
     [](const Plan& p) { return fmt::format("{:.1f}", 100 * p.answer.step.bubble_fraction()); },
     always_shown},
    {"GiB", [](const Plan& p) { return fmt::format("{:.2f}", gibibytes(p.scored.device)); },
     always_shown},
    {"free",
     [](const Plan& p) { return fmt::format("{:.2f}", gibibytes(p.answer.estimate.headroom())); },
     always_shown},
};

std::string table(const SweepAnswer& answer) {
  std::vector<std::string> lines(answer.plans.size() + 1, "   ");
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    lines[i + 1] =
        fmt::format("{:>3}", fmt::format("{}{}", i + 1, answer.plans[i].equal ? "=" : " "));
  }
  for (const Column& column : columns) {
    std::vector<std::string> cells;
    for (const Plan& plan : answer.plans) cells.push_back(column.cell(plan));
    const bool plain = std::all_of(cells.begin(), cells.end(),
                                   [&](const std::string& c) { return c == column.usual; });
    if (plain) continue;
    std::size_t width = column.name.size();
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    lines[0] += fmt::format("  {:>{}}", column.name, width);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      lines[i + 1] += fmt::format("  {:>{}}", cells[i], width);
    }
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

// Green where a plan is as good as the best, yellow up to half as slow again, red beyond.
std::string shade(const std::string& cell, double slower, bool color) {
  if (!color) return cell;
  const std::string_view code = slower <= step_band ? "32" : slower <= 0.5 ? "33" : "31";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, cell);
}

// What each tp and pp reaches: per cent slower than the best.
std::string heat_map(const SearchResult& search, bool color) {
  std::set<std::int64_t> rows, across;
  for (const auto& [place, cell] : search.grid) {
    rows.insert(place.first);
    across.insert(place.second);
  }
  if (rows.size() * across.size() < 2) return "";
  double best = search.best.front().seconds_per_token;
  for (const auto& [place, cell] : search.grid) {
    if (cell.seconds_per_token > 0) best = std::min(best, cell.seconds_per_token);
  }
  std::string out = "\n  per cent slower than the best, by tp (down) and pp (across)\n      ";
  for (const std::int64_t pp : across) out += fmt::format("{:>7}", pp);
  for (const std::int64_t tp : rows) {
    out += fmt::format("\n  {:>4}", tp);
    for (const std::int64_t pp : across) {
      const auto found = search.grid.find({tp, pp});
      if (found == search.grid.end()) {
        out += fmt::format("{:>7}", "");
        continue;
      }
      const GridCell& cell = found->second;
      const double slower = cell.seconds_per_token / best - 1;
      out += cell.seconds_per_token > 0
                 ? shade(fmt::format("{:>7.0f}", 100 * slower), slower, color)
                 : fmt::format("{:>7}", cell.cut ? "slow" : "-");
    }
  }
  return out +
         "\n  of the layouts that were timed; slow: none was, since none can be among the best; -: "
         "nothing fits\n";
}

std::string looked_at(const SweepAnswer& answer) {
  const SearchResult& s = answer.search;
  std::string out =
      fmt::format("\n  {} layouts: {} evaluated, {} of them fit\n", with_thousands(s.points),
                  with_thousands(s.evaluated), with_thousands(s.feasible));
  std::vector<std::pair<std::int64_t, std::string_view>> reasons;
  for (const auto& [why, count] : s.rejected) reasons.emplace_back(-count, why);
  std::sort(reasons.begin(), reasons.end());
  for (const auto& [count, why] : reasons) {
    out += fmt::format("    {:>16}  {}\n", with_thousands(-count), why);
  }
  return out;
}

std::string grid_text(const Problem& p) {
  const Layout& l = p.layout;
  std::string out = fmt::format("dp {} x tp {} x pp {}", l.dp, l.tp, l.pp);
  if (l.cp > 1) out += fmt::format(" x cp {}", l.cp);
  if (l.vpp > 1) out += fmt::format(", vpp {}", l.vpp);
  if (p.model.moe) out += fmt::format(", ep {} x etp {}", l.ep, l.etp);
  return out;
}

}  // namespace

std::string sweep_text(const SweepAnswer& answer, const SweepQuestion& question, TextStyle style) {
  const Plan& best = answer.plans.front();
  const Problem& p = best.answer.problem;
  std::string out = fmt::format(
      "best of {} layouts: {}, ZeRO {}, micro-batch {}, recompute {}: {:.3f} s a step, MFU {:.1f} "
      "%\n",
      with_thousands(answer.search.points), grid_text(p), name_of(p.layout.zero),
      p.layout.micro_batch, name_of(p.layout.recompute), best.scored.seconds,
      100 * mfu(p, best.answer.step));
  if (style.quiet) return out;
  out += fmt::format("  {}, {} parameters, on {} x {}, {}\n\n", p.model.name,
                     with_thousands(parameter_count(p.model)), p.cluster.gpus, p.cluster.gpu.name,
                     name_of(p.runtime.kind));
  out += table(answer);
  out += fmt::format("  =: not slower than the fastest by more than {:.0f} %\n", 100 * step_band);
  if (question.objective == Objective::step) out += heat_map(answer.search, style.color);
  out += looked_at(answer) + "\n  assumed\n";
  for (const std::string& assumption : best.answer.assumptions) {
    out += fmt::format("    {}\n", assumption);
  }
  return out;
}

std::string no_plan_text(const SweepAnswer& answer, const SweepQuestion& question) {
  const SearchResult& s = answer.search;
  const double capacity = gibibytes(
      question.max_memory ? std::min(*question.max_memory, question.request.cluster.gpu.memory)
                          : question.request.cluster.gpu.memory);
  std::string out = fmt::format("nothing fits: {} layouts, {} GiB a GPU\n",
                                with_thousands(s.points), fmt::format("{:.2f}", capacity));
  if (s.least_floor) {
    out += fmt::format(
        "  states, kept activations and fixed costs alone need at least {:.2f} GiB of a GPU\n",
        gibibytes(*s.least_floor));
  }
  if (s.least) {
    const Layout& l = s.least->layout;
    out += fmt::format(
        "  the least that a layout needs is {:.2f} GiB: dp {} x tp {} x pp {} x cp {}, ZeRO {}, "
        "recompute {}\n",
        gibibytes(s.least->device), l.dp, l.tp, l.pp, l.cp, name_of(l.zero), name_of(l.recompute));
  }
  for (const std::vector<Field>& fields : answer.releases) {
    std::vector<std::string> flags;
    for (const Field field : fields) flags.push_back(fmt::format("--{}", name_of(field)));
    out += fmt::format("  without {} a layout fits\n", fmt::join(flags, " and "));
  }
  if (answer.fewest_gpus) {
    out += fmt::format("  smallest number of {} that fits: {}\n", question.request.cluster.gpu.name,
                       *answer.fewest_gpus);
  }
  return out + looked_at(answer);
}

}  // namespace zeroplan
