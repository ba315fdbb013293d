// How long does a step take? Front door: step_time.
#include "cost_model/step_time.hpp"

#include <algorithm>

#include "cost_model/step/messages.hpp"
#include "cost_model/time/gemm.hpp"

namespace zeroplan {
namespace {

// Stages that hold alike blocks take alike time.
std::vector<StageTime> stage_times(const Problem& p, const Remembered& remembered) {
  const Recalled known = remembered.of(p);
  const Exchanged exchanged = known.exchanged();
  std::vector<StageTime> times;
  times.reserve(known.stages().size());
  for (std::size_t run = 0; run < known.runs(); ++run) {
    const Stage& first = known.stages()[known.firsts()[run]];
    const auto length = static_cast<std::size_t>(known.length_of_run(run));
    times.insert(times.end(), length,
                 stage_time(p, known.passes(run), exchanged.update(run), first));
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

// The norm of all gradients makes the ranks wait for each other before the optimizer.
class EndOfStep {
 public:
  void reduce(double finished, double reductions) {
    reduced_ = std::max(reduced_, finished + reductions);
  }
  void update(double optimizer, double gathers) {
    updated_ = std::max(updated_, optimizer + gathers);
  }
  double seconds() const { return reduced_ + updated_; }

 private:
  double reduced_ = 0;
  double updated_ = 0;
};

// `finished`: when the passes of each run end.
double seconds_of(const Exchanged& point, const std::vector<double>& finished) {
  const Recalled& known = point.layout();
  const GpuSpec& gpu = known.problem().cluster.gpu;
  EndOfStep end;
  for (std::size_t run = 0; run < finished.size(); ++run) {
    const UpdateLoads& update = point.loads(run);
    const StagePasses& passes = known.passes(run);
    end.reduce(finished[run], exposed_at_end(update.reductions, passes, gpu));
    end.update(update.optimizer, exposed_at_end(update.gathers, passes, gpu));
  }
  return end.seconds() + known.straggling() * end.seconds();
}

double available_flops(const Problem& p, const StepTime& time) {
  return peak_flops(p.cluster.gpu, p.training.precision) * time.seconds *
         static_cast<double>(p.cluster.gpus);
}

}  // namespace

StepTime step_time(const Problem& problem, const Remembered& remembered) {
  StepTime time{.flops = step_flops(problem), .stages = stage_times(problem, remembered)};
  const double message = message_seconds(problem);
  PipelineTime pipeline = simulate_pipeline(problem, time.stages, message);
  if (message > 0) expose_messages(time.stages, pipeline.messages);
  EndOfStep end;
  double longest = 0;
  std::size_t busiest = 0;
  for (std::size_t i = 0; i < time.stages.size(); ++i) {
    const StageTime& stage = time.stages[i];
    end.reduce(pipeline.ranks[i].finished, stage.reductions);
    end.update(stage.optimizer, stage.gathers);
    const double own = pipeline.ranks[i].busy + stage.reductions + stage.optimizer + stage.gathers;
    if (own > longest) {
      longest = own;
      busiest = i;
    }
  }
  time.seconds = end.seconds();
  const StageTime& stage = time.stages[busiest];
  time.optimizer = stage.optimizer;
  time.computed = stage.computed + stage.optimizer;
  time.exposed = pipeline.ranks[busiest].busy - stage.computed + stage.reductions + stage.gathers +
                 pipeline.messages;
  time.bubble = time.seconds - time.computed - time.exposed;
  time.straggling = straggling_part(problem.cluster) * time.seconds;
  time.seconds += time.straggling;
  time.ranks = std::move(pipeline.ranks);
  return time;
}

double step_seconds(const Exchanged& point) {
  const Recalled& known = point.layout();
  return seconds_of(
      point, point.adds_to_passes() ? known.finished({&point, 1}).front() : known.finished());
}

void StepsTogether::add(const Exchanged& point) {
  (point.adds_to_passes() ? late_ : others_).push_back({size_++, point});
}

const std::vector<double>& StepsTogether::seconds() {
  seconds_.resize(size_);
  std::span<const Point> left = late_;
  while (!left.empty()) {
    const auto some = left.first(std::min(left.size(), OrderedPasses::together));
    left = left.subspan(some.size());
    boost::container::small_vector<Exchanged, OrderedPasses::together> points;
    for (const Point& point : some) points.push_back(point.exchanged);
    const auto finished = points.front().layout().finished({points.data(), points.size()});
    for (std::size_t i = 0; i < some.size(); ++i) {
      seconds_[some[i].place] = seconds_of(points[i], finished[i]);
    }
  }
  for (const Point& point : others_) {
    seconds_[point.place] = seconds_of(point.exchanged, point.exchanged.layout().finished());
  }
  return seconds_;
}

void StepsTogether::clear() {
  size_ = 0;
  late_.clear();
  others_.clear();
}

double step_half_band(const Problem& problem) {
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return problem.runtime.megatron.local_layers() ? 0.17 : 0.08;
    case Runtime::fsdp2:
      return 0.25;
    case Runtime::nanotron:
      return 0.2;
    case Runtime::deepspeed:
      return 0.4;
    default:
      return 0.5;
  }
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
