#pragma once
// Where the seconds of a step go on one rank, by its device's own clock.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_model/question/collective.hpp"

namespace zeroplan::engine {

/// When a device had done what it was told until then.
class Instant {
 public:
  virtual ~Instant() = default;
  /// Seconds since an earlier instant of the same device. Waits for both.
  virtual double since(const Instant& earlier) const = 0;
};

/// An instant of a device that has done its work when a call returns.
class HostInstant final : public Instant {
 public:
  double since(const Instant& earlier) const override {
    return std::chrono::duration<double>(at_ - static_cast<const HostInstant&>(earlier).at_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

/// Calls of one kind: their own seconds one after another, and those that the device waited.
struct CallSeconds {
  std::int64_t calls = 0;
  double seconds = 0;
  double exposed = 0;
};
/// A kind of call: group, collective, and payload as collective.hpp has it.
using CallKind = std::tuple<std::string_view, Collective, std::int64_t>;

/// Seconds of one rank's step. Of messages, `calls` are those it sent; it also waits for those it
/// receives.
struct StepSeconds {
  double step = 0;
  double products = 0;  // matrix products
  double flops = 0;     // of them
  std::int64_t product_calls = 0;
  std::map<CallKind, CallSeconds> calls;
};

class Stopwatch {
 public:
  using Point = std::shared_ptr<const Instant>;
  struct Interval {
    Point begin, end;
    double seconds() const { return begin && end ? end->since(*begin) : 0; }
  };

  explicit Stopwatch(std::function<Point()> now) : now_(std::move(now)) {}

  Point now() const { return now_(); }
  template <class Work>
  Interval timed(Work&& work) const {
    Interval interval{now(), {}};
    std::forward<Work>(work)();
    interval.end = now();
    return interval;
  }

  void add_product(double flops, Interval interval);
  /// A call for which the device waited so long.
  void add_call(const CallKind& kind, bool counts, Interval waited);
  /// A call that travels by itself, for which the device waited so long. More of it may be waited
  /// for later.
  void add_travelling(const CallKind& kind, Interval waited, Interval travelled);
  void add_wait(const CallKind& kind, Interval waited);

  /// Everything since the last lap began, which it ends.
  StepSeconds lap();

 private:
  struct TimedCall {
    CallKind kind;
    std::int64_t calls;
    Interval waited, travelled;
  };

  std::function<Point()> now_;
  Point began_;
  double flops_ = 0;
  std::vector<Interval> products_;
  std::vector<TimedCall> calls_;
};

}  // namespace zeroplan::engine
