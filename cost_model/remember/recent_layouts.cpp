// What do neighbouring layouts share? Front door: RecentLayouts::find_or_make.
#include "cost_model/remember/recent_layouts.hpp"

#include <algorithm>
#include <functional>

namespace zeroplan {
namespace {

Recomputing recomputing_of(const Layout& l) {
  return {l.recompute, l.recompute_modules, l.recompute_layers, l.selective_rest};
}

Layout without_sharding_and_recompute(const Layout& own) {
  Layout layout = own;
  set_sharding(layout, {});
  layout.recompute = Recompute::none;
  layout.recompute_modules = 0;
  layout.recompute_layers = 0;
  layout.selective_rest = false;
  return layout;
}

// The place of an equal, or of the new one at the end.
template <class T, class Same>
std::size_t place_in(std::vector<T>& list, const T& wanted, Same&& same) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const T& known) { return same(known, wanted); });
  const auto place = static_cast<std::size_t>(found - list.begin());
  if (found == list.end()) list.push_back(wanted);
  return place;
}

// `list`: one of each kind that the pipeline's chunks were so far.
ChunkKinds kinds_of(const ModelSpec& model, const Stage& stage, std::vector<Stage>& list) {
  ChunkKinds kinds;
  const std::vector<Stage> chunks = chunks_of(stage);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::size_t in_list = place_in(
        list, chunks[i], [&](const Stage& a, const Stage& b) { return alike(model, a, b); });
    const std::size_t own = place_in(kinds.in_list, in_list, std::equal_to<>());
    kinds.of_chunks.push_back(static_cast<std::int32_t>(own));
    kinds.places.push_back(static_cast<std::int64_t>(4 * own) + 2 * begins_model(stage, i) +
                           ends_model(stage, i));
  }
  return kinds;
}

// Null where none is the one asked for.
template <class Pieces, class IsAsked>
Pieces* find_in(std::list<Pieces>& recent, IsAsked&& is_asked) {
  const auto found = std::find_if(recent.begin(), recent.end(), is_asked);
  return found == recent.end() ? nullptr : &*found;
}

// The oldest, where there are enough, in front: to be made anew.
template <class Pieces>
Pieces& next_in(std::list<Pieces>& recent) {
  if (recent.size() < RecentLayouts::kept) return recent.emplace_front();
  recent.splice(recent.begin(), recent, std::prev(recent.end()));
  return recent.front();
}

}  // namespace

void PassCache::renew(std::shared_ptr<StageCache> stages, Recomputing with) {
  of_stages = std::move(stages);
  recomputing = with;
  passes.clear();
  chunks.assign(list().chunks.size(), std::nullopt);
  highest.assign(list().firsts.size(), std::nullopt);
  kept.assign(list().firsts.size(), std::nullopt);
  times.clear();
  finished.clear();
}

PassCache& RecentLayouts::find_or_make(const Problem& problem) {
  if (!just_asked(problem)) {
    last_ = &find(problem);
    asked_ = problem.layout;
  }
  return *last_;
}

PassCache& RecentLayouts::find(const Problem& problem) {
  const std::shared_ptr<StageCache>& stages = stages_of(problem);
  const Recomputing recomputing = recomputing_of(problem.layout);
  const auto is_asked = [&](const PassCache& pieces) {
    return pieces.of_stages == stages && pieces.recomputing == recomputing;
  };
  if (PassCache* known = find_in(recent_, is_asked)) return *known;
  PassCache& pieces = next_in(recent_);
  pieces.renew(stages, recomputing);
  return pieces;
}

const std::shared_ptr<StageCache>& RecentLayouts::stages_of(const Problem& problem) {
  const Layout layout = without_sharding_and_recompute(problem.layout);
  const auto is_asked = [&](const std::shared_ptr<StageCache>& stages) {
    return stages->layout == layout && stages->training == problem.training;
  };
  if (const auto* known = find_in(recent_stages_, is_asked)) return *known;
  const StageList& list = list_of(problem);
  auto made = std::make_shared<StageCache>(
      StageCache{.layout = layout, .training = problem.training, .list = list});
  made->buffers.resize(list.firsts.size());
  made->profiles.resize(list.firsts.size());
  std::shared_ptr<ShardingCache>& shardings = shardings_[grid_key(problem)];
  if (shardings == nullptr) shardings = std::make_shared<ShardingCache>();
  made->shardings = shardings;
  for (const std::size_t first : list.firsts) {
    made->contents.push_back(shardings->place_of(content_of(problem.model, list.stages[first])));
  }
  return next_in(recent_stages_) = std::move(made);
}

const StageList& RecentLayouts::list_of(const Problem& problem) {
  const Layout& l = problem.layout;
  const auto [found, added] = lists_.try_emplace(
      {l.pp, l.vpp, static_cast<std::int64_t>(l.schedule), l.first_stage, l.last_stage});
  StageList& list = found->second;
  if (!added) return list;
  list.stages = stages(problem);
  // Under the others, whose ranks hold both early and late chunks, a later one may need more.
  const bool first_needs_most = !splits_backward(l.schedule);
  for (std::size_t i = 0; i < list.stages.size(); ++i) {
    const bool same =
        i > 0 && first_needs_most && alike(problem.model, list.stages[i - 1], list.stages[i]);
    if (!same) list.firsts.push_back(i);
    list.run_of.push_back(list.firsts.size() - 1);
    list.kinds.push_back(kinds_of(problem.model, list.stages[i], list.chunks));
  }
  return list;
}

void RecentLayouts::forget_shares() {
  for (PassCache& pieces : recent_) pieces.of_stages->shardings->forget();
  for (const auto& stages : recent_stages_) stages->shardings->forget();
  shardings_.clear();
}

}  // namespace zeroplan
