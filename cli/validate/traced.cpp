// Does the runtime's own code take what was predicted? Front door: validate_traced.
#include "cli/validate/traced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/out/answer.hpp"
#include "cli/out/report.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/quantity.hpp"
#include "cli/validate/trace_run.hpp"
#include "cli/validate/traced_plan.hpp"
#include "cli/validate/tracer.hpp"
#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/states/buffers.hpp"
#include "gpu_probe/environment_error.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

constexpr double tolerance = 0.01;

// What stands beside what.
struct Line {
  std::string name;
  std::int64_t predicted = 0, traced = 0;
};

struct Compared {
  const Problem& problem;
  std::int64_t stage = 0, rank = 0;
  std::string versions;
  std::vector<std::string> settings;  // of the code that ran, laid under the prediction
  std::vector<Line> lines;            // the last is all
  nlohmann::json phases, tensors;
  std::string notes;

  double error() const {
    const Line& all = lines.back();
    return (static_cast<double>(all.predicted) - static_cast<double>(all.traced)) /
           static_cast<double>(all.traced);
  }
  bool agrees() const { return std::abs(error()) <= tolerance; }
};

// User buffers lie outside PyTorch, where nothing traces them: what a plan chose is left out.
void leave_out_user_buffers(LayoutArguments& arguments, const LayoutArguments& typed) {
  const auto is_meant = [](const std::string& text) {
    return text.starts_with("tp_comm_overlap=");
  };
  if (std::ranges::any_of(typed.set, is_meant)) return;
  std::erase_if(arguments.set, is_meant);
  arguments.set.emplace_back("tp_comm_overlap=false");
}

LayoutArguments question(const LayoutArguments& typed, Tracer tracer) {
  std::vector<std::string> notes;
  LayoutArguments arguments = with_plan(typed, notes);
  if (!arguments.runtime) arguments.runtime = name_of(runtime_of(tracer));
  const bool shards = arguments.runtime == name_of(Runtime::fsdp2);
  if (tracer == Tracer::transformers && shards) arguments.set.emplace_back("layers=huggingface");
  const bool megatron = arguments.runtime == name_of(Runtime::megatron);
  if (tracer == Tracer::megatron && megatron) leave_out_user_buffers(arguments, typed);
  return arguments;
}

std::int64_t stage_asked(const std::optional<std::string>& text, const Problem& problem) {
  constexpr std::string_view key = "stage=";
  if (!text) return 0;
  if (!text->starts_with(key)) throw InputError("--as-rank: must be stage=S");
  return read_whole("--as-rank", text->substr(key.size()), 0, problem.layout.pp - 1);
}

// The settings that the row names, as options; those typed or told the tracer stay as they are. A
// row whose settings are the runtime's own words names those that the code decides beside them.
std::vector<std::string> settings_of(const nlohmann::json& row,
                                     const std::vector<std::string>& typed,
                                     const std::vector<std::string>& told) {
  std::vector<std::string> list;
  const nlohmann::json& decided = row.contains("decided") ? row.at("decided") : row.at("settings");
  for (const auto& [key, value] : decided.items()) {
    const std::string start = key + "=";
    const auto says = [&](const std::string& text) { return text.starts_with(start); };
    const bool is_known = std::any_of(typed.begin(), typed.end(), says) ||
                          std::any_of(told.begin(), told.end(), says);
    if (!is_known) list.push_back(start + value.get<std::string>());
  }
  return list;
}

// Tensors alone are traced, so the workspaces of cuBLAS are left out of what was predicted. States
// have lines where the row names them.
std::vector<Line> lines_of(const FitAnswer& answer, std::int64_t stage, const nlohmann::json& row) {
  const Problem& p = answer.problem;
  const auto index = static_cast<std::size_t>(stage);
  const Evaluator evaluator(p);
  const MemoryBreakdown& memory = answer.estimate.stages[index].memory;
  const std::int64_t unseen = unseen_workspace(p, evaluator.weights(), stages(p)[index]).count();
  const nlohmann::json& traced = row.at("measured").at("categories");
  Line all{"= allocated bytes", memory.allocated().count() - unseen,
           row.at("measured").at("bytes").get<std::int64_t>()};
  std::vector<Line> lines;
  Line others{"all other tensors", all.predicted, all.traced};
  for (const Category category : {Category::parameters, Category::optimizer_states,
                                  Category::gradients, Category::master_parameters}) {
    std::string name{name_of(category)};
    std::ranges::replace(name, '_', ' ');
    if (!traced.contains(name)) continue;
    const Line line{name, memory[category].count(), traced.at(name).get<std::int64_t>()};
    others.predicted -= line.predicted;
    others.traced -= line.traced;
    lines.push_back(line);
  }
  lines.push_back(others);
  lines.push_back(std::move(all));
  return lines;
}

std::string phase_text(const nlohmann::json& phases) {
  std::string text;
  for (const auto& [phase, bytes] : phases.items()) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", phase,
                        bytes.get<double>() / (1 << 30));
  }
  return text;
}

