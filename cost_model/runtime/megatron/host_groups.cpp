// Which saved tensors of a layer wait on the host, and until when? Front doors: host_places,
// HostGroups.
#include "cost_model/runtime/megatron/host_groups.hpp"

#include <algorithm>
#include <bit>

namespace zeroplan {
namespace {

using enum OffloadModule;

constexpr Carried on_its_way{"activation back from the host", Category::activations};

// Graphs of parts of a layer hold what their inputs are in, which cannot leave
// (core/transformer/transformer_layer.py _set_offload_modules).
unsigned held_by_graphs(const MegatronSettings& set, LayerKind kind) {
  if (set.cuda_graph_impl != CudaGraphs::transformer_engine) return 0;
  const bool attention = set.captures(GraphScope::attn);
  const bool mlp = set.captures(GraphScope::mlp);
  const bool norm =
      has_experts(kind) ? attention || set.captures(GraphScope::moe_router) : attention != mlp;
  return (attention ? bit_of(attn_norm) : 0) | (norm ? bit_of(mlp_norm) : 0);
}

// The layers of a chunk on their way through both passes.
class Chunk {
 public:
  Chunk(const std::vector<LayerKind>& layers,
        const std::vector<unsigned>& groups,
        InputHolder holder)
      : groups_(groups) {
    for (const LayerKind kind : layers) places.push_back({.own = {.kind = kind}});
    if (!places.empty()) places.front().own.input_holder = holder;
  }

  void keep_last_groups() {
    unsigned seen = 0;
    for (std::size_t i = places.size(); i-- > 0;) {
      places[i].own.stays = groups_[i] & ~seen;
      seen |= groups_[i];
    }
  }

  void keep_later_ones(double share) {
    auto kept = static_cast<std::int64_t>(share * static_cast<double>(left().size()));
    for (std::size_t i = places.size(); i-- > 0;) {
      for (; kept > 0 && leaving(i) != 0; --kept) places[i].own.stays |= std::bit_floor(leaving(i));
    }
  }

  // What left last comes back first, each group when the backward pass has left a module; the last
  // `returned` ones are back before it. What no layer has brought back by then comes at once.
  void bring_back(std::size_t returned) {
    std::vector<std::size_t> waiting = left();
    for (; returned > 0; --returned) {
      ++places[waiting.back()].returned;
      waiting.pop_back();
    }
    for (std::size_t i = places.size(); i-- > 0;) {
      while (!waiting.empty() && waiting.back() >= i) waiting.pop_back();
      for (int modules = std::popcount(groups_[i]); modules > 0; --modules) {
        if (waiting.empty()) {
          idle.push_back(i);
          continue;
        }
        HostPlace& place = places[waiting.back()];
        places[i].brings.push_back({place.own, place.returned++});
        waiting.pop_back();
      }
    }
  }

  // The layers of the groups that leave, in that order.
  std::vector<std::size_t> left() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < places.size(); ++i) {
      all.insert(all.end(), static_cast<std::size_t>(std::popcount(leaving(i))), i);
    }
    return all;
  }

  std::vector<HostPlace> places;
  std::vector<std::size_t> idle;  // layers that find nothing to bring back, once for each module

 private:
  unsigned leaving(std::size_t i) const { return groups_[i] & ~places[i].own.stays; }

  const std::vector<unsigned>& groups_;
};

}  // namespace

unsigned host_groups(const Problem& problem, LayerKind kind, RepeatSet dropped) {
  const MegatronSettings& set = problem.runtime.megatron;
  unsigned has = 0;
  const auto add = [&](OffloadModule module, bool present) {
    if (present) has |= bit_of(module);
  };
  if (has_mixer(kind)) {
    add(attn_norm, has_own_input_norm(problem));
    add(qkv_linear, !is_linear(kind));
    add(core_attn, !is_linear(kind) && (dropped & bit_of(RecomputeModule::core_attn)) == 0);
    add(attn_proj, !is_linear(kind));
  }
  if (has_feed_forward(kind)) add(mlp_norm, has_own_pre_mlp_norm(problem, kind));
  if (has_experts(kind)) {
    const bool fused = set.use_transformer_engine_op_fuser;
    add(fused_group_mlp, fused);
    for (const OffloadModule module : {expert_fc1, moe_act}) add(module, !fused);
  }
  return set.offload_modules & has & ~held_by_graphs(set, kind);
}

