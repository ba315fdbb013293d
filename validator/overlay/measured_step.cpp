// Where did the time of a step go? Front door: measured_step.
#include "validator/overlay/measured_step.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "validator/overlay/self_time.hpp"
#include "validator/overlay/spans.hpp"
#include "validator/overlay/trace_steps.hpp"

namespace zeroplan {
namespace {

// S of collective.hpp, from what a rank gives and takes.
std::int64_t payload_of(Collective collective, const NotedCall& noted) {
  return collective == Collective::all_gather ? noted.output : noted.input;
}

bool copies_between(std::string_view name) {
  return name.find("HtoD") != std::string_view::npos || name.find("DtoH") != std::string_view::npos;
}

// Sums the events of one step.
class StepSum {
 public:
  explicit StepSum(const Trace& trace) : trace_(trace), kinds_(trace.names.size()) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i] = work_of(trace.names[i]);
  }

  MeasuredStep sum(const TraceStep& step) {
    MeasuredStep out;
    const std::vector<double> own =
        trace_.on_device ? std::vector<double>{} : self_seconds(trace_.events, step.events);
    for (std::size_t i = 0; i < step.events.size(); ++i) {
      const TraceEvent& event = trace_.events[step.events[i]];
      add(event, work_at(event), own.empty() ? event.seconds : own[i], out);
    }
    // What other steps do meanwhile is beside this step too.
    const Span whole{step.start, step.start + step.seconds};
    const std::int16_t device = trace_.events[step.events.front()].device;
    std::vector<Span> computing, busy;
    for (const TraceEvent& event : trace_.events) {
      if (event.device != device) continue;
      const Work work = work_at(event);
      busy.push_back({std::max(event.start, whole.start), std::min(event.end(), whole.end)});
      if (work != Work::collective && work != Work::copies) {
        computing.push_back({event.start, event.end()});
      }
    }
    computing = covered(std::move(computing));
    for (const std::size_t index : step.events) expose(trace_.events[index], computing);
    finish(out.work);
    out.work.seconds = step.seconds;
    out.work.at(Work::idle).seconds =
        std::max(0.0, step.seconds - length(covered(std::move(busy))));
    return out;
  }

 private:
  Work work_at(const TraceEvent& event) const {
    const Work work =
        event.call >= 0 ? Work::collective : kinds_[static_cast<std::size_t>(event.name)];
    if (work == Work::collective || work == Work::copies) return work;
    const double at = std::isnan(event.launched) ? event.start : event.launched;
    const bool by_host = !trace_.on_device || !std::isnan(event.launched);
    const bool updates = std::ranges::any_of(trace_.updates, [&](const TraceWindow& window) {
      return window.on_device != by_host && window.holds(at);
    });
    return updates ? Work::optimizer : work;
  }

  void add(const TraceEvent& event, Work work, double seconds, MeasuredStep& out) {
    WorkSum& sum = out.work.at(work);
    ++sum.count;
    sum.seconds += seconds;
    NamedWork& named = names_[{work, event.name}];
    ++named.count;
    named.seconds += seconds;
    if (work == Work::collective) return add_call(event, out);
    const std::string& name = trace_.names[static_cast<std::size_t>(event.name)];
    if (work == Work::copies && event.bytes > 0 && event.seconds > 0 && copies_between(name)) {
      out.copies.push_back({name.find("HtoD") != std::string::npos, event.bytes, event.seconds});
    }
  }

  CallSum& call_of(const TraceEvent& event) {
    const auto [known, is_new] = call_at_.try_emplace({event.name, event.call}, calls_.size());
    if (is_new) {
      const NotedCall noted =
          event.call < 0 ? NotedCall{} : trace_.calls[static_cast<std::size_t>(event.call)];
      auto collective = collective_of(noted.collective);
      if (!collective)
        collective = collective_of(trace_.names[static_cast<std::size_t>(event.name)]);
      calls_.push_back({collective, noted.group, noted.ranks});
      if (collective)
        each_payload_.push_back(payload_of(*collective, noted));
      else
        each_payload_.push_back(0);
    }
    return calls_[known->second];
  }

  void add_call(const TraceEvent& event, MeasuredStep& out) {
    CallSum& call = call_of(event);
    const std::int64_t payload = each_payload_[call_at_.at({event.name, event.call})];
    ++call.work.count;
    call.work.seconds += event.seconds;
    call.payload += payload;
    if (!call.collective || payload <= 0 || call.ranks < 2) return;
    const auto like = std::ranges::find_if(out.timed_calls, [&](const CallTimes& t) {
      return t.collective == *call.collective && t.ranks == call.ranks && t.payload == payload;
    });
    CallTimes& times = like != out.timed_calls.end()
                           ? *like
                           : out.timed_calls.emplace_back(*call.collective, call.ranks, payload);
    times.seconds.push_back(event.seconds);
  }

  void expose(const TraceEvent& event, const std::vector<Span>& computing) {
    if (work_at(event) != Work::collective) return;
    call_of(event).work.exposed += uncovered({event.start, event.end()}, computing);
  }

  void finish(StepWork& out) {
    for (auto& [key, named] : names_) {
      named.name = trace_.names[static_cast<std::size_t>(key.second)];
      out.at(key.first).names.push_back(std::move(named));
    }
    for (WorkSum& sum : out.kinds) {
      std::ranges::stable_sort(sum.names, std::greater{}, &NamedWork::seconds);
    }
    // Calls of one kind and group are one sum, whatever kernel and payload they had.
    for (CallSum& call : calls_) {
      out.at(Work::collective).exposed += call.work.exposed;
      const auto like = std::ranges::find_if(out.calls, [&](const CallSum& c) {
        return c.collective == call.collective && c.ranks == call.ranks && c.group == call.group;
      });
      if (like == out.calls.end()) {
        out.calls.push_back(std::move(call));
      } else {
        like->work.add(call.work);
        like->payload += call.payload;
      }
    }
  }

  const Trace& trace_;
  std::vector<Work> kinds_;  // of names
  std::map<std::pair<Work, std::int32_t>, NamedWork> names_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> call_at_;  // name and note
  std::vector<CallSum> calls_;
  std::vector<std::int64_t> each_payload_;
};

}  // namespace

void WorkSum::add(const WorkSum& other) {
  count += other.count;
  seconds += other.seconds;
  exposed += other.exposed;
  added += other.added;
  names.insert(names.end(), other.names.begin(), other.names.end());
}

MeasuredStep measured_step(const Trace& trace) {
  TraceSteps steps = trace_steps(trace);
  std::ranges::stable_sort(steps.steps, {}, &TraceStep::seconds);
  const TraceStep& median = steps.steps[(steps.steps.size() - 1) / 2];
  MeasuredStep out = StepSum(trace).sum(median);
  out.name = median.name;
  out.steps = steps.steps.size();
  out.shortest = steps.steps.front().seconds;
  out.longest = steps.steps.back().seconds;
  out.devices = steps.devices;
  return out;
}

}  // namespace zeroplan
