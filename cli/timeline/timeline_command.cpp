// zeroplan timeline: how does memory move over a step? Front door: run_timeline.
#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/timeline/timeline_report.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
ExitCode run_timeline(const TimelineArguments& arguments, const OutputOptions& output) {
  if (output.form() == Output::csv) throw InputError("timeline: has no rows; drop --csv");
  check_outputs({{"--chrome-trace", arguments.chrome_trace}, {"--snapshot", arguments.snapshot}},
                files_read(arguments.layout));
  const FitAnswer answer = answer_of(arguments.layout);
  const Problem& problem = answer.problem;
  if (problem.model.layers == 0) {
    throw InputError("timeline: a size alone has no layers, so that nothing moves in its step");
  }
  const std::size_t index = stage_of(arguments.stage, answer.estimate);
  const auto rank = static_cast<std::int64_t>(index);

  const Evaluator evaluator(problem);
  const Stage stage = stages(problem)[index];
  const StageProgram program = evaluator.stage_program(problem, stage);
  const std::vector<Pass> order = representative_passes(problem, rank);
  const Startup startup = evaluator.startup(problem, stage, program);
  const StageMemory& memory = answer.estimate.stages[index];
  const auto run = [&](Start start) { return run_of(problem, evaluator, stage, memory, start); };
  // What fit has replayed already is not replayed again.
  const auto phases = [&]() -> std::vector<PhasePeak> {
    if (!has_allocator(problem)) return {};
    if (answer.estimate.peak().stage == rank && !answer.estimate.phases.empty()) {
      return answer.estimate.phases;
    }
    return phases_of(memory.phases.empty() ? run(Start::fresh).phases : memory.phases,
                     run(Start::resumed));
  };
  const std::int64_t shown = representative_micro_batches(problem, rank);
  const RankMemory played{
      .stage = rank,
      .step = timeline(program, order),
      .phases = phases(),
      .streams = rank_streams(problem, evaluator, answer.step, rank, shown),
  };

  if (!arguments.chrome_trace.empty()) {
    // As many as the rank that needs most.
    const std::int64_t all = representative_micro_batches(problem, 0);
    std::vector<RankStreams> streams;
    for (std::int64_t i = 0; i < problem.layout.pp; ++i) {
      streams.push_back(rank_streams(problem, evaluator, answer.step, i, all));
    }
    write_file(arguments.chrome_trace, timeline_chrome_trace(problem, played, streams));
  }
  if (!arguments.snapshot.empty()) {
    const PlacedStep placed =
        placed_step(program, startup, order, code_of(problem).allocator(problem));
    write_file(arguments.snapshot, snapshot_pickle(placed, order));
  }
  if (arguments.story) return run_story({arguments.layout, arguments.stage}, output);
  if (output.form() == Output::json) {
    write_answer(timeline_json(problem, played));
  } else {
    write_text(timeline_text(problem, played, text_style(output)));
  }
  return ExitCode::yes;
}

}  // namespace zeroplan
