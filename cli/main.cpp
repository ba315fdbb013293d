// zeroplan: read what was typed, run one command, report failures, choose the exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/out/exit_code.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/versions.hpp"
#include "cli/request/arguments.hpp"
#include "cli/request/typed_words.hpp"
#include "cli/request/usage_error.hpp"
#include "presets/input_error.hpp"

namespace {

using namespace zeroplan;

// Where standard error is closed or full, the exit code alone has to tell.
int fail(std::string_view message, ExitCode code) {
  std::fputs(fmt::format("zeroplan: error: {}\n", message).c_str(), stderr);
  return static_cast<int>(code);
}

// --help and --version are answers too.
int help(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text;
  const int code = app.exit(error, text, text);
  try {
    write_text(text.str());
  } catch (const std::exception& lost) {
    return fail(lost.what(), ExitCode::environment);
  }
  return code;
}

// In words that need no room.
ExitCode fail_without_memory() {
  std::fputs("zeroplan: error: no memory is left; does 'ulimit -v' or a container bound it?\n",
             stderr);
  return ExitCode::environment;
}

// Whether what ends the program is that; without room for an exception nothing is known of it.
bool lacks_memory(const std::exception_ptr& reason) {
  constexpr std::size_t most_exceptions_need = 1 << 16;
  if (!reason) return std::malloc(most_exceptions_need) == nullptr;
  try {
    std::rethrow_exception(reason);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Where no handler is reached: in another thread, or before main().
void end_in_words() {
  if (!lacks_memory(std::current_exception())) std::abort();
  std::_Exit(static_cast<int>(fail_without_memory()));
}
// Before the first of what comes before main().
[[gnu::constructor(101)]] void set_end_in_words() {
  std::set_terminate(end_in_words);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Plans the training of large models: will it fit, which layout, and is that true.",
               "zeroplan"};
  app.set_version_flag("-V,--version", version_text());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::function<ExitCode()> command;

  FitArguments question;
  OutputOptions fit_output;
  CLI::App* fit = app.add_subcommand("fit", "Will it fit? Memory of each GPU, and a verdict");
  add_fit_options(*fit, question);
  add_output_options(*fit, fit_output);
  fit->callback([&] { command = [&] { return run_fit(question, fit_output); }; });

  ExplainArguments explanation;
  OutputOptions explain_output;
  CLI::App* explain =
      app.add_subcommand("explain", "Where does each byte come from? Formulas, numbers, sources");
  add_layout_options(*explain, explanation.layout);
  add_output_options(*explain, explain_output);
  explain->add_option("--stage", explanation.stage,
                      "pipeline rank (default: the one that needs most)");
  explain->add_option("--row", explanation.row,
                      "one row alone: a category, weights, communication, flops or step");
  explain->add_flag("--ranks", explanation.ranks,
                    "instead: which rank sits where, and over which link its groups exchange");
  explain->callback([&] { command = [&] { return run_explain(explanation, explain_output); }; });

  SweepArguments sweep;
  OutputOptions sweep_output;
  CLI::App* search =
      app.add_subcommand("sweep", "Which layout should I use? The best of all that fit");
  add_sweep_options(*search, sweep);
  add_output_options(*search, sweep_output);
  search->callback([&] { command = [&] { return run_sweep(sweep, sweep_output); }; });

  TimelineArguments timeline;
  OutputOptions timeline_output;
  CLI::App* steps =
      app.add_subcommand("timeline", "How does memory move over a step? One rank, event by event");
  add_layout_options(*steps, timeline.layout);
  add_output_options(*steps, timeline_output);
  steps->add_option("--stage", timeline.stage, "pipeline rank (default: the one that needs most)");
  steps->add_option("--chrome-trace", timeline.chrome_trace,
                    "also write a trace for Perfetto to FILE");
  steps->add_option("--snapshot", timeline.snapshot,
                    "also write a snapshot for PyTorch's memory viewer to FILE");
  steps->add_flag("--story", timeline.story, "tell the step in words, as zeroplan story does");
  steps->callback([&] { command = [&] { return run_timeline(timeline, timeline_output); }; });

  StoryArguments telling;
  OutputOptions story_output;
  CLI::App* story = app.add_subcommand(
      "story", "How does a step move data? Who holds, gathers, keeps, drops and sends what");
  add_layout_options(*story, telling.layout);
  add_output_options(*story, story_output);
  story->add_option("--stage", telling.stage, "pipeline rank (default: the one that needs most)");
  story->callback([&] { command = [&] { return run_story(telling, story_output); }; });

  OverlayArguments profiled;
  OutputOptions overlay_output;
  CLI::App* beside = app.add_subcommand(
      "overlay", "What did a real step do? PyTorch's profile and snapshot beside the prediction");
  add_layout_options(*beside, profiled.layout);
  add_output_options(*beside, overlay_output);
  beside->add_option("--trace", profiled.trace, "FILE that torch.profiler wrote for Chrome");
  beside->add_option("--snapshot", profiled.snapshot,
                     "FILE that torch.cuda.memory._dump_snapshot wrote");
  beside->add_option("--calibrate", profiled.calibrate,
                     "write the cluster with the speeds that were measured to FILE, for --cluster");
  beside->add_option(
      "--stage", profiled.stage,
      "pipeline rank (default: that of the traced rank, else the one that needs most)");
  beside->callback([&] { command = [&] { return run_overlay(profiled, overlay_output); }; });

  CompareArguments comparison;
  OutputOptions compare_output;
  CLI::App* compare =
      app.add_subcommand("compare", "What do two layouts differ in? Side by side, row by row");
  compare
      ->add_option("MODEL", comparison.subjects,
                   "the model of both sides; or two plans, files that fit --json wrote")
      ->expected(0, 2);
  compare->add_option("--a", comparison.a, "\"OPTIONS\" of one side, or a plan FILE.json");
  compare->add_option("--b", comparison.b, "the same of the other side");
  compare->add_flag("--each", comparison.each,
                    "choose for each side on its own what neither gives, not once for both");
  add_options_beside_model(*compare, comparison.common);
  add_page_options(*compare, comparison.page);
  add_output_options(*compare, compare_output);
  compare->callback([&] { command = [&] { return run_compare(comparison, compare_output); }; });

  ExportArguments exported;
  OutputOptions export_output;
  CLI::App* write =
      app.add_subcommand("export", "The plan as a configuration that its runtime launches with");
  add_layout_options(*write, exported.layout);
  add_output_options(*write, export_output);
  write->add_option("--format", exported.format,
                    "megatron|megatron-bridge|torchtitan|deepspeed|trainer|accelerate|nanotron "
                    "(default: the runtime's)");
  write->callback([&] { command = [&] { return run_export(exported, export_output); }; });

  std::string file;
  OutputOptions import_output;
  CLI::App* read =
      app.add_subcommand("import", "The options that a runtime's configuration, or a plan, means");
  read->add_option("FILE", file,
                   "Megatron-LM arguments or a script with them, torchtitan TOML, DeepSpeed or "
                   "Trainer JSON, Accelerate or nanotron YAML, or a plan; - for standard input")
      ->required();
  add_output_options(*read, import_output);
  read->callback([&] { command = [&] { return run_import(file, import_output); }; });

  std::string kind;
  std::string name;
  OutputOptions presets_output;
  CLI::App* presets =
      app.add_subcommand("presets", "What can be named: models, GPUs, clusters, runtimes");
  presets->add_option("KIND", kind, "models, gpus, clusters or runtimes")->required();
  presets->add_option("NAME", name, "show this one whole");
  add_output_options(*presets, presets_output);
  presets->callback([&] { command = [&] { return run_presets(kind, name, presets_output); }; });

  ValidateArguments validation;
  OutputOptions validate_output;
  CLI::App* validate = app.add_subcommand(
      "validate", "Is that true? A real step at reduced scale, measured beside predicted");
  add_validate_options(*validate, validation);
  add_output_options(*validate, validate_output);
  validate->callback([&] { command = [&] { return run_validate(validation, validate_output); }; });

  ProbeArguments machine;
  OutputOptions probe_output;
  CLI::App* probe =
      app.add_subcommand("probe", "What does this machine have? Measures a cluster preset");
  probe->add_flag("--devices", machine.devices, "list the GPUs, measure nothing");
  probe->add_option("--output", machine.output, "write the cluster preset to this file");
  probe->add_option("--timeout", machine.timeout,
                    "seconds without an answer of a GPU, after which it ends (default 120)");
  add_output_options(*probe, probe_output);
  probe->callback([&] { command = [&] { return run_probe(machine, probe_output); }; });

  ServeArguments served;
  CLI::App* live = app.add_subcommand("serve", "The page of an answer, live in a browser");
  live->add_option("--port", served.port, "default 8080; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  live->add_option("--host", served.host,
                   "address to listen on (default: 127.0.0.1, this machine alone)");
  live->callback([&] { command = [&] { return run_serve(served); }; });

  std::string form;
  CLI::App* completions =
      app.add_subcommand("completions", "The options as a shell completes them, or as the manual")
          ->group("");
  completions->add_option("FORM", form, "bash|zsh|fish, or man: the manual page")->required();
  completions->callback([&] { command = [&] { return run_completions(app, form); }; });

  try {
    std::vector<std::string> words = typed_words({argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
    return static_cast<int>(command());
  } catch (const CLI::ParseError& error) {
    // --help and --version, but not of a command that there is none of.
    if (error.get_exit_code() == 0 && app.remaining().empty()) return help(app, error);
    return fail(usage_message(app, error), ExitCode::bad_input);
  } catch (const InputError& error) {
    return fail(error.what(), ExitCode::bad_input);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return fail(error.what(), ExitCode::environment);
  }
} catch (const std::bad_alloc&) {
  return static_cast<int>(fail_without_memory());
}
