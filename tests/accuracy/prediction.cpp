// What would the instrument have shown? Front door: predict.
#include "tests/accuracy/prediction.hpp"

#include <algorithm>

#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::accuracy {
namespace {

// A row of memory that an instrument reads.
struct Instrument {
  std::string_view name;
  Bytes (MemoryBreakdown::*reading)() const;
};

constexpr Instrument allocated{"max_allocated", &MemoryBreakdown::allocated};
constexpr Instrument reserved{"max_reserved", &MemoryBreakdown::reserved};
constexpr Instrument device{"nvidia-smi", &MemoryBreakdown::device};
constexpr Instrument unnamed{"unnamed", &MemoryBreakdown::reserved};

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
  const auto reading = [&](const StageMemory& stage) {
    return (stage.memory.*instrument.reading)();
  };
  if (measured.last_rank) return reading(answer.stages.back());
  if (measured.rank) {
    const std::int64_t stage = *measured.rank * problem.layout.pp / world_size(problem.layout);
    if (stage < 0 || stage >= problem.layout.pp) throw Skip(incomplete);
    return reading(answer.stages[static_cast<std::size_t>(stage)]);
  }
  Bytes highest;
  for (const StageMemory& stage : answer.stages) highest = std::max(highest, reading(stage));
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
