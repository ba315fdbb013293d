#pragma once
// Which of two plans is better, and the best ones of many in bounded memory.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "cost_model/question/layout.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// What the best plan has least of: seconds a token, device bytes, GPUs, GPU-seconds a token.
enum class Objective { step, headroom, gpus, cost };
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
};

/// The number that the objective makes smallest. Never falls when an argument rises, so that floors
/// of the arguments give its floor.
double objective_value(Objective objective,
                       std::int64_t gpus,
                       double seconds_per_token,
                       Bytes device);

/// A total order: by objective, then time, then memory, then the simpler layout. Layouts that are
/// neither before nor after each other are the same.
bool better(Objective objective, const Scored& a, const Scored& b);

/// Whether both are one layout on as many GPUs.
bool same_plan(const Scored& a, const Scored& b);

/// Plans of one shape differ in flags only: the grid, the stages and the GPUs are the same.
bool same_shape(const Scored& a, const Scored& b);

/// The best plan of each of the `size` best shapes. What it holds depends on what was added, not on
/// the order of adding.
class BestShapes {
 public:
  BestShapes(Objective objective, std::size_t size) : objective_(objective), size_(size) {}

  void add(const Scored& plan);

  /// Whether adding the plan would change anything.
  bool takes(const Scored& plan) const;

  /// Whether this very plan is among them.
  bool holds(const Scored& plan) const;

  /// What a plan must not be above to get in; infinite while there is room.
  double threshold() const;
  const std::vector<Scored>& plans() const { return plans_; }  // best first

 private:
  Objective objective_;
  std::size_t size_;
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
