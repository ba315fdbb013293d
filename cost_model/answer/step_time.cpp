// How long does a step take? Front door: step_time.
#include "cost_model/answer/step_time.hpp"

#include <algorithm>

#include "cost_model/answer/recorded_time.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/pipeline/messages.hpp"

namespace zeroplan {
namespace {

// Stages that hold alike blocks take alike time, though one of them may send less.
std::vector<StageTime> stage_times(const Problem& p, const Evaluator& evaluator) {
  if (p.runtime.recorded) return {recorded_stage_time(p, evaluator)};
  const LayoutPieces known = evaluator.pieces(p);
  const PlanPoint point = known.point();
  std::vector<StageTime> times;
  times.reserve(known.stages().size());
  const auto timed = [&](std::size_t run, const Stage& stage) {
    return stage_time(p, known.passes(run), point.update(run),
                      pass_collectives(p, evaluator.weights(), stage));
  };
  for (std::size_t run = 0; run < known.runs(); ++run) {
    const std::size_t first = known.firsts()[run];
    const auto length = static_cast<std::size_t>(known.length_of_run(run));
    times.insert(times.end(), length, timed(run, known.stages()[first]));
    for (std::size_t i = first + 1; i < first + length; ++i) {
      const Stage& stage = known.stages()[i];
      if (turns(p, stage) != turns(p, known.stages()[first])) times[i] = timed(run, stage);
    }
  }
  return times;
}

// What the messages of each rank add to the step, beside what waiting for other ranks' work does.
void expose_messages(std::vector<StageTime>& stages, double seconds) {
  for (StageTime& stage : stages) {
    double all = 0;
    for (const TimedLoad& load : stage.loads) {
      if (load.load.group.name == "pp") all += load.seconds;
    }
    for (TimedLoad& load : stage.loads) {
      if (load.load.group.name == "pp") load.exposed = load.seconds / all * seconds;
    }
  }
}

// A timing of this layout, or the first of several.
template <class Seconds>
void begin(AddedByUpdates<Seconds>& added, std::size_t runs) {
  added.passes.assign(runs, {});
  added.reductions.resize(runs);
}

// As timing i.
template <class Seconds>
void put(AddedByUpdates<Seconds>& added, std::size_t i, const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  const ClusterSpec& cluster = known.problem().cluster;
  double updated = 0;
  const std::span<const StagePasses> of_runs = known.passes();
  for (std::size_t run = 0; run < of_runs.size(); ++run) {
    const UpdateLoads& loads = point.loads(run);
    const StagePasses& passes = of_runs[run];
    if (loads.in_passes) {
      const Directions part = added_part(loads, passes, cluster);
      timing(added.passes[run].forward, i) = part.forward;
      timing(added.passes[run].backward, i) = part.backward;
    }
    const AtEnd at_end = exposed_at_end(loads, passes, cluster);
    timing(added.reductions[run], i) = at_end.reductions;
    updated = std::max(updated, loads.optimizer + at_end.gathers);
  }
  timing(added.updated, i) = updated;
}

// The norm of all gradients makes the ranks wait for each other before the optimizer.
// `finished`: when the passes of each run end.
template <class Seconds>
Seconds seconds_of(const LayoutPieces& known,
                   const AddedByUpdates<Seconds>& added,
                   const std::vector<Seconds>& finished) {
  using std::max;
  Seconds reduced = 0;
  for (std::size_t run = 0; run < finished.size(); ++run) {
    reduced = max(reduced, finished[run] + added.reductions[run]);
  }
  const Seconds seconds = reduced + added.updated;
  return seconds + known.straggling() * seconds;
}

template <class Seconds>
const std::vector<Seconds>& finished_with(const LayoutPieces& known,
                                          const AddedByUpdates<Seconds>& added) {
  return known.finished<Seconds>({added.passes.data(), added.passes.size()});
}

double available_flops(const Problem& p, const StepTime& time) {
  return peak_flops(p.cluster.gpu, p.training.precision) * time.seconds *
         static_cast<double>(p.cluster.gpus);
}

}  // namespace

std::string_view constants_date() {
  return date_of_published_constants;
}

StepTime step_time(const Problem& problem, const Evaluator& evaluator) {
  StepTime time{.flops = step_flops(problem), .stages = stage_times(problem, evaluator)};
  const double message = message_seconds(problem);
  PipelineTime pipeline = simulate_pipeline(problem, time.stages, message);
  if (message > 0) expose_messages(time.stages, pipeline.messages);
  double reduced = 0, updated = 0, longest = 0;
  std::size_t busiest = 0;
  for (std::size_t i = 0; i < time.stages.size(); ++i) {
    const StageTime& stage = time.stages[i];
    reduced = std::max(reduced, pipeline.ranks[i].finished + stage.reductions);
    updated = std::max(updated, stage.optimizer + stage.gathers);
    const double own = pipeline.ranks[i].busy + stage.reductions + stage.optimizer + stage.gathers;
    if (own > longest) {
      longest = own;
      busiest = i;
    }
  }
  time.seconds = reduced + updated;
  const StageTime& stage = time.stages[busiest];
  time.optimizer = stage.optimizer;
  time.computed = stage.computed + stage.optimizer;
  // Messages are waited for in what is left of the step, beside the other ranks' work.
  const double waited = std::max(0.0, time.seconds - longest);
  const double messages = std::min(pipeline.messages, waited);
  time.exposed = std::max(0.0, longest - time.computed) + messages;
  time.bubble = waited - messages;
  time.straggling = straggling_part(problem.cluster) * time.seconds;
  time.seconds += time.straggling;
  time.ranks = std::move(pipeline.ranks);
  return time;
}

double step_seconds(const PlanPoint& point) {
  const LayoutPieces& known = point.layout();
  AddedByUpdates<double> added;
  begin(added, known.runs());
  put(added, 0, point);
  return seconds_of(known, added,
                    point.adds_to_passes() ? finished_with(known, added) : known.finished());
}

void StepLanes::add(const PlanPoint& point) {
  layout_ = &point.layout();
  Points& points = point.adds_to_passes() ? late_ : others_;
  const std::size_t batch = points.places.size() / Lanes::count;
  const std::size_t timing = points.places.size() % Lanes::count;
  if (batch == points.added.size()) points.added.emplace_back();
  if (timing == 0) begin(points.added[batch], layout_->runs());
  put(points.added[batch], timing, point);
  points.places.push_back(size_++);
}

template <class Finished>
void StepLanes::find(const Points& points, const Finished& finished_of) {
  std::span<const std::size_t> left = points.places;
  for (const AddedByUpdates<Lanes>& added : points.added) {
    const auto places = left.first(std::min(left.size(), Lanes::count));
    if (places.empty()) break;
    const Lanes seconds = seconds_of(*layout_, added, finished_of(added));
    for (std::size_t i = 0; i < places.size(); ++i) seconds_[places[i]] = seconds.each[i];
    left = left.subspan(places.size());
  }
}

const std::vector<double>& StepLanes::seconds() {
  seconds_.resize(size_);
  find(
      late_, [&](const auto& added) -> const auto& { return finished_with(*layout_, added); });
  if (others_.places.empty()) return seconds_;
  finished_.assign(layout_->finished().begin(), layout_->finished().end());
  find(
      others_, [&](const auto&) -> const auto& { return finished_; });
  return seconds_;
}

void StepLanes::clear() {
  size_ = 0;
  late_.places.clear();
  others_.places.clear();
}

double mfu(const Problem& problem, const StepTime& time) {
  return time.flops.model / available_flops(problem, time);
}

double hfu(const Problem& problem, const StepTime& time) {
  return time.flops.hardware / available_flops(problem, time);
}

double tflops_per_gpu(const Problem& problem, const StepTime& time) {
  return time.flops.model / time.seconds / static_cast<double>(problem.cluster.gpus) / 1e12;
}

double tokens_per_second_per_gpu(const Problem& problem, const StepTime& time) {
  const TrainingSpec& t = problem.training;
  return static_cast<double>(t.global_batch * t.sequence_length) / time.seconds /
         static_cast<double>(problem.cluster.gpus);
}

}  // namespace zeroplan
