// How is a sweep's answer written for people? Front door: sweep_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/sweep/front_plot.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "cli/sweep/sweep_table.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan {
namespace {

// Green where a plan is as good as the best, yellow up to half as slow again, red beyond.
std::string shade(const std::string& cell, double slower, bool color) {
  if (!color) return cell;
  const std::string_view code = slower <= default_tie ? "32" : slower <= 0.5 ? "33" : "31";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, cell);
}

// What each tp and pp reaches: per cent slower than the best. Nothing where the search found none.
std::string heat_map(const SearchResult& search, bool color) {
  if (search.best.empty()) return "";
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
                 ? shade(fmt::format("{:>7}", fmt::format("{}{:.0f}", cell.at_most() ? "<" : "",
                                                          100 * slower)),
                         slower, color)
                 : fmt::format("{:>7}", cell.cut() ? "slow" : "-");
    }
  }
  return out +
         "\n  <: of those that were timed, which not all were, since none can be among the best; "
         "slow: "
         "none was; -: nothing fits\n";
}

std::string looked_at(const SweepAnswer& answer) {
  const SearchResult& s = answer.search;
  const std::string_view by_what =
      !answer.plans.empty() && s.best.empty()
          ? " by the sum of their tensors and what is usually wasted beside them"
      : s.best.empty() && s.refused_when_played > 0
          ? " by the sum of their tensors, none with the allocator replayed"
          : "";
  std::string out =
      fmt::format("\n  {} layouts: {} evaluated, {} of them fit{}\n", with_thousands(s.points),
                  with_thousands(s.evaluated), with_thousands(s.feasible), by_what);
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

// 4 x 31, 32: runs of stages with as many layers.
std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < sizes.size();) {
    std::size_t end = i;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    runs.push_back(end - i > 1 ? fmt::format("{} x {}", end - i, sizes[i])
                               : fmt::format("{}", sizes[i]));
    i = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string faster_splits(const std::vector<Plan>& plans) {
  std::string out;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].faster_split) continue;
    out += fmt::format("  {}: stages of {} layers would make the slowest one {:.0f} % faster\n",
                       i + 1, sizes_text(plans[i].faster_split->partition.sizes),
                       100 * plans[i].faster_split->saved());
  }
  return out;
}

}  // namespace

std::string sweep_text(const SweepAnswer& answer,
                       const SweepQuestion& question,
                       const std::optional<CostQuestion>& cost,
                       TextStyle style) {
  const Plan& taken = answer.plans[answer.recommended];
  const Problem& p = taken.answer.problem;
  const bool tight = taken.answer.estimate.verdict == Verdict::tight;
  std::string out = fmt::format(
      "{} of {} layouts: {}, ZeRO {}, micro-batch {}, recompute {}: {:.0f} tokens/s a GPU, MFU "
      "{:.1f} %, {:.2f} GiB free\n",
      tight ? "tight, the nearest to fitting" : "take", with_thousands(answer.search.points),
      grid_text(p), name_of(p.layout.zero), p.layout.micro_batch, name_of(p.layout.recompute),
      tokens_per_second_per_gpu(p, taken.answer.step), 100 * mfu(p, taken.answer.step),
      gibibytes(taken.answer.estimate.headroom()));
  if (style.quiet) return out;
  out += fmt::format("  {}, {} parameters, on {} x {}, {}\n", p.model.name,
                     with_thousands(parameter_count(p.model)), p.cluster.gpus, p.cluster.gpu.name,
                     *code_of(p).name);
  if (cost) out += cost_text(taken.answer, *cost);
  out += "\n" + plans_table(answer, style.width);
  if (question.objective == Objective::step) {
    out += fmt::format(
        "  =: slower than the fastest by {:g} % at most; *: of these the simplest, then the "
        "roomiest\n",
        100 * question.tie);
  }
  out += faster_splits(answer.plans);
  if (question.front) {
    out += front_table(answer.search.front, question, style.width) +
           front_plot(answer, question, style);
  }
  if (question.objective == Objective::step) out += heat_map(answer.search, style.color);
  out += looked_at(answer) + "\n  assumed\n";
  for (const std::string& assumption : taken.answer.assumptions) {
    out += fmt::format("    {}\n", assumption);
  }
  return out;
}

std::string no_plan_text(const SweepAnswer& answer, const SweepQuestion& question, bool quiet) {
  const SearchResult& s = answer.search;
  const double capacity = gibibytes(
      question.max_memory ? std::min(*question.max_memory, question.request.cluster.gpu.memory)
                          : question.request.cluster.gpu.memory);
  std::string out = fmt::format("nothing fits: {} layouts, {} GiB a GPU\n",
                                with_thousands(s.points), fmt::format("{:.2f}", capacity));
  if (quiet) return out;
  if (s.least_bound) {
    out += fmt::format(
        "  states, kept activations and fixed costs alone need at least {:.2f} GiB of a GPU\n",
        gibibytes(*s.least_bound));
  }
  if (s.least) {
    const Layout& l = s.least->layout;
    out += fmt::format(
        "  of the layouts evaluated the smallest needs {:.2f} GiB: dp {} x tp {} x pp {} x cp {}, "
        "ZeRO {}, recompute {}\n",
        gibibytes(s.least->device), l.dp, l.tp, l.pp, l.cp, name_of(l.zero), name_of(l.recompute));
  }
  for (const NearestFit& n : answer.nearest_fits) {
    out += fmt::format("  {}: {:.2f} GiB would do\n", n.change, gibibytes(n.device));
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
