// How long does a step take? Front door: step_time.
#include "cost_model/step_time.hpp"

#include <algorithm>

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

double step_seconds(const Exchanged& exchanged) {
  const Recalled& known = exchanged.layout();
  const GpuSpec& gpu = known.problem().cluster.gpu;
  const std::size_t runs = known.runs();
  EndOfStep end;
  bool longer = false;  // passes than without the update
  for (std::size_t run = 0; run < runs; ++run) {
    const UpdateLoads& update = exchanged.loads(run);
    end.update(update.optimizer, exposed_at_end(update.gathers, known.passes(run), gpu));
    longer |= update.in_passes;
  }
  const std::vector<double>& finished = longer ? exchanged.finished() : known.finished();
  for (std::size_t run = 0; run < runs; ++run) {
    const UpdateLoads& update = exchanged.loads(run);
    end.reduce(finished[run], exposed_at_end(update.reductions, known.passes(run), gpu));
  }
  const double seconds = end.seconds();
  return seconds + known.straggling() * seconds;
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
