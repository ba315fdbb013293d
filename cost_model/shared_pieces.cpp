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

Layout without_recompute(Layout layout) {
  layout.recompute = Recompute::none;
  layout.recompute_modules = 0;
  layout.recompute_layers = 0;
  return layout;
}

}  // namespace

SharedStages::Column& SharedStages::column(const Layout& l) {
  // The last one is asked about again and again.
  for (auto c = columns.rbegin(); c != columns.rend(); ++c) {
    if (c->zero == l.zero && c->hsdp == l.hsdp && c->offload == l.offload) return *c;
  }
  columns.push_back({l.zero, l.hsdp, l.offload, std::vector<StateShare*>(stages.size())});
  return columns.back();
}

SharedPieces& RecentPieces::of(const Problem& problem) {
  if (!just_asked(problem)) {
    last_ = &find(problem);
    asked_ = problem.layout;
  }
  return *last_;
}

SharedPieces& RecentPieces::find(const Problem& problem) {
  const Layout layout = without_flags(problem.layout);
  const auto found = std::find_if(recent_.begin(), recent_.end(), [&](const SharedPieces& pieces) {
    return pieces.layout == layout && pieces.of_stages->training == problem.training;
  });
  if (found != recent_.end()) return *found;
  if (recent_.size() == kept) recent_.pop_back();
  SharedPieces pieces{.layout = layout, .of_stages = stages_of(problem, without_recompute(layout))};
  pieces.highest.resize(pieces.stages().size());
  return recent_.emplace_front(std::move(pieces));
}

std::shared_ptr<SharedStages> RecentPieces::stages_of(const Problem& problem,
                                                      const Layout& layout) {
  for (const auto& known : recent_stages_) {
    if (known->layout == layout && known->training == problem.training) return known;
  }
  auto made = std::make_shared<SharedStages>(
      SharedStages{.layout = layout, .training = problem.training, .stages = stages(problem)});
  for (std::size_t i = 0; i < made->stages.size(); ++i) {
    const bool same = i > 0 && alike(problem.model, made->stages[i - 1], made->stages[i]);
    made->first_alike.push_back(same ? made->first_alike.back() : i);
    if (!same) made->firsts.push_back(i);
  }
  made->buffers.resize(made->stages.size());
  if (recent_stages_.size() == kept) recent_stages_.pop_back();
  return recent_stages_.emplace_front(std::move(made));
}

void RecentPieces::forget_shares() {
  for (SharedPieces& pieces : recent_) pieces.of_stages->columns.clear();
  for (const auto& stages : recent_stages_) stages->columns.clear();
}

}  // namespace zeroplan
