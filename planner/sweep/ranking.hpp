#pragma once
// Which of two plans is better, and the best ones of many in bounded memory.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "cost_model/question/layout.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// What the best plan has least of: seconds a token, device bytes, GPUs, GPU-seconds a token. The
/// last, which no option asks for: what makes it less simple, then device bytes.
enum class Objective { step, headroom, gpus, cost, simplicity };
template <>
struct Spellings<Objective> {
  static constexpr std::array<std::string_view, 4> value{"step", "headroom", "gpus", "cost"};
};

/// What a search knows of a layout that fits.
struct Scored {
  Layout layout;
  std::int64_t gpus = 0;
  double seconds = 0;            // of a step
  double seconds_per_token = 0;  // plans may differ in their global batch
  Bytes device;                  // of the worst stage
  std::int64_t complexity = 0;   // its Simplicity's rank, where the search is for the simplest
};

/// The number that the objective makes smallest. Never falls when an argument rises, so that floors
/// of the arguments give its floor.
double objective_value(Objective objective,
                       std::int64_t gpus,
                       double seconds_per_token,
                       Bytes device,
                       std::int64_t complexity);
inline double objective_value(Objective objective, const Scored& s) {
  return objective_value(objective, s.gpus, s.seconds_per_token, s.device, s.complexity);
}

/// A total order: by objective, then time, then memory, then the simpler layout. Layouts that are
/// neither before nor after each other are the same.
bool better(Objective objective, const Scored& a, const Scored& b);

/// Whether two plans are one layout on as many GPUs.
bool same_plan(const Scored& a, const Scored& b);

/// Whether two plans are of one shape, so that they differ in flags only: the grid, the stages and
/// the GPUs are the same.
bool same_shape(const Scored& a, const Scored& b);

/// Whether two plans are what most people would call one idea: tp, pp, ep and the GPUs are the
/// same.
bool same_family(const Scored& a, const Scored& b);

/// Which plans are akin, so that the best of them stands for all.
enum class Kin { shape, family };

/// The best plan of each of the `size` best shapes, or families. What it holds depends on what was
/// added, not on the order of adding.
class BestShapes {
 public:
  BestShapes(Objective objective, std::size_t size, Kin kin = Kin::shape)
      : objective_(objective), size_(size), kin_(kin) {}

  void add(const Scored& plan);

  /// Whether adding the plan would change anything.
  bool takes(const Scored& plan) const;

  /// Whether this very plan is among the best.
  bool holds(const Scored& plan) const;

  /// What a plan must not be above to get in; infinite while there is room.
  double threshold() const;
  const std::vector<Scored>& plans() const { return plans_; }  // best first

 private:
  bool akin(const Scored& a, const Scored& b) const {
    return kin_ == Kin::shape ? same_shape(a, b) : same_family(a, b);
  }

  Objective objective_;
  std::size_t size_;
  Kin kin_;
  std::vector<Scored> plans_;
};

/// The plans that no other beats in both seconds a token and device bytes. Of equal ones the better
/// by objective `step`.
class ParetoFront {
 public:
  void add(const Scored& plan);
  void add(const std::vector<Scored>& plans) {
    for (const Scored& plan : plans) add(plan);
  }

  /// Whether no plan with at least this time and this memory can enter.
  bool beats(double seconds_per_token, Bytes device) const;
  const std::vector<Scored>& plans() const { return plans_; }  // fastest, and largest, first

 private:
  std::vector<Scored> plans_;
};

}  // namespace zeroplan
