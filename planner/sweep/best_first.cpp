// Which shapes have to be opened? Front door: BestFirst.
#include "planner/sweep/best_first.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "cost_model/question/numbers.hpp"

namespace zeroplan {
namespace {

// What is looked to has no plan of that value either.
double just_below(double value) {
  return value < no_threshold ? std::nextafter(value, -no_threshold) : value;
}

Numbers<7> kin_key(Kin kin, const Shape& shape) {
  const Layout l = shape.layout();
  if (kin == Kin::family) return {shape.gpus, l.tp, l.pp, l.ep, 0, 0, 0};
  return {shape.gpus, l.tp, l.pp, l.ep, l.vpp, l.cp, l.etp};
}

}  // namespace

void BestFirst::Horizon::set(double value) {
  constexpr double first_part = 0.005;
  if (refused == no_threshold) *this = {value, first_part};
}

void BestFirst::Horizon::widen() {
  constexpr double last_part = 0.5;
  part *= 4;
  if (part > last_part) *this = {};
}

BestFirst::BestFirst(Crew& crew, const std::vector<Shape*>& shapes, const Goal& goal)
    : crew_(crew), goal_(goal), best_(goal.objective, goal.plans, goal.kin) {
  std::unordered_map<Numbers<7>, std::size_t, NumbersHash> kins;
  items_.reserve(shapes.size());
  for (Shape* shape : shapes) {
    const double bound =
        objective_value(goal.objective, shape->gpus, shape->bound.seconds_per_token,
                        shape->bound.device, shape->bound.complexity);
    const std::size_t kin = kins.try_emplace(kin_key(goal.kin, *shape), kins.size()).first->second;
    items_.push_back({.shape = shape, .bound = bound, .kin = kin});
  }
  kins_.resize(kins.size());
  if (goal.exhaustive) return;
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.bound < b.bound; });
}

void BestFirst::run(const Watch& watch) {
  do {
    look(watch);
  } while (widen() || !confirm());
}

// The value of the objective that a plan of any kin must not be above.
double BestFirst::cutoff() const {
  return std::min({best_.threshold(), goal_.most, horizon_.value()});
}

// `of_all`: cutoff(), which many are asked about with.
double BestFirst::cutoff_of(const Item& item, double of_all) const {
  if (goal_.exhaustive) return no_threshold;
  const KinState& kin = kins_[item.kin];
  return std::min({of_all, kin.best, kin.horizon.value()});
}

// What is looked at once more is looked at as far as others that may be refused reach.
double BestFirst::reach_of(const Item& item) const {
  double reach = cutoff_of(item, cutoff());
  for (const Horizon& horizon : {kins_[item.kin].horizon, horizon_}) {
    if (horizon.refused < no_threshold) reach = std::max(reach, horizon.value());
  }
  return std::min(reach, goal_.most);
}

bool BestFirst::is_open(const Item& item, double of_all) const {
  if (is_too_large(item)) return false;
  const auto is_below = [&](double cutoff) {
    return item.bound <= cutoff && item.looked_to < cutoff;
  };
  const bool may_be = !item.best && (goal_.exhaustive || is_below(of_all));
  if (may_be && is_below(cutoff_of(item, of_all))) return true;
  return goal_.front && !item.outcome &&
         !front_.beats(item.shape->bound.seconds_per_token, item.shape->bound.device);
}

// The seconds a token that what was not timed of a shape takes at least: of an opened one that is
// above the cutoff that it was looked at with, or above its best.
std::optional<double> BestFirst::untimed_from(const Item& item) const {
  const double floor = item.shape->bound.seconds_per_token;
  if (item.outcome ? !item.outcome->untimed : is_too_large(item)) return std::nullopt;
  if (!item.outcome) return floor;
  if (goal_.objective != Objective::step) return floor;
  return std::max(floor, std::min(item.looked_to, item.outcome->fastest));
}

void BestFirst::look(const Watch& watch) {
  order_.clear();
  order_.reserve(items_.size());
  for (Item& item : items_) order_.push_back(&item);
  next_ = 0;
  width_ = 1;
  while (!stopped_) {
    const std::vector<Item*> wave = next_wave();
    if (wave.empty()) return;
    open(wave);
    if (watch) stopped_ = !watch(progress());
  }
}

// The next shapes that may hold something better. The first waves are short: nothing bounds them.
// Kin bound each other, so few of them are opened at once.
std::vector<BestFirst::Item*> BestFirst::next_wave() {
  constexpr std::size_t widest = 64;
  constexpr int most_kin = 2;
  width_ = goal_.exhaustive ? widest : std::min(widest, 2 * width_);
  const double of_all = cutoff();
  const double highest = goal_.front || goal_.exhaustive ? no_threshold : of_all;
  std::vector<Item*> wave, left;
  for (; next_ < order_.size() && wave.size() < width_; ++next_) {
    Item& item = *order_[next_];
    if (item.bound > highest) break;
    int& kin = kins_[item.kin].in_wave;
    const bool has_kin = kin == most_kin && !goal_.exhaustive;
    if (!has_kin && !is_open(item, of_all)) continue;  // for good: cutoffs fall while we look
    left.push_back(&item);
    if (has_kin) continue;
    ++kin;
    wave.push_back(&item);
  }
  for (const Item* item : wave) kins_[item->kin].in_wave = 0;
  // The next wave meets them first, and drops what has no more to give.
  next_ -= left.size();
  std::ranges::copy(left, order_.begin() + static_cast<std::ptrdiff_t>(next_));
  return wave;
}

