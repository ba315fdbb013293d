// What is known of an exchange on one grid? Front door: GridExchanges::of.
#include "cost_model/remember/grid_exchanges.hpp"

#include <algorithm>

namespace zeroplan {

void ExchangeOfStages::resize(std::size_t contents) {
  states.resize(contents);
  for (auto& of_contents : loads) of_contents.resize(contents);
  updates.resize(contents);
}

std::size_t GridExchanges::place_of(const StageContent& content) {
  const auto found = std::ranges::find(contents_, content);
  const auto place = static_cast<std::size_t>(found - contents_.begin());
  if (found != contents_.end()) return place;
  contents_.push_back(content);
  for (const auto& known : known_) known->resize(contents_.size());
  return place;
}

ExchangeOfStages& GridExchanges::of(const Layout& layout) {
  Exchange exchange = exchange_of(layout);
  exchange.overlap = Overlap::as_set;
  const auto is_asked = [&](std::size_t i) {
    return i < exchanges_.size() && exchanges_[i] == exchange;
  };
  if (is_asked(last_)) return *known_[last_];
  // A search asks for the same ones in the same order again and again.
  const std::size_t next = last_ + 1 < exchanges_.size() ? last_ + 1 : 0;
  if (is_asked(next)) return *known_[last_ = next];
  const auto found = std::ranges::find(exchanges_, exchange);
  last_ = static_cast<std::size_t>(found - exchanges_.begin());
  if (found == exchanges_.end()) {
    exchanges_.push_back(exchange);
    known_.push_back(std::make_unique<ExchangeOfStages>());
    known_.back()->resize(contents_.size());
  }
  return *known_[last_];
}

void GridExchanges::forget() {
  exchanges_.clear();
  known_.clear();
}

}  // namespace zeroplan
