// Does it fit? Front door: estimate.
#include "cost_model/estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace zeroplan {
namespace {

double normal_cumulative(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

Verdict verdict_of(Bytes device, Bytes half_band, Bytes capacity) {
  return device + half_band <= capacity  ? Verdict::fits
         : device - half_band > capacity ? Verdict::does_not_fit
                                         : Verdict::tight;
}

// Worst stage, band and verdict, from the stages.
void judge(const Problem& problem, Estimate& result) {
  result.capacity = problem.cluster.gpu.memory;
  result.worst = 0;
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    if (result.stages[i].memory.device() > result.device()) result.worst = i;
  }
  const Bytes device = result.device();
  const Bytes half = half_band(problem, stage_bytes(result.peak()));
  result.low = device - half;
  result.high = device + half;
  if (half == Bytes{}) {
    result.fit_probability = device <= result.capacity ? 1 : 0;
  } else {
    const double deviation = static_cast<double>(half.count()) / 2;
    result.fit_probability =
        normal_cumulative(static_cast<double>(result.headroom().count()) / deviation);
  }
  result.verdict = verdict_of(device, half, result.capacity);
}

constexpr double wasted_margin = 0.01;

// Largest reserved over allocated bytes of 344 ranks of published B200 runs (MooreThreads/SimuMax
// docs/b200 @4dcaae5).
constexpr double most_wasted = 0.093;
// The same of the other runtimes, by replay of the measured rows: 44 % on the first stage of a
// DeepSpeed pipeline, 40 % in FSDP2 with native segments.
constexpr double most_wasted_elsewhere = 0.5;

enum class Until { all_known, verdict_known, all_known_or_one_does_not_fit };

// Whether a stage that reserves so much fits with its whole band.
bool fits_with(const Problem& problem,
               const Estimate& result,
               const StageMemory& stage,
               Bytes reserved) {
  StageBytes bytes = stage_bytes(stage);
  bytes.reserved = reserved;
  return bytes.device() + half_band(problem, bytes) <= result.capacity;
}

// Largest part of its allocated bytes that a run may hold beyond them.
double most_wasted_on(const Problem& problem) {
  return problem.runtime.kind == Runtime::megatron ? most_wasted : most_wasted_elsewhere;
}

// What stages hold beyond what they allocate, as a part of it. Those that hold the same ends of the
// model run the same blocks, so they waste alike; of others nothing is known before one is played.
class Waste {
 public:
  explicit Waste(const Problem& problem) : most_(most_wasted_on(problem)) {}

  double expected(const Stage& stage) const {
    const std::optional<double>& seen = of_ends_[ends(stage)];
    return seen ? *seen + wasted_margin : most_;
  }
  void add(const Stage& stage, double wasted) {
    std::optional<double>& seen = of_ends_[ends(stage)];
    seen = std::max(seen.value_or(0), wasted);
  }

 private:
  static std::size_t ends(const Stage& stage) {
    return static_cast<std::size_t>(2 * stage.embedding + stage.head);
  }

  double most_;
  std::array<std::optional<double>, 4> of_ends_;
};

// Replays the stages from the one that allocates most downwards, but for those that are not likely
// to need more than one that was played.
void play_stages(const Problem& problem,
                 const Remembered& remembered,
                 Until until,
                 Estimate& result) {
  if (!has_allocator(problem)) return;
  std::vector<std::size_t> order(result.stages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.stages[a].memory.allocated() > result.stages[b].memory.allocated();
  });
  const std::vector<Stage> all = stages(problem);
  Bytes most;  // reserved by a played stage
  Waste waste(problem);
  for (const std::size_t i : order) {
    StageMemory& stage = result.stages[i];
    const auto allocated = static_cast<double>(stage.memory.allocated().count());
    const Bytes likely{static_cast<std::int64_t>((1 + waste.expected(all[i])) * allocated)};
    if (likely < most) continue;
    if (until == Until::verdict_known && most > Bytes{} &&
        fits_with(problem, result, stage, likely)) {
      continue;
    }
    play_allocator(problem, remembered, all[i], stage);
    most = std::max(most, stage.memory.reserved());
    waste.add(all[i],
              static_cast<double>(stage.memory[Category::fragmentation].count()) / allocated);
    const bool fits = fits_with(problem, result, stage, stage.memory.reserved());
    if (until != Until::all_known && !fits) break;
  }
  judge(problem, result);
}

