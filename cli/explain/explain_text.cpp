// How is an answer taken apart in a terminal? Front door: explain_text.
#include <fmt/format.h>

#include <algorithm>

#include "cli/explain/explain_report.hpp"
#include "cli/out/fold.hpp"
#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cost_model/explain/deepspeed_estimator.hpp"
#include "cost_model/explain/sources.hpp"

namespace zeroplan {
namespace {

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t length = letters(text);
  return std::string(text) + std::string(length < width ? width - length : 0, ' ');
}

std::string formula(std::string_view symbols, std::string_view numbers) {
  return symbols.empty() ? "" : fmt::format("  = {} = {}", symbols, numbers);
}

std::string symbol_lines(const Explanation& e) {
  if (e.symbols.empty()) return "";
  std::string out = "\n  symbols\n";
  for (const Symbol& s : e.symbols) {
    out += fmt::format("    {}{:>16}  {}\n", padded(s.name, 8), with_thousands(s.value), s.meaning);
  }
  return out;
}

std::string part_lines(const ExplainedPart& part) {
  const std::string times = part.count == 1 ? "" : fmt::format("{} x ", part.count);
  std::string out =
      fmt::format("    {:<36}{:>16}{}\n", times + part.name, with_thousands(part.total().count()),
                  formula(part.symbols, part.numbers));
  if (part.terms.size() == 1) {
    const ExplainedTerm& only = part.terms.front();
    out.pop_back();
    return out + formula(only.symbols, only.numbers) + "\n";
  }
  for (const ExplainedTerm& term : part.terms) {
    out += fmt::format("      {:<34}{:>16}{}\n", term.what, with_thousands(term.bytes.count()),
                       formula(term.symbols, term.numbers));
  }
  return out;
}

std::string row_lines(const ExplainedRow& row) {
  std::string out =
      fmt::format("\n  {:<38}{:>16} bytes, {:.2f} GiB\n", spaced(name_of(row.category)),
                  with_thousands(row.bytes.count()), gibibytes(row.bytes));
  if (row.parts.empty()) return out;
  for (const ExplainedPart& part : row.parts) out += part_lines(part);
  return out + fmt::format("    from {}\n", row.source);
}

std::string weight_lines(const Explanation& e) {
  if (e.weights.empty()) return "";
  std::string out = fmt::format("\n  {}{:>16} elements\n", padded("weights of this rank", 38),
                                with_thousands(e.elements));
  for (const ExplainedWeight& w : e.weights) {
    const LocalWeight& l = w.each;
    std::string shape = fmt::format("{} x {}", l.rows, l.columns);
    if (l.copies > 1) shape = fmt::format("{} x {}", l.copies, shape);
    out += fmt::format("    {:<36}{:>16}  = {} x ({})\n", fmt::format("{}, {}", w.block, w.name),
                       with_thousands(w.count * l.elements()), w.count, shape);
  }
  if (e.padding != 0) {
    out += fmt::format("    {:<36}{:>16}\n", "padding of the buffer", with_thousands(e.padding));
  }
  return out;
}

std::string calls(std::int64_t count) {
  return count == 1 ? "1 call" : with_thousands(count) + " calls";
}

std::string load_lines(const ExplainedAnswer& a) {
  std::string out = fmt::format("\n  {:<38}{:>16}\n", "communication, a step", "bytes sent");
  const std::vector<ExplainedLoad>& loads = a.explanation.loads;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const ExplainedLoad& e = loads[i];
    const CollectiveLoad& l = e.load;
    const TimedLoad& timed = a.timed()[i];
    out += fmt::format(
        "    {:<36}{:>16}  = {} x {} x S, n = {}\n",
        fmt::format("{} {}, {}", l.group.name, name_of(l.collective), name_of(l.during)),
        with_thousands(e.sent.count()), calls(l.calls), e.factor, l.group.ranks);
    out += fmt::format("    {:<36}{:>16}{}\n", "  S", with_thousands(l.payload.count()),
                       formula(e.symbols, e.numbers));
    out += fmt::format("    {:<36}{:>16}\n", "  seconds alone, and waited for",
                       fmt::format("{:.4f}, {:.4f}", timed.seconds, timed.exposed));
    if (const auto slowest = bottleneck_of(a.answer.problem, l)) {
      out += fmt::format("      slowest: {}\n", sentence_of(*slowest));
    }
    for (const SharedUplink& shared : shared_uplinks(a.answer.problem, a.timed(), timed)) {
      out += fmt::format("      beside {}\n", sentence_of(shared));
    }
  }
  return out + fmt::format("    from {}\n", source_of_communication(a.answer.problem));
}

