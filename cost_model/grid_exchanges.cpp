// What is known of an exchange on one grid? Front door: GridExchanges::of.
#include "cost_model/grid_exchanges.hpp"

#include <algorithm>

namespace zeroplan {

std::size_t GridExchanges::place_of(const StageContent& content) {
  const auto found = std::ranges::find(contents_, content);
  const auto place = static_cast<std::size_t>(found - contents_.begin());
  if (found != contents_.end()) return place;
  contents_.push_back(content);
  for (const auto& known : known_) known->updates.push_back(nullptr);
  return place;
}

KnownExchange& GridExchanges::of(const Layout& layout) {
  Exchange exchange = exchange_of(layout);
  exchange.overlap = Overlap::as_set;
  const auto is_asked = [&](std::size_t i) {
    return i < known_.size() && known_[i]->exchange == exchange;
  };
  if (is_asked(last_)) return *known_[last_];
  // A search asks for the same ones in the same order again and again.
  const std::size_t next = last_ + 1 < known_.size() ? last_ + 1 : 0;
  if (is_asked(next)) return *known_[last_ = next];
  for (last_ = 0; last_ < known_.size(); ++last_) {
    if (is_asked(last_)) return *known_[last_];
  }
  known_.push_back(std::make_unique<KnownExchange>(KnownExchange{.exchange = exchange}));
  known_.back()->updates.resize(contents_.size());
  return *known_.back();
}

}  // namespace zeroplan
