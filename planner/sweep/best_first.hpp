#pragma once
// The best plans of some shapes, opening as few of them as it can: best-first branch and bound.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost_model/question/numbers.hpp"
#include "planner/sweep/crew.hpp"
#include "planner/sweep/watch.hpp"

namespace zeroplan {

/// One shape of a space, and which of its plans do not fit when played. Small, since a search holds
/// hundreds of thousands.
struct Shape {
  Shape(const Layout& l, std::size_t of_space, std::int64_t all_gpus, std::int64_t all_points)
      : degrees{static_cast<std::int32_t>(l.micro_batch), static_cast<std::int32_t>(l.tp),
                static_cast<std::int32_t>(l.cp),          static_cast<std::int32_t>(l.pp),
                static_cast<std::int32_t>(l.ep),          static_cast<std::int32_t>(l.etp),
                static_cast<std::int32_t>(l.vpp)},
        space(static_cast<std::uint32_t>(of_space)),
        gpus(all_gpus),
        points(all_points) {}

  /// The layout of the shape, with all fields that a shape leaves open at their defaults.
  Layout layout() const {
    Layout l;
    l.micro_batch = degrees[0];
    l.tp = degrees[1];
    l.cp = degrees[2];
    l.pp = degrees[3];
    l.ep = degrees[4];
    l.etp = degrees[5];
    l.vpp = degrees[6];
    return l;
  }

  std::array<std::int32_t, shape_depth> degrees;  // in choice_order
  std::uint32_t space;
  std::int64_t gpus;
  std::int64_t points;
  ShapeBound bound = {};
  // Plans of the shape that do not fit when played: of most shapes none.
  std::unique_ptr<std::vector<Scored>> refused_plans = {};

  /// A number that shapes share whose blocks are alike: who knows some of them had better look at
  /// all.
  std::size_t home() const {
    const auto& [micro_batch, tp, cp, pp, ep, etp, vpp] = degrees;
    return NumbersHash{}(Numbers<5>{micro_batch, tp, cp, ep, etp});
  }

  std::span<const Scored> refused() const {
    return refused_plans ? std::span<const Scored>(*refused_plans) : std::span<const Scored>();
  }
  void refuse(const Scored& plan) {
    if (!refused_plans) refused_plans = std::make_unique<std::vector<Scored>>();
    refused_plans->push_back(plan);
  }
};

/// What the counts of a search need of an opened shape. Small, since a search holds many.
struct ShapeCounts {
  std::int64_t evaluated = 0;
  std::int64_t feasible = 0;
  double fastest = no_threshold;     // seconds a token of what was timed
  bool untimed = false;              // see ShapeResult
  std::optional<Bytes> least_bound;  // see ShapeResult
  std::vector<Rejections::value_type> rejected;
};

/// What is looked for.
struct Goal {
  Objective objective = Objective::step;
  std::size_t plans = 1;
  Kin kin = Kin::shape;           // each is the best of its own
  double slowest = no_threshold;  // seconds a token that a plan may take
  double most = no_threshold;     // value of the objective that it may have
  Bytes capacity = {};            // while nothing fits, a shape of a higher floor stays unopened
  bool may_be_none = false;       // whether `capacity` counts: else all is opened until one fits
  Bytes most_fitting = {};        // once something fits, a shape of a higher floor stays unopened
  bool front = false;             // the whole Pareto front too
  bool exhaustive = false;        // every layout is evaluated
};

/// Opens shapes in order of their floors, in waves whose cutoffs do not move, so that what is found
/// and counted is the same for any number of threads. Unopened stays a shape whose floor is above
/// the best of its kin, or above the last of the plans that are looked for. These are played; where
/// one is refused, cutoffs rise and what they left out is looked at.
class BestFirst {
 public:
  /// The crew and the shapes must outlive it.
  BestFirst(Crew& crew, const std::vector<Shape*>& shapes, const Goal& goal);

  /// Looks for the plans until the watch says stop.
  void run(const Watch& watch);
  /// Leaves all shapes unopened, when called before `run`.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  /// The plans that were looked for, the best first, all played.
  const std::vector<Scored>& plans() const { return best_.plans(); }
  const ParetoFront& front() const { return front_; }

  /// Evaluations of memory, also of what was evaluated before.
  std::int64_t evaluations() const { return evaluations_; }

  /// What needs fewest bytes of all that was evaluated and does not fit; no time.
  const std::optional<Scored>& least() const { return least_; }

  /// Calls visit(shape, opened, why, untimed_from) for each shape: what the widest look at it gave,
  /// else why there was none; and the seconds a token that what was not timed of it, where some
  /// could have been, takes at least.
  template <class Visit>
  void each_shape(const Visit& visit) const {
    for (const Item& item : items_) {
      const bool missed = stopped_ && is_open(item, cutoff());
      visit(*item.shape, item.outcome.get(),
            is_too_large(item) ? bound_too_large
            : missed           ? not_looked_at
                               : bound_too_slow,
            untimed_from(item));
    }
  }

 private:
  struct Item {
    Shape* shape = nullptr;
    double bound = 0;                           // of the objective
    std::size_t kin = 0;                        // place of the item's kin among all
    double looked_to = -no_threshold;           // but for `best` no plan has as little
    std::unique_ptr<Scored> best = {};          // not refused
    std::unique_ptr<ShapeCounts> outcome = {};  // by the widest look
  };

  // Where to look first for what takes the place of a refused plan.
  struct Horizon {
    double refused = no_threshold;
    double part = 0;  // of `refused`, beyond it
    double value() const { return (1 + part) * refused; }
    void set(double value);
    void widen();
  };

  struct KinState {
    double best = no_threshold;
    Horizon horizon;
    int in_wave = 0;  // of its shapes, while a wave is put together
  };

  double value_of(const Scored& plan) const { return objective_value(goal_.objective, plan); }
  double cutoff() const;
  double cutoff_of(const Item& item, double of_all) const;
  double reach_of(const Item& item) const;
  // Whether nothing is known to fit so far: what is closest to fitting may be asked for.
  bool none_fits() const { return best_.plans().empty() && goal_.most == no_threshold; }
  bool is_too_large(const Item& item) const {
    const Bytes most = none_fits() ? goal_.capacity : goal_.most_fitting;
    return item.shape->bound.device > most && !goal_.exhaustive &&
           (goal_.may_be_none || !none_fits());
  }
  bool is_open(const Item& item, double of_all) const;
  std::optional<double> untimed_from(const Item& item) const;
  std::vector<Item*> next_wave();
  void open(const std::vector<Item*>& wave);
  void keep(Item& item, double looked_to, ShapeResult outcome);
  void add_best(const Item& item);
  void add_least(const Item& item, const std::optional<Scored>& least);
  void look(const Watch& watch);
  bool widen();
  bool confirm();
  Item& refuse(const Scored& plan);
  Item& found(const Scored& plan);
  Progress progress() const;

  Crew& crew_;
  Goal goal_;
  std::vector<Item> items_;  // in the order of their bounds
  std::vector<KinState> kins_;
  BestShapes best_;
  Horizon horizon_;  // of all kins
  // While we look: the items that may be open begin at next_, in the order of their bounds.
  std::vector<Item*> order_;
  std::size_t next_ = 0;
  std::size_t width_ = 1;  // of a wave
  ParetoFront front_;
  std::optional<Scored> least_;
  const Item* item_of_least_ = nullptr;
  std::int64_t evaluations_ = 0;
  bool stopped_ = false;
};

}  // namespace zeroplan
