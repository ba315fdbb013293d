// zeroplan overlay: what did a real step do, beside the predicted one? Front door: run_overlay.
#include <fmt/format.h>

#include <cmath>

#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/report_fields.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/overlay/kineto_reader.hpp"
#include "cli/overlay/machine_json.hpp"
#include "cli/overlay/overlay_report.hpp"
#include "cli/overlay/snapshot_reader.hpp"
#include "cost_model/answer/step_band.hpp"
#include "cost_model/explain/rank_map.hpp"
#include "cost_model/program/schedule.hpp"
#include "presets/input_error.hpp"
#include "validator/overlay/predicted_step.hpp"

namespace zeroplan {
namespace {

// The stage that --stage names, or that of the rank that wrote the trace, or the worst.
std::int64_t traced_stage(const OverlayArguments& arguments,
                          const FitAnswer& answer,
                          const Trace& trace,
                          std::vector<std::string>& notes) {
  const Problem& p = answer.problem;
  if (trace.world > 0 && trace.world != p.cluster.gpus) {
    notes.push_back(
        fmt::format("the trace is of {} ranks and the plan of {}", trace.world, p.cluster.gpus));
  } else if (!arguments.stage && trace.world > 0 && trace.rank >= 0 && trace.rank < trace.world) {
    return place_of(p, trace.rank).pp;
  }
  return static_cast<std::int64_t>(stage_of(arguments.stage, answer.estimate));
}

OverlayVerdict verdict_of(const Overlay& overlay, const Trace& trace, double band) {
  if (!trace.on_device) return OverlayVerdict::other_device;
  const double by = std::abs(overlay.measured - overlay.predicted);
  return by <= band * overlay.predicted ? OverlayVerdict::agrees : OverlayVerdict::differs;
}

void note_trace(const Trace& trace, const MeasuredStep& measured, std::vector<std::string>& notes) {
  if (measured.name.empty()) {
    notes.emplace_back("no ProfilerStep# holds any of the trace: all of it is taken for one step");
  }
  if (measured.devices > 1) {
    notes.push_back(
        fmt::format("kernels of {} devices: those of the busiest are shown", measured.devices));
  }
  if (!trace.on_device) {
    notes.emplace_back(
        "the trace has no kernels of a device: operators of the host stand in their place, each "
        "without those that it calls");
  }
}

MemoryOverlay memory_of(const Problem& problem,
                        const Evaluator& evaluator,
                        std::int64_t rank,
                        const std::string& snapshot) {
  const Stage stage = stages(problem)[static_cast<std::size_t>(rank)];
  const StageProgram program = evaluator.stage_program(problem, stage);
  const Timeline step = timeline(program, representative_passes(problem, rank));
  return memory_overlay(read_snapshot(snapshot),
                        tensors_at_peak(program, evaluator.startup(problem, stage, program), step));
}

// The files that are read, and are not written over.
std::vector<std::string> files_read(const OverlayArguments& arguments) {
  std::vector<std::string> files = files_read(arguments.layout);
  files.push_back(arguments.trace);
  if (!arguments.snapshot.empty()) files.push_back(arguments.snapshot);
  return files;
}

}  // namespace

ExitCode run_overlay(const OverlayArguments& arguments, const OutputOptions& output) {
  if (arguments.trace.empty()) {
    throw InputError("overlay: --trace FILE is missing, a trace of torch.profiler");
  }
  check_outputs({{"--calibrate", arguments.calibrate}}, files_read(arguments));
  const FitAnswer answer = answer_of(arguments.layout);
  const Problem& problem = answer.problem;
  if (!has_time(problem, answer.step)) {
    throw InputError(
        "overlay: this plan's step has no time: a size alone, or nodes without network");
  }
  const Trace trace = read_kineto(arguments.trace);
  OverlayReport report;
  report.stage = traced_stage(arguments, answer, trace, report.notes);
  report.band = step_band(problem).half_width;
  report.measured = measured_step(trace);
  note_trace(trace, report.measured, report.notes);
  const Evaluator evaluator(problem);
  report.overlay =
      overlay(report.measured.work, predicted_step(problem, evaluator, answer.step, report.stage));
  report.verdict = verdict_of(report.overlay, trace, report.band);
  if (!arguments.snapshot.empty()) {
    report.memory = memory_of(problem, evaluator, report.stage, arguments.snapshot);
  }
  if (!arguments.calibrate.empty()) {
    if (!trace.on_device) {
      throw InputError("overlay: --calibrate needs kernels of a device, and the trace has none");
    }
    report.calibration = calibrated(problem, report.measured, report.overlay, report.stage);
    write_file(arguments.calibrate, machine_json(*report.calibration, arguments.trace));
  }
  write_in_form(
      output, [&] { return overlay_json(answer, report); }, [&] { return overlay_csv(report); },
      [&] { return overlay_text(answer, report, text_style(output)); });
  return report.verdict == OverlayVerdict::differs ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
