// What do neighbouring layouts share? Front door: RecentPieces::of.
#include "cost_model/shared_pieces.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

Layout without_flags(Layout layout) {
  layout.zero = ZeroStage::none;
  layout.hsdp = 0;
  layout.offload = Offload::none;
  layout.overlap = Overlap::as_set;
  return layout;
}

}  // namespace

std::vector<StateShare*>& SharedPieces::column(const Layout& l) {
  // The last one is asked about again and again.
  for (auto c = columns.rbegin(); c != columns.rend(); ++c) {
    if (c->zero == l.zero && c->hsdp == l.hsdp && c->offload == l.offload) return c->shares;
  }
  columns.push_back({l.zero, l.hsdp, l.offload, std::vector<StateShare*>(stages.size())});
  return columns.back().shares;
}

SharedPieces& RecentPieces::of(const Problem& problem) {
  const bool again =
      last_ != nullptr && asked_ == problem.layout && last_->training == problem.training;
  if (!again) {
    last_ = &find(problem);
    asked_ = problem.layout;
  }
  return *last_;
}

SharedPieces& RecentPieces::find(const Problem& problem) {
  const Layout layout = without_flags(problem.layout);
  const auto found = std::find_if(recent_.begin(), recent_.end(), [&](const SharedPieces& pieces) {
    return pieces.layout == layout && pieces.training == problem.training;
  });
  if (found != recent_.end()) return *found;
  if (recent_.size() == kept) recent_.pop_back();
  SharedPieces pieces{.layout = layout, .training = problem.training, .stages = stages(problem)};
  for (std::size_t i = 0; i < pieces.stages.size(); ++i) {
    const bool same = i > 0 && alike(problem.model, pieces.stages[i - 1], pieces.stages[i]);
    pieces.first_alike.push_back(same ? pieces.first_alike.back() : i);
  }
  pieces.highest.resize(pieces.stages.size());
  return recent_.emplace_front(std::move(pieces));
}

}  // namespace zeroplan