void BestFirst::open(const std::vector<Item*>& wave) {
  std::vector<Cutoff> cutoffs;
  for (const Item* item : wave) {
    cutoffs.push_back({.objective = goal_.objective,
                       .exhaustive = goal_.exhaustive,
                       .front = goal_.front ? &front_ : nullptr,
                       .threshold = reach_of(*item),
                       .slowest = goal_.slowest,
                       .none_fits = none_fits()});
  }
  std::vector<ShapeResult> outcome(wave.size());
  crew_.in_parallel(
      0, wave.size(),
      [&](ShapeSearch& worker, std::size_t i) {
        const Shape& shape = *wave[i]->shape;
        outcome[i] = worker.open(shape.space, shape.layout(), cutoffs[i], shape.bound.device,
                                 shape.refused());
      },
      [&](std::size_t i) { return wave[i]->shape->home(); });
  for (std::size_t i = 0; i < wave.size(); ++i) {
    keep(*wave[i], cutoffs[i].threshold, std::move(outcome[i]));
  }
}

void BestFirst::keep(Item& item, double looked_to, ShapeResult outcome) {
  evaluations_ += outcome.evaluated;
  front_.add(outcome.front);
  add_least(item, outcome.least);
  item.best = outcome.best ? std::make_unique<Scored>(*outcome.best) : nullptr;
  item.looked_to = item.best ? looked_to : std::max(looked_to, just_below(outcome.beyond));
  if (item.best) add_best(item);
  const bool wider = !item.outcome || item.outcome->evaluated < outcome.evaluated;
  if (!wider) return;
  item.outcome = std::make_unique<ShapeCounts>(
      ShapeCounts{.evaluated = outcome.evaluated,
                  .feasible = outcome.feasible,
                  .untimed = outcome.untimed,
                  .least_bound = outcome.least_bound,
                  .rejected = {outcome.rejected.begin(), outcome.rejected.end()}});
  if (!outcome.front.empty()) item.outcome->fastest = outcome.front.front().seconds_per_token;
}

// Keeps the plan that needs fewest bytes and does not fit, of equal ones that of the first item.
void BestFirst::add_least(const Item& item, const std::optional<Scored>& least) {
  if (!least) return;
  const auto place = [](const Scored& plan, const Item* of) { return std::pair(plan.device, of); };
  if (least_ && !(place(*least, &item) < place(*least_, item_of_least_))) return;
  least_ = least;
  item_of_least_ = &item;
}

void BestFirst::add_best(const Item& item) {
  best_.add(*item.best);
  double& best = kins_[item.kin].best;
  best = std::min(best, value_of(*item.best));
}

// Whether there is more to look at beyond a horizon, where nothing better was found before it.
bool BestFirst::widen() {
  if (stopped_) return false;
  bool wider = false;
  const auto widen_below = [&](Horizon& horizon, double value) {
    if (!(horizon.value() < value)) return;
    horizon.widen();
    wider = true;
  };
  for (KinState& kin : kins_) widen_below(kin.horizon, std::min(kin.best, cutoff()));
  widen_below(horizon_, std::min(best_.threshold(), goal_.most));
  return wider;
}

BestFirst::Item& BestFirst::found(const Scored& plan) {
  return *std::find_if(items_.begin(), items_.end(),
                       [&](const Item& item) { return item.best && same_plan(*item.best, plan); });
}

// Whether all of the best fit with the allocator replayed, which is dear: nothing else is played.
bool BestFirst::confirm() {
  std::vector<std::pair<std::size_t, Scored>> unknown;
  for (const Scored& plan : best_.plans()) {
    if (crew_.played(plan) == nullptr) unknown.emplace_back(found(plan).shape->space, plan);
  }
  crew_.play(unknown);
  std::vector<Scored> refused;
  for (const Scored& plan : best_.plans()) {
    if (!crew_.played(plan)->estimate) refused.push_back(plan);
  }
  if (refused.empty()) return true;
  const double threshold = best_.threshold();
  std::vector<Item*> again;
  for (const Scored& plan : refused) again.push_back(&refuse(plan));
  best_ = BestShapes(goal_.objective, goal_.plans, goal_.kin);
  for (KinState& kin : kins_) kin.best = no_threshold;
  for (const Item& item : items_) {
    if (item.best) add_best(item);
  }
  if (threshold < best_.threshold()) horizon_.set(threshold);
  if (!stopped_) open(again);  // their next plans bound the others
  return false;
}

BestFirst::Item& BestFirst::refuse(const Scored& plan) {
  Item& item = found(plan);
  kins_[item.kin].horizon.set(value_of(plan));
  item.shape->refuse(plan);
  item.best.reset();
  item.looked_to = -no_threshold;
  return item;
}

Progress BestFirst::progress() const {
  Progress p{.evaluated = evaluations_,
             .share_done = static_cast<double>(next_) / static_cast<double>(items_.size())};
  if (!best_.plans().empty()) p.best = best_.plans().front();
  return p;
}

}  // namespace zeroplan
