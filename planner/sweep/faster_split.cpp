// Would another split of a plan's layers be faster? Front door: faster_split.
#include "planner/sweep/faster_split.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "cost_model/answer/estimate.hpp"

namespace zeroplan {
namespace {

constexpr double least_saved = 0.01;

class Stages {
 public:
  Stages(const Problem& plan, const Evaluator& evaluator)
      : plan_(plan), evaluator_(evaluator), blocks_(evaluator.block_times(plan)) {}

  double seconds(std::int64_t rank, LayerRange layers) const {
    return seconds_of(stage(rank, layers));
  }

  double slowest_now() const {
    double slowest = 0;
    for (const Stage& stage : stages(plan_)) slowest = std::max(slowest, seconds_of(stage));
    return slowest;
  }

  // Stages of one rank with as many layers of each kind need the same.
  bool fit(std::int64_t rank, LayerRange layers) {
    const Stage asked = stage(rank, layers);
    const auto [known, added] = fit_.try_emplace({rank, content_of(plan_.model, asked)});
    if (added) {
      const StageBytes bytes = stage_bytes(stage_memory(plan_, evaluator_, asked, rank));
      known->second = bytes.device() + half_band(plan_, bytes) <= plan_.cluster.gpu.memory;
    }
    return known->second;
  }

 private:
  Stage stage(std::int64_t rank, LayerRange layers) const {
    return {.chunks = {layers}, .embedding = rank == 0, .head = rank + 1 == plan_.layout.pp};
  }

  double seconds_of(const Stage& stage) const {
    const PassTime pass = chunk_time(plan_, blocks_, stage).pass;
    return pass.forward + pass.backward();
  }

  const Problem& plan_;
  const Evaluator& evaluator_;
  BlockTimes blocks_;
  std::map<std::pair<std::int64_t, StageContent>, bool> fit_;
};

}  // namespace

std::optional<FasterSplit> faster_split(const Problem& plan, const Evaluator& evaluator) {
  const Layout& l = plan.layout;
  if (l.pp == 1 || l.vpp > 1 || stages(plan).front().chunks.size() > 1) return std::nullopt;
  Stages all(plan, evaluator);
  const double now = all.slowest_now();
  const std::optional<Partition> found = balanced_partition(
      {.layers = plan.model.layers,
       .stages = l.pp,
       .seconds = [&](std::int64_t rank, LayerRange layers) { return all.seconds(rank, layers); },
       .fits = [&](std::int64_t rank, LayerRange layers) { return all.fit(rank, layers); },
       .below = (1 - least_saved) * now});
  if (!found) return std::nullopt;
  return FasterSplit{*found, now};
}

}  // namespace zeroplan
