// How fast was this cluster, by a profiled step? Front door: calibrated.
#include "validator/overlay/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/answer/step_time.hpp"
#include "validator/overlay/calibrated_collectives.hpp"
#include "validator/overlay/predicted_step.hpp"

namespace zeroplan {
namespace {

constexpr double enough = 0.05;                // of the step
constexpr double slowest = 0.02, fastest = 4;  // beyond, another cause is likelier than speed

double seconds_of(const Overlay& overlay, const std::vector<Work>& works) {
  double sum = 0;
  for (const OverlayRow& row : overlay.rows) {
    const bool is_of = std::ranges::find(works, row.work) != works.end();
    if (is_of && row.measured) sum += row.measured->seconds;
  }
  return sum;
}

// Finds a speed by which the prediction of a kind takes what was measured.
class Speed {
 public:
  Speed(std::vector<Work> works, double GpuSpec::*of, std::string_view name, const Overlay& overlay)
      : works_(std::move(works)), of_(of), name_(name), seconds_(seconds_of(overlay, works_)) {
    if (seconds_ < enough * overlay.measured) {
      why_not_ = fmt::format("{} take {:.1f} % of the step, and 5 % are needed", name_,
                             100 * seconds_ / overlay.measured);
    }
  }

  // One round, with what is predicted at the speeds so far.
  void correct(const StepWork& predicted, GpuSpec& gpu) {
    if (!why_not_.empty()) return;
    double expected = 0;
    for (const Work work : works_) expected += predicted.at(work).seconds;
    if (expected <= 0) {
      why_not_ = fmt::format("no {} are predicted", name_);
      return;
    }
    gpu.*of_ = std::clamp(gpu.*of_ * expected / seconds_, slowest, fastest);
  }

  void tell(const GpuSpec& before, GpuSpec& gpu, Calibration& out) {
    if (why_not_.empty() && (gpu.*of_ <= slowest || gpu.*of_ >= fastest)) {
      why_not_ = fmt::format("{} would have to run at {:.2g} of what is expected: no GPU's speed",
                             name_, gpu.*of_);
    }
    if (why_not_.empty()) {
      out.taken.push_back(fmt::format("{} run at {:.3f} of what is expected of {}, before {:.3f}",
                                      name_, gpu.*of_, gpu.name, before.*of_));
    } else {
      gpu.*of_ = before.*of_;
      out.left.push_back(why_not_);
    }
  }

 private:
  std::vector<Work> works_;
  double GpuSpec::*of_;
  std::string_view name_;
  double seconds_;
  std::string why_not_;
};

StepWork predicted_on(const Problem& problem, std::int64_t stage, double* seconds) {
  const Evaluator evaluator(problem);
  const StepTime time = step_time(problem, evaluator);
  if (seconds != nullptr) *seconds = time.seconds;
  return predicted_step(problem, evaluator, time, stage);
}

void take_copies(const MeasuredStep& measured, Calibration& out) {
  constexpr std::int64_t large = 1 << 20, all = 64 << 20;  // bytes; smaller ones tell of latency
  double slower = 0;
  for (const bool to_device : {true, false}) {
    std::int64_t bytes = 0;
    double seconds = 0;
    for (const CopyRate& copy : measured.copies) {
      if (copy.to_device != to_device || copy.bytes < large) continue;
      bytes += copy.bytes;
      seconds += copy.seconds;
    }
    if (bytes < all) continue;
    const double rate = static_cast<double>(bytes) / seconds;
    slower = slower > 0 ? std::min(slower, rate) : rate;
  }
  if (slower > 0) {
    out.cluster.host_link_bandwidth = slower;
    out.taken.push_back(
        fmt::format("copies to and from the host reach {:.1f} GB/s", slower / giga));
  } else {
    out.left.emplace_back("less than 64 MiB are copied to or from the host in large pieces");
  }
}

}  // namespace

Calibration calibrated(const Problem& problem,
                       const MeasuredStep& measured,
                       const Overlay& overlay,
                       std::int64_t stage) {
  Problem changed = problem;
  GpuSpec& gpu = changed.cluster.gpu;
  Speed memory({Work::memory_bound}, &GpuSpec::memory_speed, "memory-bound kernels", overlay);
  Speed products({Work::products, Work::attention}, &GpuSpec::product_speed,
                 "products and attention", overlay);
  constexpr int rounds = 6;  // short products wait for memory: each speed is in both
  for (int i = 0; i < rounds; ++i) {
    const StepWork predicted = predicted_on(changed, stage, nullptr);
    memory.correct(predicted, gpu);
    products.correct(predicted, gpu);
  }
  Calibration out;
  products.tell(problem.cluster.gpu, gpu, out);
  memory.tell(problem.cluster.gpu, gpu, out);
  out.cluster = changed.cluster;
  take_collectives(problem, measured, overlay, out);
  take_copies(measured, out);
  changed.cluster = out.cluster;
  predicted_on(changed, stage, &out.seconds);
  return out;
}

}  // namespace zeroplan
