// How is a validation written for people? Front door: validate_text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/out/report.hpp"
#include "cli/validate/validate_report.hpp"

namespace zeroplan {
namespace {

using engine::ComparedCalls;
using engine::ComparedRank;
using engine::ComparedStage;
using engine::Validation;

std::string signed_number(std::int64_t value) {
  return (value > 0 ? "+" : "") + with_thousands(value);
}

std::string layout_line(std::string_view what, const Problem& p) {
  const Layout& l = p.layout;
  return fmt::format(
      "  {}: {}, dp {} x tp {} x pp {}, ZeRO {}, micro-batch {} x {}, {} tokens, recompute {}{}\n",
      what, p.model.name, l.dp, l.tp, l.pp, name_of(l.zero), l.micro_batch, micro_batches(p),
      p.training.sequence_length, name_of(l.recompute),
      l.sequence_parallel ? ", sequence parallelism" : "");
}

// Changes, as many to a line as fit.
std::string change_lines(const std::vector<std::string>& changes) {
  constexpr std::size_t width = 96;
  std::string out;
  std::string line;
  for (const std::string& change : changes) {
    if (!line.empty() && line.size() + change.size() > width) {
      out += fmt::format("    {};\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : "; ") + change;
  }
  return line.empty() ? out : out + fmt::format("    {}\n", line);
}

std::string row(std::string_view name, Bytes predicted, Bytes measured) {
  return fmt::format("    {:<24}{:>18}{:>18}{:>12}\n", name, with_thousands(predicted.count()),
                     with_thousands(measured.count()),
                     signed_number((measured - predicted).count()));
}

std::string memory_rows(const ComparedRank& rank, std::string_view measured) {
  const engine::Place& at = rank.place;
  std::string out = fmt::format("\n  {:<26}{:>18}{:>18}{:>12}\n",
                                fmt::format("dp {}, tp {}, pp {}, in {}", at.dp, at.tp, at.pp,
                                            spaced(name_of(rank.measured.phase))),
                                "predicted", measured, "difference");
  for (std::size_t i = 0; i < static_cast<std::size_t>(Category::fragmentation); ++i) {
    const auto category = static_cast<Category>(i);
    out +=
        row(spaced(name_of(category)), rank.predicted.live[category], rank.measured.live[category]);
  }
  out += row("= allocated bytes", rank.predicted.live.allocated(), rank.measured.live.allocated());
  return out;
}

std::string call_rows(const ComparedRank& rank, std::string_view measured) {
  if (rank.calls.empty()) return "";
  std::string out = fmt::format("\n  {:<26}{:>15}{:>10}{:>10}{:>16}\n", "its calls in a step",
                                "payload", "predicted", measured, "bytes sent");
  for (const ComparedCalls& c : rank.calls) {
    out += fmt::format("    {:<24}{:>15}{:>10}{:>10}{:>16}\n",
                       fmt::format("{} {}", c.group, name_of(c.collective)),
                       with_thousands(c.payload.count()), c.predicted, c.measured,
                       with_thousands(c.sent(c.measured).count()));
  }
  return out;
}

std::string numerics(const Validation& v) {
  std::string out = fmt::format("\n  the loss goes from {:.2f} to {:.2f} in {} steps\n",
                                v.losses.front(), v.losses.back(), v.losses.size());
  for (const ComparedStage& s : v.stages) {
    const bool equal = s.losses_equal && s.parameters_equal;
    out += fmt::format("  under ZeRO {} loss and parameters are {}\n", name_of(s.zero),
                       equal        ? "equal bit for bit"
                       : s.expected ? "DIFFERENT, but should be equal"
                                    : "rounded at other places: it reduces gradients more or less "
                                      "often in a step");
  }
  return out;
}

std::string full_rows(const Validation& v) {
  std::string out = fmt::format("\n  {:<26}{:>18}{:>18}{:>12}\n", "the full plan, by stage",
                                "predicted", "counted", "difference");
  for (const ComparedRank& rank : v.counted) {
    out += row(fmt::format("{}, in {}", rank.place.pp, spaced(name_of(rank.measured.phase))),
               rank.predicted.live.allocated(), rank.measured.live.allocated());
  }
  return out;
}

// device used = ledger + context + modules + NCCL + cuBLAS + pages + unaccounted
std::string closing_rows(const MeasuredOn& where) {
  std::string out;
  for (std::size_t gpu = 0; gpu < where.closings.size(); ++gpu) {
    const engine::Closing& c = where.closings[gpu];
    const auto line = [&](std::string_view name, Bytes bytes) {
      out += fmt::format("    {:<24}{:>18}\n", name, with_thousands(bytes.count()));
    };
    out += fmt::format("\n  GPU {} at its tensors' peak\n", gpu);
    line("tensors, by the ledger", c.tensors);
    line("context and others", c.context);
    line("modules", c.modules);
    line("NCCL", c.communicators);
    line("cuBLAS", c.products);
    if (c.pages != Bytes{}) line("pages beyond tensors", c.pages);
    if (c.pool != Bytes{}) line("CUDA's pool, unused", c.pool);
    line("unaccounted", c.unaccounted());
    line("= used, by the driver", c.used);
    out += fmt::format("    unaccounted may be {} (32 MiB and 0.5 %){}\n",
                       with_thousands(c.allowed().count()), c.closes() ? "" : ": IT IS MORE");
  }
  return out;
}

// Calls of one group and kind together, whatever they carry.
std::map<std::string, engine::CallSeconds> by_name(const engine::StepSeconds& of) {
  std::map<std::string, engine::CallSeconds> sums;
  for (const auto& [kind, call] : of.calls) {
    const auto& [group, collective, payload] = kind;
    engine::CallSeconds& sum = sums[fmt::format("{} {}", group, name_of(collective))];
    sum.calls += call.calls;
    sum.seconds += call.seconds;
    sum.exposed += call.exposed;
  }
  return sums;
}

// Seconds of a step on GPUs: a host's own are nobody's plan.
std::string time_rows(const MeasuredOn& where, const GpuSpec& gpu) {
  if (!where.time || where.backend == "host") return "";
  const engine::ComparedSeconds& time = *where.time;
  const bool all = where.predicted == Predicted::everything;
  const engine::Place& at = time.place;
  std::string out =
      fmt::format("\n  {:<32}{:>14}{:>14}\n",
                  fmt::format("ms of a step, dp {}, tp {}, pp {}", at.dp, at.tp, at.pp),
                  "predicted", "measured");
  const auto line = [&](std::string_view name, bool told, double predicted, double measured) {
    out += fmt::format("    {:<30}{:>14}{:>14.3f}\n", name,
                       told ? fmt::format("{:.3f}", 1e3 * predicted) : "-", 1e3 * measured);
  };
  line("products", where.predicted != Predicted::nothing, time.predicted.products,
       time.measured.products);
  std::map<std::string, engine::CallSeconds> predicted = by_name(time.predicted);
  for (const auto& [name, call] : by_name(time.measured)) {
    line(name, all, predicted[name].seconds, call.seconds);
    if (call.exposed < call.seconds) {
      line("  waited for", all, predicted[name].exposed, call.exposed);
    }
  }
  line("= step, with all else", all, time.predicted.step, time.measured.step);
  if (all) {
    out +=
        fmt::format("    MFU {:.1f} % predicted, {:.1f} % measured; hidden {:.0f} % and {:.0f} %\n",
                    100 * time.mfu(time.predicted), 100 * time.mfu(time.measured),
                    100 * time.hidden(time.predicted), 100 * time.hidden(time.measured));
  }
  if (where.predicted == Predicted::nothing) {
    return out + "    nothing is predicted of ranks that share a GPU\n";
  }
  const double speed = time.product_speed();
  const std::string_view verdict = !time.tells_health() ? ", too short to judge it by"
                                   : speed < engine::ComparedSeconds::healthy
                                       ? ": SLOW OR THROTTLED"
                                       : "";
  out += fmt::format("    products run at {:.2f} of what is expected of {}{}\n", speed, gpu.name,
                     verdict);
  return out;
}

std::string reason_line(const MeasuredOn& where) {
  return where.reason.empty() ? "" : fmt::format("  backend {}: {}\n", where.backend, where.reason);
}

std::string place_of(std::string_view backend) {
  return backend == "host" ? "the host" : backend == "loopback" ? "one GPU" : "their GPUs";
}

}  // namespace

bool MeasuredOn::closes() const {
  return std::all_of(closings.begin(), closings.end(),
                     [](const engine::Closing& c) { return c.closes(); });
}

std::string validate_text(const Validation& v, const MeasuredOn& where, bool quiet) {
  const std::size_t ranks = v.ranks.size();
  const std::string place = place_of(where.backend);
  const bool called = std::any_of(v.ranks.begin(), v.ranks.end(),
                                  [](const ComparedRank& rank) { return !rank.calls.empty(); });
  std::string out =
      v.agrees() && where.closes()
          ? fmt::format("agrees: {} rank{} on {} allocated{} what was predicted, to the byte{}\n",
                        ranks, ranks == 1 ? "" : "s", place, called ? " and sent" : "",
                        called ? "" : "; no collective ran")
          : fmt::format("differs: a run on {} is not what was predicted\n", place);
  if (quiet) return out;
  out +=
      reason_line(where) + layout_line("the plan", v.full.problem) + change_lines(v.full.changes);
  out += layout_line("run here", v.small.problem) + change_lines(v.small.changes);
  out += memory_rows(v.worst(), "measured") + call_rows(v.worst(), "measured");
  out += closing_rows(where);
  out += numerics(v) + full_rows(v);
  out += "  counted: every tensor of a step at full shapes, nothing computed, peers absent\n";
  out += time_rows(where, v.small.problem.cluster.gpu);
  return out;
}

std::string rank_text(const engine::Shrunk& full,
                      const ComparedRank& rank,
                      const MeasuredOn& where,
                      bool quiet) {
  const std::string_view how = where.closings.empty() ? "counted" : "measured";
  std::string out =
      fmt::format("{}: a rank of stage {}, {} at full shapes with its peers absent\n",
                  rank.agrees() && where.closes() ? "agrees" : "differs", rank.place.pp, how);
  if (quiet) return out;
  out += reason_line(where) + layout_line("the plan", full.problem) + change_lines(full.changes);
  return out + memory_rows(rank, how) + call_rows(rank, how) + closing_rows(where) +
         time_rows(where, full.problem.cluster.gpu);
}

}  // namespace zeroplan
