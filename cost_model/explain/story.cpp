// How does a step go, block by block? Front door: story.
#include "cost_model/explain/story.hpp"

#include <algorithm>
#include <map>

#include "cost_model/explain/story_reasons.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/program/timeline.hpp"

namespace zeroplan {
namespace {

void add(std::vector<NamedTensors>& list, const TensorSpec& tensor) {
  const auto known = std::ranges::find_if(list, [&](const NamedTensors& t) {
    return t.name == tensor.name && t.category == tensor.category;
  });
  NamedTensors& of = known != list.end()
                         ? *known
                         : list.emplace_back(NamedTensors{tensor.name, tensor.category, 0, {}});
  ++of.count;
  of.bytes += tensor.bytes;
}

bool is_like(const TimedLoad& a, const TimedLoad& b) {
  return a.load.group == b.load.group && a.load.collective == b.load.collective &&
         a.load.payload == b.load.payload;
}

bool is_as_often(const TimedLoad& a, const TimedLoad& b) {
  return is_like(a, b) && a.load.calls == b.load.calls;
}

// "layer" of "layer 12".
std::string_view kind_of(std::string_view block) {
  return block.substr(0, block.find_last_not_of("0123456789") + 1);
}

void add(std::vector<TimedLoad>& list, const TimedLoad& call) {
  const auto known =
      std::ranges::find_if(list, [&](const TimedLoad& before) { return is_like(before, call); });
  if (known == list.end()) {
    list.push_back(call);
    return;
  }
  known->load.calls += call.load.calls;
  known->seconds += call.seconds;
  known->exposed += call.exposed;
}

// Scenes while the step is gone through, occurrence by occurrence.
class Teller {
 public:
  explicit Teller(const RankStreams& streams) : streams_(streams), live_(streams.resident()) {
    for (std::size_t i = 0; i < streams.first_event; ++i) add(held_, streams.events[i].tensor);
  }

  void tell() {
    for (const Occurrence& occurrence : streams_.order) {
      if (occurrence.of == Occurrence::Of::slice) {
        const Slice& slice = streams_.slices[occurrence.index];
        enter(slice.pass, slice.block);
        if (slice.kind == SliceKind::compute) {
          scene_.seconds += slice.seconds;
        } else {
          add(slice.along_pass ? along_ : scene_.calls, slice.call);
          scene_.seconds += slice.exposed;
        }
      } else if (occurrence.of == Occurrence::Of::tensor) {
        tell(streams_.events[occurrence.index]);
      }
    }
    leave();
    mark_alike();
  }

  std::vector<NamedTensors> held() { return std::move(held_); }
  std::vector<StoryPhase> phases() { return std::move(phases_); }

 private:
  void tell(const Played& event) {
    if (event.phase == Phase::checkpoint) return;  // is not of the step
    const bool at_end = event.phase == Phase::optimizer_step;
    if (at_end || event.pass >= 0) enter(at_end ? -1 : event.pass, event.block);
    live_[event.tensor.category] += event.allocates ? event.tensor.bytes : -event.tensor.bytes;
    scene_.highest = std::max(scene_.highest, live_.allocated());
    scene_.after = live_.allocated();
    if (event.allocates) {
      made_.emplace(event.id, event.tensor);
    } else if (made_.erase(event.id) == 0) {
      add(scene_.freed, event.tensor);
    }
  }

  // What stands at the border of a chunk is told with the block beside it.
  void enter(std::int32_t pass, std::int32_t block) {
    if (pass == pass_ && told_ && (block == block_ || block < 0 || block_ < 0)) {
      if (block_ < 0) block_ = block;
      return;
    }
    leave();
    pass_ = pass;
    block_ = block;
    told_ = true;
    scene_ = {.highest = live_.allocated(), .after = live_.allocated()};
  }

  void leave() {
    if (!told_) {
      made_.clear();
      return;
    }
    for (const auto& [id, tensor] : made_) add(scene_.kept, tensor);
    made_.clear();
    scene_.first = scene_.last = block_name();
    std::vector<StoryScene>& scenes = phase().scenes;
    phase().after = scene_.after;
    for (const TimedLoad& call : along_) add(phase().calls, call);
    along_.clear();
    const bool goes_on = !scenes.empty() && kind_of(scenes.back().last) == kind_of(scene_.first);
    if (goes_on && scenes.back().does_as(scene_)) {
      StoryScene& before = scenes.back();
      before.last = scene_.last;
      ++before.blocks;
      before.highest = std::max(before.highest, scene_.highest);
      before.after = scene_.after;
      before.seconds += scene_.seconds;
    } else {
      scenes.push_back(std::move(scene_));
    }
  }

