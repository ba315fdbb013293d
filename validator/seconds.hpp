#pragma once
// Seconds beside bytes: what a step took, beside what is predicted of it.

#include "validator/prediction.hpp"

namespace zeroplan::engine {

/// A step of the rank that took longest, and what is predicted of it on the GPUs of the problem.
struct ComparedSeconds {
  Place place;
  StepSeconds predicted, measured;
  double model_flops = 0;  // of the whole step
  double peak_flops = 0;   // of all GPUs together, a second

  double mfu(const StepSeconds& of) const {
    return of.step > 0 && peak_flops > 0 ? model_flops / of.step / peak_flops : 0;
  }
  /// The part of the seconds of calls that the device did not wait for; 0 without calls.
  static double hidden(const StepSeconds& of);
  /// How fast products were beside what is expected. Below `healthy`, by more than the law's mean
  /// error on A100, H100, H200 and B200 may be (tests/cost_model/kernel/measured_gemm_test.cpp),
  /// the GPU is slow or throttled.
  double product_speed() const {
    return measured.products > 0 ? predicted.products / measured.products : 0;
  }
  static constexpr double healthy = 0.85;
  /// Whether products are long enough, ten times what it takes to start one, to tell.
  bool tells_health() const {
    constexpr double shortest = 50e-6;
    return predicted.products >= shortest * static_cast<double>(predicted.product_calls);
  }
};

/// Seconds of a run that was timed, beside those predicted. Assumes a legal problem of runtime
/// zeroplan.
ComparedSeconds compared_seconds(const Problem& problem,
                                 const Evaluator& evaluator,
                                 const RunReport& report);

}  // namespace zeroplan::engine
