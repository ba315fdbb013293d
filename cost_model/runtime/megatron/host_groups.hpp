#pragma once
// What of a layer's modules waits on the host for the backward pass, and when it comes back.
//
// What a module saves is a group. Its copy goes to the host when the forward pass has left the
// module, and the device's goes then, or when nothing else reads it. The last group of a module's
// name stays, so that the backward pass need not wait for it. Each time that pass has left a
// module, the group comes back that left last of those which still wait, so that about a layer's
// groups are on the device, or on their way to it.
// Source: Megatron-LM @d98e8a64dd core/pipeline_parallel/fine_grained_activation_offload.py.

#include <optional>
#include <utility>
#include <vector>

#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {

/// Modules of which a layer of this kind has a group, as bits of OffloadModule: those asked for
/// that it has, that are not run again instead, and that no graph forbids.
unsigned host_groups(const Problem& problem, LayerKind kind, RepeatSet dropped);

/// Who holds a layer's input until the chunk's forward pass is over, beside the layer: who called
/// the first one. A module that lets go of it by force takes it from the model, too.
enum class InputHolder { none, model, pipeline };

/// What of a layer leaves.
struct Leaving {
  LayerKind kind = LayerKind::dense;
  unsigned stays = 0;  // groups that do not
  InputHolder input_holder = InputHolder::none;
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

/// A group on its way back: so many of the layer's left after it.
struct Returning {
  Leaving layer;
  std::int64_t left_after = 0;
  friend bool operator==(const Returning&, const Returning&) = default;
};

/// Where a layer stands among those of its chunk.
struct HostPlace {
  Leaving own;
  std::int64_t returned = 0;      // of its groups, those that other backward passes bring back
  std::vector<Returning> brings;  // what its own does, a group each time it has left a module
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

/// Which micro-batch of a chunk it is. `alone`: the backward pass follows the forward pass at once.
/// Else the first, a later or the last one, whose backward pass brings back the last groups of the
/// next one. `apart`: a later one, where others than the chunk's own do that.
enum class InFlight { alone, first, later, last, apart };

/// The places of a chunk's layers, in model order. `holder`: of the first one's input.
std::vector<HostPlace> host_places(const Problem& problem,
                                   const std::vector<LayerKind>& layers,
                                   InputHolder holder,
                                   InFlight in_flight);

/// The groups of one layer while its block is written.
class HostGroups {
 public:
  /// A group's tensors, in bytes.
  using Sizes = std::vector<Bytes>;

  /// `returning`: the groups that the backward pass brings back, in that order.
  HostGroups(const Problem& problem,
             const Leaving& layer,
             RepeatSet dropped,
             std::vector<Sizes> returning = {});

  InputHolder input_holder() const { return input_holder_; }

  bool leaves(OffloadModule module) const { return (groups_ & ~stays_ & bit_of(module)) != 0; }

  /// Tensors of the module's group leave the device, where they are large enough; they have
  /// elements of so many bytes.
  void leave(BlockWriter& w, OffloadModule module, const TensorList& tensors, std::int64_t element);
  /// What of the group stays because another module reads it, too: its copy comes back beside it.
  void copy(BlockWriter& w, OffloadModule module, Tensor tensor, std::int64_t element);

  /// The backward pass begins with all groups of the layer on the device, where the last `returned`
  /// ones to leave have been since before.
  void come_back(BlockWriter& w, std::int64_t returned);
  /// The backward pass has left the module: the next group comes back.
  void left(BlockWriter& w, OffloadModule module);

  /// The groups that left, in that order.
  std::vector<Sizes> sizes(const BlockWriter& w) const;

 private:
  struct Group {
    OffloadModule module;
    TensorList tensors;
    Sizes copies;
    TensorList copied;  // the copies that came back
  };
  Group& group_of(OffloadModule module);
  bool is_large(Bytes bytes, std::int64_t element) const;

  unsigned groups_, stays_;
  InputHolder input_holder_;
  std::int64_t least_elements_;
  std::vector<Group> left_;
  std::vector<Sizes> returning_;
  std::size_t brought_ = 0;  // of these
};

}  // namespace zeroplan