// A run that resumes from a checkpoint, on the worst stage.
void play_resumed(const Problem& problem, const Remembered& remembered, Estimate& result) {
  if (!has_allocator(problem)) return;
  const StageMemory& peak = result.peak();
  const Stage stage = stages(problem)[static_cast<std::size_t>(peak.stage)];
  const Replay resumed = run_of(problem, remembered, stage, peak, Start::resumed);
  result.resumed = resumed.peak_reserved();
  result.phases = phases_of(peak.phases, resumed);
}

// A loop of its own for each way to weigh a run: that of most searches keeps it in registers.
template <class BytesOf>
WorstStage worst_stage(const Exchanged& exchanged, const BytesOf& bytes_of) {
  const Recalled& known = exchanged.layout();
  StageBytes most = bytes_of(exchanged, 0);
  std::size_t run_of_most = 0;
  const std::size_t runs = known.runs();
  for (std::size_t run = 1; run < runs; ++run) {
    const StageBytes bytes = bytes_of(exchanged, run);
    if (bytes.device() <= most.device()) continue;
    most = bytes;
    run_of_most = run;
  }
  const Bytes device = most.device();
  const Problem& problem = known.problem();
  return {.stage = known.firsts()[run_of_most],
          .device = device,
          .verdict = verdict_of(device, half_band(problem, most), problem.cluster.gpu.memory)};
}

}  // namespace

Estimate estimate(const Problem& problem, const Remembered& remembered) {
  Estimate result;
  std::int64_t index = 0;
  for (const Stage& stage : stages(problem)) {
    result.stages.push_back(stage_memory(problem, remembered, stage, index++));
  }
  judge(problem, result);
  Bytes host;
  for (const StageMemory& stage : result.stages) host = std::max(host, stage.host.total());
  result.host_a_node = std::min(problem.cluster.gpus_per_node, problem.cluster.gpus) * host;
  return result;
}

WorstStage worst_stage(const Exchanged& exchanged) {
  if (exchanged.layout().problem().runtime.kind == Runtime::megatron) {
    return worst_stage(exchanged, megatron_stage_bytes);
  }
  return worst_stage(exchanged,
                     [](const Exchanged& e, std::size_t run) { return stage_bytes(e, run); });
}

Estimate played_estimate(const Problem& problem, const Remembered& remembered) {
  Estimate result = estimate(problem, remembered);
  play_stages(problem, remembered, Until::all_known, result);
  play_resumed(problem, remembered, result);
  return result;
}

std::optional<Estimate> played_where_it_fits(const Problem& problem, const Remembered& remembered) {
  Estimate result = estimate(problem, remembered);
  play_stages(problem, remembered, Until::all_known_or_one_does_not_fit, result);
  if (result.verdict != Verdict::fits) return std::nullopt;
  play_resumed(problem, remembered, result);
  return result;
}

Estimate confirmed_estimate(const Problem& problem, const Remembered& remembered) {
  Estimate result = estimate(problem, remembered);
  if (result.verdict != Verdict::fits) return result;
  // Enough room for more waste than any published run showed: no need to play.
  const Bytes allocated = result.peak().memory.allocated();
  const auto most =
      static_cast<std::int64_t>(most_wasted_on(problem) * static_cast<double>(allocated.count()));
  if (!fits_with(problem, result, result.peak(), allocated + Bytes{most})) {
    play_stages(problem, remembered, Until::verdict_known, result);
  }
  return result;
}

Bytes half_band(const Problem& problem, const StageBytes& peak) {
  const auto share = [](Bytes bytes, double part) {
    const double exact = part * static_cast<double>(bytes.count());
    const auto whole = static_cast<std::int64_t>(exact);
    return Bytes{whole + (static_cast<double>(whole) < exact)};  // rounded up
  };
  const bool megatron = problem.runtime.kind == Runtime::megatron;
  const bool fsdp2 = problem.runtime.kind == Runtime::fsdp2;
  if (has_allocator(problem) && (megatron || fsdp2)) {
    return share(peak.reserved, megatron ? 0.026 : 0.06) + share(peak.outside, 0.5);
  }
  if (problem.runtime.kind == Runtime::zero_paper) return share(peak.activations, 0.3);
  return share(peak.device() - peak.states, 0.3);
}

Bytes first_stage_bytes(const Problem& problem, const Remembered& remembered) {
  return stage_memory(problem, remembered, stages(problem).front(), 0).memory.device();
}

}  // namespace zeroplan
