// Where is the time of a step expected to go? Front door: predicted_step.
#include "validator/overlay/predicted_step.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "cost_model/program/schedule.hpp"
#include "validator/overlay/spans.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t most_played = 16;  // micro-batches, where fewer repeat

Work work_of(const KernelSlice& slice) {
  if (const Operator* op = slice.played.recorded) {
    return std::holds_alternative<ProductShape>(op->work) ? Work::products
           : std::holds_alternative<ScoreShape>(op->work) ? Work::attention
                                                          : Work::memory_bound;
  }
  const Module module = slice.played.kernel.module;
  const bool linear = module <= Module::eh_proj || module == Module::output_layer;
  return linear                             ? Work::products
         : module == Module::core_attention ? Work::attention
                                            : Work::memory_bound;
}

class PredictedSum {
 public:
  explicit PredictedSum(double times) : times_(times) {}

  void add(Work work, const std::string& name, double seconds, double times) {
    NamedWork& named = names_[{work, name}];
    named.name = name;
    counts_[{work, name}] += times;
    named.seconds += times * seconds;
  }

  void add_streams(const RankStreams& streams) {
    double told = 0;
    for (const KernelSlice& kernel : streams.kernels) {
      add(work_of(kernel), kernel.name(), kernel.busy, times_);
      told += kernel.seconds;
    }
    double computed = 0;
    for (const Slice& slice : streams.slices) {
      if (slice.kind != SliceKind::compute) continue;
      if (slice.pass < 0) {
        add(Work::optimizer, slice.name, slice.seconds, 1);
      } else {
        computed += slice.seconds;
      }
    }
    // Seconds of blocks whose kernels nothing tells apart.
    constexpr double rounding = 1e-9;
    if (computed - told > rounding * computed) {
      add(Work::other, "not told apart", computed - told, times_);
    }
  }

  void finish(StepWork& out) {
    for (auto& [key, named] : names_) {
      named.count = std::llround(counts_.at(key));
      WorkSum& sum = out.at(key.first);
      sum.count += named.count;
      sum.seconds += named.seconds;
      sum.names.push_back(named);
    }
    for (WorkSum& sum : out.kinds) {
      std::ranges::stable_sort(sum.names, std::greater{}, &NamedWork::seconds);
    }
  }

 private:
  double times_;
  std::map<std::pair<Work, std::string>, NamedWork> names_;
  std::map<std::pair<Work, std::string>, double> counts_;
};

CallSum& call_like(const RankGroup& group, Collective collective, StepWork& out) {
  const auto like = std::ranges::find_if(out.calls, [&](const CallSum& c) {
    return c.collective == collective && c.group == group.name && c.ranks == group.ranks;
  });
  if (like != out.calls.end()) return *like;
  return out.calls.emplace_back(CallSum{collective, std::string(group.name), group.ranks});
}

void add_calls(const std::vector<TimedLoad>& loads, StepWork& out) {
  for (const TimedLoad& timed : loads) {
    const CollectiveLoad& load = timed.load;
    if (!load.is_sent()) continue;
    CallSum& call = call_like(load.group, load.collective, out);
    call.work.add({.count = load.calls, .seconds = timed.seconds, .added = timed.exposed});
    call.payload += (load.calls * load.payload).count();
  }
}

// What of the step nothing computes beside, as it would be seen in a trace.
void add_exposed(const RankStreams& streams, double times, StepWork& out) {
  std::vector<Span> computing, busy;
  for (const KernelSlice& kernel : streams.kernels) {
    computing.push_back({kernel.start, kernel.start + kernel.busy});
  }
  for (const Slice& slice : streams.slices) {
    const Span span{slice.start, slice.start + slice.seconds};
    const bool computes = slice.kind == SliceKind::compute;
    if (!computes) busy.push_back({slice.start, std::min(span.end, out.seconds)});
    if (computes && (slice.pass < 0 || streams.kernels.empty())) computing.push_back(span);
  }
  computing = covered(std::move(computing));
  busy.insert(busy.end(), computing.begin(), computing.end());
  const double alone = length(covered(std::move(busy))) - length(computing);
  for (const Slice& slice : streams.slices) {
    if (slice.kind == SliceKind::compute) continue;
    const CollectiveLoad& load = slice.call.load;
    call_like(load.group, load.collective, out).work.exposed +=
        (slice.pass < 0 ? 1 : times) *
        uncovered({slice.start, slice.start + slice.seconds}, computing);
  }
  double computed = 0;
  for (const WorkSum& sum : out.kinds) computed += sum.seconds;
  out.at(Work::idle).seconds = std::max(0.0, out.seconds - computed - times * alone);
}

}  // namespace

StepWork predicted_step(const Problem& problem,
                        const Evaluator& evaluator,
                        const StepTime& time,
                        std::int64_t stage) {
  const std::int64_t all = micro_batches(problem);
  const std::int64_t told =
      std::min(all, std::max(representative_micro_batches(problem, 0), most_played));
  const double times = static_cast<double>(all) / static_cast<double>(told);
  StepWork out;
  out.seconds = time.seconds;
  const RankStreams streams = rank_streams(problem, evaluator, time, stage, told);
  PredictedSum sum(times);
  sum.add_streams(streams);
  sum.finish(out);
  add_calls(time.stages[static_cast<std::size_t>(stage)].loads, out);
  add_exposed(streams, times, out);
  for (const CallSum& call : out.calls) out.at(Work::collective).add(call.work);
  return out;
}

}  // namespace zeroplan
