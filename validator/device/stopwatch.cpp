// Where did the seconds of a step go? Front door: Stopwatch.
#include "validator/device/stopwatch.hpp"

namespace zeroplan::engine {

void Stopwatch::add_product(double flops, Interval interval) {
  flops_ += flops;
  products_.push_back(std::move(interval));
}

void Stopwatch::add_call(const CallKind& kind, bool counts, Interval waited) {
  calls_.push_back({kind, counts ? 1 : 0, waited, waited});
}

void Stopwatch::add_travelling(const CallKind& kind, Interval waited, Interval travelled) {
  calls_.push_back({kind, 1, std::move(waited), std::move(travelled)});
}

void Stopwatch::add_wait(const CallKind& kind, Interval waited) {
  calls_.push_back({kind, 0, std::move(waited), {}});
}

StepSeconds Stopwatch::lap() {
  const Interval step{std::exchange(began_, now()), began_};
  StepSeconds sums{.step = step.seconds(), .flops = std::exchange(flops_, 0)};
  for (const Interval& product : std::exchange(products_, {})) {
    sums.products += product.seconds();
    ++sums.product_calls;
  }
  for (const TimedCall& call : std::exchange(calls_, {})) {
    CallSeconds& of_kind = sums.calls[call.kind];
    of_kind.calls += call.calls;
    of_kind.exposed += call.waited.seconds();
    of_kind.seconds += call.travelled.seconds();
  }
  return sums;
}

}  // namespace zeroplan::engine
