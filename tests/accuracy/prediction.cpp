// What would the instrument have shown? Front door: predict.
#include "tests/accuracy/prediction.hpp"

#include <algorithm>

#include "cost_model/answer/step_band.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/states/buffers.hpp"
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
// Of fake tensors: storages alone, without the workspaces that cuBLAS asks for.
constexpr Instrument tracked{"tracked", [](const StageMemory& s) { return s.memory.allocated(); }};
constexpr Instrument reserved{"max_reserved",
                              [](const StageMemory& s) { return s.memory.reserved(); }};
constexpr Instrument device{"nvidia-smi", [](const StageMemory& s) { return s.memory.device(); }};

Instrument instrument_of(const Measurement& measured) {
  if (measured.what->starts_with("max_allocated")) return allocated;
  if (measured.what->starts_with("max_reserved")) return reserved;
  if (measured.what->starts_with("tracked")) return tracked;
  if (measured.what->starts_with("device_used") || measured.what->starts_with("nvidia-smi")) {
    return device;
  }
  throw Skip("instrument " + *measured.what);
}

// The pipeline stage of a rank. Ranks are numbered with the pipeline outermost.
std::size_t stage_of(std::int64_t rank, const Problem& p) {
  const std::int64_t stage = rank * p.layout.pp / world_size(p.layout);
  if (stage < 0 || stage >= p.layout.pp) throw Skip(incomplete);
  return static_cast<std::size_t>(stage);
}

// The reading on the pipeline stage of the rank that reported, or the highest of all stages.
Bytes read(const Instrument& instrument,
           const Estimate& answer,
           const Problem& problem,
           const Measurement& measured) {
  if (measured.last_rank) return instrument.reading(answer.stages.back());
  if (measured.rank) {
    return instrument.reading(answer.stages[stage_of(*measured.rank, problem)]);
  }
  // The benchmark's table is written by the first rank (nanotron @67c5ebb6
  // src/nanotron/helpers.py).
  if (problem.runtime.kind == Runtime::nanotron) return instrument.reading(answer.stages.front());
  Bytes highest;
  for (const StageMemory& stage : answer.stages)
    highest = std::max(highest, instrument.reading(stage));
  return highest;
}

// A run without a figure says that it fitted, if it says what would have to fit.
bool says_fit(const Row& row) {
  return !row.measured && row.sharding.stage;
}

// What no instrument that sees tensors alone can see, on the stage that reported.
Bytes unseen(const Instrument& instrument,
             const Problem& p,
             const Measurement& measured,
             const Evaluator& evaluator) {
  if (instrument.name != tracked.name) return {};
  if (p.layout.pp > 1 && !measured.rank) throw Skip("fake tensors of an unnamed rank");
  const std::size_t stage = measured.rank ? stage_of(*measured.rank, p) : 0;
  return unseen_workspace(p, evaluator.weights(), stages(p)[stage]);
}

std::vector<Result> memory_results(const Row& row,
                                   const Case& question,
                                   const Estimate& answer,
                                   const Evaluator& evaluator) {
  const Measurement& measured = *row.measured;
  const auto reading = [&](const Instrument& instrument) {
    return static_cast<double>((read(instrument, answer, question.problem, measured) -
                                unseen(instrument, question.problem, measured, evaluator))
                                   .count());
  };
  const auto result = [&](std::string_view instrument, double predicted, double bytes) {
    return Result{.id = row.id,
                  .family = question.family,
                  .runtime = question.runtime,
                  .instrument = std::string(instrument),
                  .predicted = predicted,
                  .measured = bytes,
                  .half_band = static_cast<double>((answer.high - answer.device()).count())};
  };
  if (!measured.what) {  // somewhere between what PyTorch allocated and what it reserved
    const double nearest = std::clamp(measured.bytes, reading(allocated), reading(reserved));
    return {result("not named", nearest, measured.bytes)};
  }
  const Instrument instrument = instrument_of(measured);
  std::vector<Result> results{result(instrument.name, reading(instrument), measured.bytes)};
  if (measured.reserved_bytes) {
    results.push_back(result(reserved.name, reading(reserved), *measured.reserved_bytes));
    results.back().id += "#reserved";
  }
  return results;
}

Result step_result(const Row& row, const Case& question, const Evaluator& evaluator) {
  const Problem& p = question.problem;
  const StepTime time = step_time(p, evaluator);
  const double predicted = row.silent ? time.computed : time.seconds;
  const double measured = measured_step_seconds(row, p);
  const double available = measured * static_cast<double>(p.cluster.gpus) *
                           peak_flops(p.cluster.gpu, p.training.precision);
  return {.id = row.id,
          .family = question.family,
          .runtime = question.runtime,
          .instrument = row.silent ? "computed" : "step_time",
          .predicted = predicted,
          .measured = measured,
          .half_band = step_band(p).half_width * predicted,
          .mfu = step_flops(p, ScoreCount::causal).model / available};
}

}  // namespace

// Megatron's tables of 2021 count what
// full recompute repeats; MFU counts whole score matrices, as Megatron and nanotron do.
double measured_step_seconds(const Row& row, const Problem& p) {
  const StepFlops flops = step_flops(p, ScoreCount::whole);
  const Throughput& t = row.throughput;
  const auto gpus = static_cast<double>(p.cluster.gpus);
  if (t.step_seconds) return *t.step_seconds;
  if (t.tokens_per_second) {
    const auto tokens = static_cast<double>(p.training.global_batch * p.training.sequence_length);
    return tokens / (gpus * *t.tokens_per_second);
  }
  if (t.flops_per_second) return flops.hardware / (gpus * *t.flops_per_second);
  return flops.model / (gpus * *t.mfu * peak_flops(p.cluster.gpu, p.training.precision));
}

// The answer with the allocator replayed on each stage, since an instrument is of any rank.
Estimate wholly_played(const Problem& p, const Evaluator& evaluator) {
  Estimate answer = played_estimate(p, evaluator);
  if (!has_allocator(p)) return answer;
  const std::vector<Stage> all = stages(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (answer.stages[i].phases.empty()) play_allocator(p, evaluator, all[i], answer.stages[i]);
  }
  return answer;
}

Prediction predict(const Row& row) {
  const Case question = problem_of(row);
  const Evaluator evaluator(question.problem);
  Prediction prediction;
  if (row.measured || says_fit(row)) {
    const Estimate answer = wholly_played(question.problem, evaluator);
    if (row.measured) {
      prediction.memory = memory_results(row, question, answer, evaluator);
    } else {
      prediction.judgement =
          Judgement{row.id,          question.family, row.outcome,    answer.verdict,
                    answer.device(), answer.high,     answer.capacity};
    }
  }
  if (row.outcome == Outcome::ran && row.throughput.published()) {
    prediction.step = step_result(row, question, evaluator);
  }
  return prediction;
}

}  // namespace zeroplan::accuracy
