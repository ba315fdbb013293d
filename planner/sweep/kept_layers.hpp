#pragma once
// How little can the layers of Megatron-Core's first stage keep, by what of them runs again?

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost_model/remember/layout_pieces.hpp"
#include "planner/sweep/choices.hpp"

namespace zeroplan {

/// What of a layer runs again before its backward pass: the nodes of a pass that have it in common
/// are bounded together.
enum class Repeating { nothing, parts, mlp, all };

/// What of a layer of the node runs again. `mlp`: all of its MLP or of its experts, maybe with
/// other parts.
Repeating repeating_of(const Layout& node);

/// A number of layers above what any chunk has.
inline constexpr std::int64_t every_layer = std::int64_t{1} << 32;

/// How many layers of each chunk run again, where all of such a layer does.
struct RepeatedRange {
  std::int64_t fewest = 0;
  std::int64_t most = 0;
};

/// Bytes that no layer below a pass undercuts, of nodes that repeat alike. Not for use by several
/// threads at once.
class KeptLayers {
 public:
  /// The space and the evaluator must outlive this object.
  KeptLayers(const SearchSpace& space, const Evaluator& evaluator);

  /// Bytes that the layers of the first stage keep of all micro-batches in flight when its first
  /// backward pass begins, and what that pass needs beside them, of the last layer; states are not
  /// counted. Of nodes that repeat all of their layers `layers` says of how many.
  Bytes needed(const Problem& pass, Repeating what, const Stage& first, RepeatedRange layers = {});

  /// Bytes that those layers keep at least then, in any node that repeats parts of layers alike: no
  /// more than is needed, and known from one block of a kind.
  Bytes kept_beside_parts(const Problem& pass, Repeating what, const Stage& first);

  /// Bytes that the layers of the first stage keep, and what its first backward pass needs beside
  /// them, of one node, of which no layer repeats all.
  Bytes needed_by_node(const Problem& node, const Stage& first);

  /// Bytes that the layers of the first stage keep at least when its first backward pass begins, in
  /// any node of the pass.
  Bytes least_kept(const Problem& pass, const Stage& first);

 private:
  // Bytes of one layer. `backward`: what its backward pass needs beside what layers keep.
  struct Layer {
    Bytes kept;
    Bytes backward;
    void lower(const Layer& other);
  };
  static Layer layer_of(const FoldedBlock& block);
  // Nothing of a kind that the model does not have.
  using Layers = ByKind<Layer>;
  struct OfSets {
    Layers least;
    std::vector<unsigned> modules = {};  // of each set
    std::vector<Layer> layers = {};      // of each set, one of each kind in kinds_
  };
  using Key = Numbers<10>;
  static Key key(const Problem& pass, Repeating what);
  const OfSets& sets(const Problem& pass, Repeating what);
  OfSets find_sets(const Problem& pass, Repeating what);
  const Layers& leanest(const Problem& pass, Repeating what);
  Layers find_leanest(const Problem& pass, Repeating what);
  Problem& node_of(const Problem& pass, Repeating what);
  Bytes needed(const Problem& pass,
               const Stage& first,
               const Layers& rest,
               const Layers* again,
               RepeatedRange layers) const;
  Bytes kept_by(const Problem& pass,
                const LayerRange& chunk,
                const Layers& rest,
                const Layers& again,
                std::int64_t repeated) const;

  const SearchSpace& space_;
  const Evaluator& evaluator_;
  std::vector<LayerKind> kinds_;  // that the model has
  std::optional<Problem> node_;
  std::unordered_map<Key, OfSets, NumbersHash> known_;
  std::unordered_map<Key, Layers, NumbersHash> leanest_;
};

}  // namespace zeroplan
