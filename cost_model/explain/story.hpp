#pragma once
// A step as a story: who holds which part, what each block gathers, keeps, drops and sends, and
// what every rank holds afterwards. Read off the program that is folded, so that it cannot tell
// another one.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/answer/step_streams.hpp"

namespace zeroplan {

/// Tensors of one name.
struct NamedTensors {
  std::string_view name;
  Category category = Category::activations;
  std::int64_t count = 0;
  Bytes bytes;  // of all together
  friend bool operator==(const NamedTensors&, const NamedTensors&) = default;
};

/// Ranks that exchange: the group of the rank that the story is told of.
struct StoryGroup {
  RankGroup group;
  std::vector<std::int64_t> members;  // in order
  std::string_view link;              // between the farthest of them: nvlink, xgmi, pcie, network
};

/// What one block does in a pass, or several that do alike, one after another.
struct StoryScene {
  std::string first, last;  // the blocks: "layer 0", "layer 31"
  std::int64_t blocks = 1;
  std::vector<TimedLoad> calls;     // of one block; alike ones are one
  std::vector<NamedTensors> kept;   // made by one block, and there when it is done
  std::vector<NamedTensors> freed;  // there before the block, and gone when it is done
  Bytes highest, after;             // allocated: at most, and when the last block is done
  double seconds = 0;               // of all blocks, with what they wait for

  bool does_as(const StoryScene& other) const;
};

/// A pass of a micro-batch, or the end of the step.
struct StoryPhase {
  std::string name;  // "f0", "b0", "step"
  PassKind kind = PassKind::forward;
  bool ends_step = false;
  std::optional<std::size_t> alike;  // an earlier phase that does the same, with the same blocks
  std::optional<std::size_t> like;   // an earlier phase that does the same with other blocks of the
                                     // same kinds: another chunk's layers
  std::vector<TimedLoad> calls;      // all along the phase, of no one block
  std::vector<StoryScene> scenes;
  Bytes after;
};

struct Story {
  std::int64_t stage = 0;
  std::int64_t micro_batches = 0;  // that are told
  std::vector<NamedTensors> held;  // before the step and after it
  std::vector<StoryGroup> groups;
  std::vector<StoryPhase> phases;
  std::vector<std::string> reasons;  // why it goes so, in sentences
};

/// The story of each rank of a pipeline stage, which all do alike. `time` is the step time of the
/// same problem.
Story story(const Problem& problem,
            const Evaluator& evaluator,
            const StepTime& time,
            std::int64_t stage);

}  // namespace zeroplan
