#pragma once
// How the stages of layouts with one grid exchange their states: the same for every schedule on it,
// and for every split of the layers whose stages hold as much.

#include <memory>
#include <vector>

#include "cost_model/state_share.hpp"

namespace zeroplan {

struct KnownExchange {
  Exchange exchange;                  // without overlap
  std::vector<UpdateShare*> updates;  // by the place of a stage's content; null before asked for
};

/// What exchanges depend on beside themselves and the stages.
inline UpdateKey grid_key(const Problem& problem) {
  return update_key(problem, {}, {});
}

class GridExchanges {
 public:
  explicit GridExchanges(const UpdateKey& grid) : grid_(grid) {}
  const UpdateKey& grid() const { return grid_; }

  /// The place of what a stage holds.
  std::size_t place_of(const StageContent& content);

  /// The exchange of this layout. Valid until they are forgotten.
  KnownExchange& of(const Layout& layout);

  void forget() { known_.clear(); }

 private:
  UpdateKey grid_;
  std::vector<StageContent> contents_;
  std::vector<std::unique_ptr<KnownExchange>> known_;
  std::size_t last_ = 0;  // asked for
};

}  // namespace zeroplan
