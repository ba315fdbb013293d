// What would the instrument have shown? Front door: predict.
#include "tests/accuracy/prediction.hpp"

#include <algorithm>

#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::accuracy {
namespace {

// What an instrument reads of a stage.
struct Instrument {
  std::string_view name;
  Bytes (*reading)(const StageMemory&);
};

// PyTorch counts whole blocks as allocated, what they hold beyond the request included.
constexpr Instrument allocated{
    "max_allocated", [](const StageMemory& s) { return s.memory.allocated() + s.unsplit_blocks; }};
constexpr Instrument reserved{"max_reserved",
                              [](const StageMemory& s) { return s.memory.reserved(); }};
constexpr Instrument device{"nvidia-smi", [](const StageMemory& s) { return s.memory.device(); }};
constexpr Instrument unnamed{"unnamed", reserved.reading};

Instrument instrument_of(const Measurement& measured) {
  if (!measured.what) return unnamed;
  if (measured.what->starts_with("max_allocated")) return allocated;
  if (measured.what->starts_with("max_reserved")) return reserved;
  if (measured.what->starts_with("device_used") || measured.what->starts_with("nvidia-smi")) {
    return device;
  }
  throw Skip("instrument " + *measured.what);
}

// The reading on the pipeline stage of the rank that reported, or the highest of all stages. Ranks
// are numbered with the pipeline outermost.
Bytes read(const Instrument& instrument,
           const Estimate& answer,
           const Problem& problem,
           const Measurement& measured) {
  if (measured.last_rank) return instrument.reading(answer.stages.back());
  // The benchmark's table is written by the first rank (nanotron @67c5ebb6
  // src/nanotron/helpers.py).
  if (problem.runtime.kind == Runtime::nanotron) return instrument.reading(answer.stages.front());
  if (measured.rank) {
    const std::int64_t stage = *measured.rank * problem.layout.pp / world_size(problem.layout);
    if (stage < 0 || stage >= problem.layout.pp) throw Skip(incomplete);
    return instrument.reading(answer.stages[static_cast<std::size_t>(stage)]);
  }
  Bytes highest;
  for (const StageMemory& stage : answer.stages)
    highest = std::max(highest, instrument.reading(stage));
  return highest;
}

}  // namespace

Prediction predict(const Row& row) {
  const Case question = problem_of(row);
  const Problem& problem = question.problem;
  const Estimate answer = played_estimate(problem, Remembered(problem.model));
  if (!row.measured) {
    return {.judgement = Judgement{row.id, row.outcome, answer.verdict}};
  }

  const Measurement& measured = *row.measured;
  const auto result = [&](const Instrument& instrument, double bytes, const char* suffix) {
    return Result{
        .id = row.id + suffix,
        .family = row.family,
        .runtime = question.runtime,
        .instrument = std::string(instrument.name),
        .predicted = static_cast<double>(read(instrument, answer, problem, measured).count()),
        .measured = bytes};
  };
  Prediction prediction{.results = {result(instrument_of(measured), measured.bytes, "")}};
  if (measured.reserved_bytes) {
    prediction.results.push_back(result(reserved, *measured.reserved_bytes, "#reserved"));
  }
  return prediction;
}

}  // namespace zeroplan::accuracy