std::string text_of(const Compared& c, bool quiet) {
  const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  const Line& all = c.lines.back();
  std::string out = fmt::format("{}: {} takes {:.2f} GiB, {:.2f} predicted ({:+.2f} %)\n",
                                c.agrees() ? "agrees" : "differs", c.versions, gib(all.traced),
                                gib(all.predicted), 100 * c.error());
  if (quiet) return out;
  out += fmt::format("  rank {} of stage {} of {}, its collectives moving nothing\n\n", c.rank,
                     c.stage, c.problem.model.name);
  out += fmt::format("  {:<26}{:>18}{:>18}{:>18}\n", "", "predicted", "traced", "difference");
  for (const Line& line : c.lines) {
    out += fmt::format("  {:<26}{:>18}{:>18}{:>18}\n", line.name, with_thousands(line.predicted),
                       with_thousands(line.traced), with_thousands(line.traced - line.predicted));
  }
  out += fmt::format("\n  traced highest, GiB: {}\n", phase_text(c.phases));
  for (const std::string& setting : c.settings) {
    out += fmt::format("  as that code does: --set {}\n", setting);
  }
  return out + fmt::format("  {}\n", c.notes);
}

std::string json_of(const Compared& c) {
  nlohmann::json lines = nlohmann::json::array();
  for (const Line& line : c.lines) {
    lines.push_back({{"name", line.name}, {"predicted", line.predicted}, {"traced", line.traced}});
  }
  const nlohmann::json out{{"schema", "zeroplan.traced/1"},
                           {"verdict", c.agrees() ? "agrees" : "differs"},
                           {"model", c.problem.model.name},
                           {"stage", c.stage},
                           {"versions", c.versions},
                           {"settings", c.settings},
                           {"error", c.error()},
                           {"categories", lines},
                           {"traced_phases", c.phases},
                           {"traced_tensors", c.tensors},
                           {"notes", c.notes}};
  return out.dump(2) + "\n";
}

std::string csv_of(const Compared& c) {
  std::string out = "category,predicted,traced\n";
  for (const Line& line : c.lines) {
    out += fmt::format("{},{},{}\n", line.name, line.predicted, line.traced);
  }
  return out;
}

// What a reader must know of a step that was cut.
std::string fewer(const Problem& plan, const Problem& traced) {
  if (micro_batches(traced) == micro_batches(plan)) return "";
  return fmt::format("Traced are {} of a step's {} micro-batches; as much is predicted of all. ",
                     micro_batches(traced), micro_batches(plan));
}

TraceRun run_of(const ValidateArguments& arguments, Tracer tracer) {
  constexpr std::int64_t longest = 86'400;
  TraceRun run{.python = arguments.python.value_or("python3"),
               .script = fmt::format("trace_{}.py", name_of(tracer))};
  if (arguments.timeout) {
    run.limit = std::chrono::seconds(read_whole("--timeout", *arguments.timeout, 1, longest));
  }
  return run;
}

}  // namespace

ExitCode validate_traced(const ValidateArguments& arguments, const OutputOptions& output) {
  const Tracer tracer = read_tracer(*arguments.with);
  if (arguments.backend || arguments.ranks || arguments.spawn || arguments.steps) {
    throw InputError("--with: a trace has no --backend, --ranks, --spawn or --steps");
  }
  LayoutArguments asked = question(arguments.layout, tracer);
  TraceRun run = run_of(arguments, tracer);
  const Problem plan = answer_of(asked).problem;
  if (!runs(tracer, plan.runtime.kind)) {
    throw InputError(fmt::format("--with {}: the plan is for {}, not {}", name_of(tracer),
                                 name_of(plan.runtime.kind), name_of(runtime_of(tracer))));
  }
  const std::int64_t stage = stage_asked(arguments.as_rank, plan);
  const Problem traced = traced_plan(plan);
  const std::int64_t rank =
      answered_rank(plan, Evaluator(plan), stages(plan)[static_cast<std::size_t>(stage)]);
  run.words = tracer_words(tracer, traced, stage, rank);
  const nlohmann::json row = traced_row(run);
  try {
    const std::vector<std::string> settings = settings_of(row, asked.set, run.words);
    asked.set.insert(asked.set.end(), settings.begin(), settings.end());
    const FitAnswer answer = answer_of(asked);
    if (!(answer.problem.layout == plan.layout)) {
      throw InputError(
          "--with: as the code that ran does, another layout would be chosen; give one");
    }
    const Compared compared{.problem = answer.problem,
                            .stage = stage,
                            .rank = rank,
                            .versions = row.at("framework_version").get<std::string>(),
                            .settings = settings,
                            .lines = lines_of(answer, stage, row),
                            .phases = row.at("measured").at("phases"),
                            .tensors = row.at("measured").at("tensors"),
                            .notes = fewer(plan, traced) + row.at("notes").get<std::string>()};
    write_in_form(
        output, [&] { return json_of(compared); }, [&] { return csv_of(compared); },
        [&] { return text_of(compared, output.quiet); });
    return compared.agrees() ? ExitCode::yes : ExitCode::no;
  } catch (const nlohmann::json::exception& error) {
    throw EnvironmentError(fmt::format("the trace's row cannot be read: {}", error.what()));
  }
}

}  // namespace zeroplan
