// What is known of an exchange on one grid? Front door: ShardingCache::find_or_make.
#include "cost_model/remember/sharding_cache.hpp"

#include <algorithm>

namespace zeroplan {

std::size_t ShardingCache::place_of(const StageContent& content) {
  const auto found = std::ranges::find(contents_, content);
  const auto place = static_cast<std::size_t>(found - contents_.begin());
  if (found != contents_.end()) return place;
  contents_.push_back(content);
  for (const auto& known : known_) known->states.resize(contents_.size());
  return place;
}

ShardedStages& ShardingCache::find_or_make(const Layout& layout) {
  Sharding sharding = sharding_of(layout);
  sharding.overlap = Overlap::as_set;
  const auto is_asked = [&](std::size_t i) {
    return i < shardings_.size() && shardings_[i] == sharding;
  };
  if (is_asked(last_)) return *known_[last_];
  // A search asks for the same ones in the same order again and again.
  const std::size_t next = last_ + 1 < shardings_.size() ? last_ + 1 : 0;
  if (is_asked(next)) return *known_[last_ = next];
  const auto found = std::ranges::find(shardings_, sharding);
  last_ = static_cast<std::size_t>(found - shardings_.begin());
  if (found == shardings_.end()) {
    shardings_.push_back(sharding);
    known_.push_back(std::make_unique<ShardedStages>());
    known_.back()->states.resize(contents_.size());
  }
  return *known_[last_];
}

void ShardingCache::forget() {
  shardings_.clear();
  known_.clear();
}

}  // namespace zeroplan
