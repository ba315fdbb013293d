#pragma once
// What the blocks that a rank can hold take for one micro-batch: kernels, and collectives.

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/network/program_calls.hpp"
#include "cost_model/pipeline/contention.hpp"
#include "cost_model/pipeline/timed_load.hpp"
#include "cost_model/question/inputs.hpp"

namespace zeroplan {

/// Seconds of collectives, one after the other, by the work that runs beside them.
struct LoadSeconds {
  Directions waited;    // none
  Directions ring;      // attention
  Directions products;  // of weight gradients
  Directions parts;     // products, part by part
  Directions other_pass;
  SentKinds between;  // of all loads that share switches, by who sends

  void add(const ClusterSpec& cluster, const TimedLoad& load);
  friend LoadSeconds operator*(double times, const LoadSeconds& s) {
    return {times * s.waited, times * s.ring,       times * s.products,
            times * s.parts,  times * s.other_pass, times * s.between};
  }
  LoadSeconds& operator+=(const LoadSeconds& other) {
    waited += other.waited;
    ring += other.ring;
    products += other.products;
    parts += other.parts;
    other_pass += other.other_pass;
    between += other.between;
    return *this;
  }
};

/// What of a layer runs again.
struct RepeatTimes {
  KernelTime kernels;
  LoadSeconds loads;

  RepeatTimes& operator+=(const RepeatTimes& other) {
    kernels += other.kernels;
    loads += other.loads;
    return *this;
  }
};

/// A block on its rank.
struct TimedBlock {
  BlockTime kernels;
  LoadSeconds loads;
  LoadSeconds repeated;               // what recompute of the block adds to the loads
  std::optional<RepeatTimes> lesser;  // of layers that repeat less (RepeatedLayers::others)

  TimedBlock& operator+=(const TimedBlock& other) {
    kernels += other.kernels;
    loads += other.loads;
    repeated += other.repeated;
    if (lesser && other.lesser) *lesser += *other.lesser;
    return *this;
  }
  /// Seconds of a layer's kernels that run again, whether the policy takes it or leaves it.
  double again(bool repeats_all) const {
    return repeats_all ? kernels.recompute.total() : lesser ? lesser->kernels.total() : 0;
  }
};

/// What blocks take, by the kinds of block that a rank can hold.
struct BlockTimes {
  ByKind<const TimedBlock*> layers;  // nothing in one of a kind that the model lacks
  const TimedBlock& embedding;
  const TimedBlock& head;
  const TimedBlock& mtp_ends;  // nothing where no such modules are trained

  const TimedBlock& layer(LayerKind kind) const { return *layers[kind]; }
};

/// The times of a rank's blocks, of which all that no recompute policy decides is made once. Not
/// for use by several threads at once.
class BlockClock {
 public:
  /// `only`: of the question. It and the inventory must outlive the clock.
  BlockClock(const WeightInventory& inventory, OnlyFor& only)
      : inventory_(inventory),
        only_(only),
        routes_{has_routed_experts(inventory, false), has_routed_experts(inventory, true)} {}
  BlockClock(const BlockClock&) = delete;
  BlockClock& operator=(const BlockClock&) = delete;

  /// What the blocks of the problem's ranks take; valid until the next call.
  BlockTimes times(const Problem& problem);

 private:
  // What runs again of layers that the policy takes, and of the others.
  using RepeatSets = std::pair<RepeatSet, RepeatSet>;
  static RepeatSets sets(const Problem& problem);
  static bool has_routed_experts(const WeightInventory& inventory, bool wide);
  struct Repeated {
    RepeatSet set = 0;
    RepeatTimes times;
  };
  class Layer {
   public:
    Layer(const BlockClock& clock, const Problem& problem, LayerKind kind, LayerPart part);
    // The layer's times with what the problem's policy repeats.
    const TimedBlock& timed(const Problem& problem);

   private:
    RepeatTimes repeated(const Problem& problem, RepeatSet set);
    RepeatTimes written(const Problem& problem, RepeatSet set) const;

    const BlockClock& clock_;
    LayerKind kind_;
    LayerPart part_;
    ModuleTimes modules_;
    std::vector<Call> once_;
    std::vector<Repeated> repeated_;     // for each set that was asked about, and each part of one
    std::optional<RepeatSets> repeats_;  // in what is timed
    TimedBlock timed_;
  };
  // All that no expert parallelism divides.
  struct Common {
    Common(const BlockClock& clock, const Problem& problem);
    ByKind<std::unique_ptr<Layer>> layers;  // but for routed experts
    TimedBlock embedding, head, mtp_ends;
  };

  using Key = Numbers<13>;
  template <class Value>
  using Known = std::unordered_map<Key, Value, NumbersHash>;

  // What a part of the problem's blocks depends on, as a key, and the problem that has no more.
  static Key key(const Problem& problem, LayerPart part);
  const Problem& only(const Problem& problem, LayerPart part) const;
  const TimedBlock& layer(const Problem& problem, LayerKind kind);

  const WeightInventory& inventory_;
  OnlyFor& only_;
  Known<Common> common_;
  // Of routed experts, the others' and those of layers in 16 bits.
  std::array<bool, 2> routes_;  // which there are
  std::array<Known<Layer>, 2> routed_;
  // What was asked about last: many policies are asked about in a row.
  Key asked_{};
  std::int64_t asked_parts_ = 0;  // of the loss
  Common* last_common_ = nullptr;
  std::array<Layer*, 2> last_routed_{};
  ByKind<std::optional<RepeatSets>> repeats_;  // in layers with experts
  ByKind<TimedBlock> with_experts_;
  TimedBlock nothing_;
};

}  // namespace zeroplan