std::vector<HostPlace> host_places(const Problem& problem,
                                   const std::vector<LayerKind>& layers,
                                   InputHolder holder,
                                   InFlight in_flight) {
  std::vector<unsigned> groups;
  for (const LayerKind kind : layers) {
    groups.push_back(host_groups(problem, kind, repeats(problem)));
  }
  const double staying = 1 - problem.runtime.megatron.activation_offload_fraction;
  const auto chunk_of = [&](bool keeps_last) {
    Chunk chunk(layers, groups, holder);
    if (keeps_last) chunk.keep_last_groups();
    chunk.keep_later_ones(staying);
    return chunk;
  };
  const bool keeps_last = in_flight == InFlight::alone || in_flight == InFlight::first;
  Chunk own = chunk_of(keeps_last);
  if (in_flight == InFlight::alone || in_flight == InFlight::apart) {
    own.bring_back(0);
    return own.places;
  }
  // As many as the first backward pass has time for come back for each of the next ones.
  Chunk first = chunk_of(true);
  first.bring_back(0);
  const Chunk next = chunk_of(false);
  const std::vector<std::size_t> waiting = next.left();
  const std::size_t linked = std::min(first.idle.size(), waiting.size());
  own.bring_back(keeps_last ? 0 : linked);
  if (in_flight == InFlight::last) return own.places;
  for (std::size_t i = 0; i < std::min(linked, own.idle.size()); ++i) {
    const std::size_t layer = waiting[waiting.size() - 1 - i];
    const std::int64_t after =
        std::count(waiting.end() - static_cast<std::ptrdiff_t>(i), waiting.end(), layer);
    own.places[own.idle[i]].brings.push_back({next.places[layer].own, after});
  }
  return own.places;
}

HostGroups::HostGroups(const Problem& problem,
                       const Leaving& layer,
                       RepeatSet dropped,
                       std::vector<Sizes> returning)
    : groups_(host_groups(problem, layer.kind, dropped)),
      stays_(layer.stays),
      input_holder_(layer.input_holder),
      least_elements_(problem.runtime.megatron.min_offloaded_tensor_size),
      returning_(std::move(returning)) {}

bool HostGroups::is_large(Bytes bytes, std::int64_t element) const {
  return bytes.count() >= element * least_elements_;
}

HostGroups::Group& HostGroups::group_of(OffloadModule module) {
  const auto known = std::ranges::find(left_, module, &Group::module);
  return known != left_.end() ? *known : left_.emplace_back(Group{.module = module});
}

void HostGroups::leave(BlockWriter& w,
                       OffloadModule module,
                       const TensorList& tensors,
                       std::int64_t element) {
  if (!leaves(module)) return;
  Group& group = group_of(module);
  for (const Tensor tensor : tensors) {
    if (tensor == BlockWriter::none || !is_large(w.bytes_of(tensor), element)) continue;
    w.free(tensor);
    group.tensors.push_back(tensor);
  }
}

void HostGroups::copy(BlockWriter& w, OffloadModule module, Tensor tensor, std::int64_t element) {
  if (!leaves(module) || !is_large(w.bytes_of(tensor), element)) return;
  group_of(module).copies.push_back(w.bytes_of(tensor));
}

std::vector<HostGroups::Sizes> HostGroups::sizes(const BlockWriter& w) const {
  std::vector<Sizes> all;
  for (const Group& group : left_) {
    Sizes& sizes = all.emplace_back();
    for (const Tensor tensor : group.tensors) sizes.push_back(w.bytes_of(tensor));
    sizes.insert(sizes.end(), group.copies.begin(), group.copies.end());
  }
  return all;
}

void HostGroups::come_back(BlockWriter& w, std::int64_t returned) {
  for (auto group = left_.rbegin(); group != left_.rend(); ++group, --returned) {
    const auto take = [&](Bytes bytes) {
      if (returned > 0) w.take(on_its_way, bytes);
    };
    for (const Tensor tensor : group->tensors) {
      take(w.bytes_of(tensor));
      w.allocate(tensor);
    }
    for (const Bytes bytes : group->copies) {
      take(bytes);
      group->copied.push_back(w.temporary("copy from the host", bytes));
    }
  }
}

void HostGroups::left(BlockWriter& w, OffloadModule module) {
  if ((groups_ & bit_of(module)) == 0) return;
  if (leaves(module)) w.free(group_of(module).copied);
  if (brought_ == returning_.size()) return;
  for (const Bytes bytes : returning_[brought_++]) w.put(on_its_way, bytes);
}

}  // namespace zeroplan