  std::string block_name() const {
    if (pass_ < 0) return "optimizer";
    const Pass& pass = streams_.clock.passes[static_cast<std::size_t>(pass_)].pass;
    const auto& names = streams_.blocks[static_cast<std::size_t>(pass.chunk)];
    return block_ < 0 ? "border" : names[static_cast<std::size_t>(block_)];
  }

  StoryPhase& phase() {
    const bool at_end = pass_ < 0;
    if (phases_.empty() || phase_pass_ != pass_) {
      phase_pass_ = pass_;
      StoryPhase& next = phases_.emplace_back();
      next.ends_step = at_end;
      next.name = "step";
      if (!at_end) {
        const Pass& pass = streams_.clock.passes[static_cast<std::size_t>(pass_)].pass;
        next.kind = pass.kind;
        next.name = pass_name(pass, streams_.blocks.size() > 1);
      }
    }
    return phases_.back();
  }

  void mark_alike() {
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      StoryPhase& phase = phases_[i];
      for (std::size_t j = 0; j < i && !phase.alike; ++j) {
        const StoryPhase& before = phases_[j];
        if (before.alike || !does_as(phase, before)) continue;
        if (!phase.like && !before.like) phase.like = j;
        if (has_blocks_of(phase, before)) phase.alike = j;
      }
    }
  }

  static bool does_as(const StoryPhase& a, const StoryPhase& b) {
    return a.kind == b.kind && a.ends_step == b.ends_step &&
           std::ranges::equal(a.calls, b.calls, is_as_often) &&
           std::ranges::equal(a.scenes, b.scenes, [](const StoryScene& x, const StoryScene& y) {
             return kind_of(x.first) == kind_of(y.first) && x.blocks == y.blocks && x.does_as(y);
           });
  }

  static bool has_blocks_of(const StoryPhase& a, const StoryPhase& b) {
    return std::ranges::equal(a.scenes, b.scenes, [](const StoryScene& x, const StoryScene& y) {
      return x.first == y.first && x.last == y.last;
    });
  }

  const RankStreams& streams_;
  MemoryBreakdown live_;
  std::vector<NamedTensors> held_;
  std::vector<StoryPhase> phases_;
  std::map<std::int64_t, TensorSpec> made_;  // by this scene, and not freed
  StoryScene scene_;
  std::vector<TimedLoad> along_;  // since the last one
  std::int32_t pass_ = 0, block_ = -1, phase_pass_ = 0;
  bool told_ = false;
};

// The group of the first rank of the stage.
StoryGroup group_of(const Problem& p, std::int64_t stage, const RankGroup& group) {
  const Layout& l = p.layout;
  const std::int64_t rank = stage * l.tp * l.cp * l.dp;
  const std::int64_t first = rank - rank / group.stride % group.ranks * group.stride;
  StoryGroup of{.group = group, .link = link_of(p.cluster, group)};
  for (std::int64_t i = 0; i < group.ranks; ++i) of.members.push_back(first + i * group.stride);
  return of;
}

}  // namespace

bool StoryScene::does_as(const StoryScene& other) const {
  return kept == other.kept && freed == other.freed &&
         std::ranges::equal(calls, other.calls, is_as_often);
}

Story story(const Problem& problem,
            const Evaluator& evaluator,
            const StepTime& time,
            std::int64_t stage) {
  Story told{.stage = stage, .micro_batches = representative_micro_batches(problem, stage)};
  const RankStreams streams = rank_streams(problem, evaluator, time, stage, told.micro_batches);
  Teller teller(streams);
  teller.tell();
  told.held = teller.held();
  told.phases = teller.phases();
  for (const Slice& slice : streams.slices) {
    const RankGroup& group = slice.call.load.group;
    const auto known = [&](const StoryGroup& g) { return g.group == group; };
    if (slice.kind == SliceKind::compute || std::ranges::any_of(told.groups, known)) continue;
    told.groups.push_back(group_of(problem, stage, group));
  }
  told.reasons = reasons_of(problem, told);
  return told;
}

}  // namespace zeroplan