std::string flop_lines(const ExplainedAnswer& a) {
  const Problem& p = a.answer.problem;
  const StepFlops step = step_flops(p);
  std::string out = "\n  FLOPs of a sample, forward\n";
  for (const FlopTerm& term : a.explanation.flops) {
    if (term.forward == 0) continue;
    const double total = static_cast<double>(term.count) * term.forward;
    out += fmt::format(
        "    {:<36}{:>16.6e}  = {} x {:.6e}{}\n", term.what, total, term.count, term.forward,
        term.repeated > 0 ? fmt::format(", and {:.6e} of it again", term.repeated) : "");
  }
  const std::int64_t samples = p.training.global_batch;
  out += fmt::format("    {:<36}{:>16.6e}  = {} samples x 3 x the sum\n", "of the model, a step",
                     step.model, samples);
  out += fmt::format("    {:<36}{:>16.6e}  with what recompute repeats\n",
                     "of the hardware, a step", step.hardware);
  const ScoreCount other =
      p.training.scores == ScoreCount::causal ? ScoreCount::whole : ScoreCount::causal;
  out += fmt::format("    {:<36}{:>16.6e}  --attention-flops {}\n",
                     fmt::format("of the model, with {} attention", name_of(other)),
                     step_flops(p, other).model, name_of(other));
  return out + fmt::format("    from {}\n", source_of_flops());
}

// The parts of the step add up to it.
std::string step_lines(const ExplainedAnswer& a) {
  const StepTime& t = a.answer.step;
  if (!has_time(a.answer.problem, t)) return "";
  const auto line = [](std::string_view what, double seconds) {
    return fmt::format("    {:<36}{:>16.4f}\n", what, seconds);
  };
  return fmt::format("\n  {:<38}{:>16.4f} seconds\n", "step", t.seconds) +
         line("computed, the optimizer included", t.computed) +
         line("communication that nothing hides", t.exposed) +
         line("waiting for other pipeline ranks", t.bubble);
}

}  // namespace

std::string explain_text(const ExplainedAnswer& a, bool quiet) {
  const Problem& p = a.answer.problem;
  const StageMemory& m = a.memory;
  std::string out =
      fmt::format("stage {} of {}, {} on {} x {}, {}: {:.2f} GiB, highest in {} at '{}'\n", m.stage,
                  p.layout.pp, p.model.name, p.cluster.gpus, p.cluster.gpu.name, *code_of(p).name,
                  gibibytes(m.memory.device()), spaced(name_of(m.phase)), m.tensor);
  if (quiet) return out;
  const bool in_numbers_alone = a.row == "weights" || a.row == "flops" || a.row == "step";
  if (!in_numbers_alone) out += symbol_lines(a.explanation);
  for (const ExplainedRow& row : a.explanation.rows) {
    if (a.wants(name_of(row.category))) out += row_lines(row);
  }
  if (a.row.empty()) {
    out += fmt::format("\n  {:<38}{:>16} bytes, {:.2f} GiB\n", "= needed",
                       with_thousands(m.memory.device().count()), gibibytes(m.memory.device()));
  }
  if (const auto own = deepspeed_estimator(p); own && a.row.empty()) {
    out += fmt::format(
        "\n  {:<38}{:>16.2f} GiB of each GPU, {:.2f} GiB of each host: model states alone\n"
        "    from DeepSpeed docs/code-docs/source/memory.rst\n",
        "DeepSpeed's own estimator", gibibytes(own->gpu), gibibytes(own->host_a_node));
  }
  if (a.wants("weights")) out += weight_lines(a.explanation);
  if (a.wants("communication")) out += load_lines(a);
  if (a.wants("flops")) out += flop_lines(a);
  if (a.wants("step")) out += step_lines(a);
  return out;
}

}  // namespace zeroplan
