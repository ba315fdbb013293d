// How little can layers keep? Front door: KeptLayers::of.
#include "planner/sweep/kept_layers.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

constexpr unsigned whole_mlp = bit_of(RecomputeModule::mlp) | bit_of(RecomputeModule::moe);

// Whether some layers keep nothing on the device, or several share what they keep.
bool shares_or_moves(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  return set.cpu_offloading_num_layers > 0 || set.offload_modules != 0 ||
         (set.recompute_num_layers > 0 && set.recompute_method != RecomputeMethod::block);
}

}  // namespace

Repeating repeating_of(const Layout& node) {
  if (node.recompute == Recompute::none) return Repeating::nothing;
  if (node.recompute == Recompute::full) return Repeating::all;
  return (node.recompute_modules & whole_mlp) != 0 ? Repeating::mlp : Repeating::parts;
}

KeptLayers::KeptLayers(const SearchSpace& space, const Evaluator& evaluator)
    : space_(space), evaluator_(evaluator) {
  std::ranges::copy_if(all_layer_kinds, std::back_inserter(kinds_),
                       [&](LayerKind kind) { return evaluator.weights().has(kind); });
}

// By what a block of Megatron-Core depends on (BlocksInputs), but for the policy.
KeptLayers::Key KeptLayers::key(const Problem& pass, Repeating what) {
  const Layout& l = pass.layout;
  return {static_cast<std::int64_t>(what),
          l.tp,
          l.cp,
          l.etp,
          l.micro_batch,
          l.sequence_parallel,
          l.tp_overlap,
          counted_expert_ranks(pass),
          runs_megatron_layers(pass),
          pass.training.sequence_length};
}

const KeptLayers::OfSets& KeptLayers::sets(const Problem& pass, Repeating what) {
  const auto [found, added] = known_.try_emplace(key(pass, what));
  if (added) found->second = find_sets(pass, what);
  return found->second;
}

// Its modules are still to be chosen.
Problem& KeptLayers::node_of(const Problem& pass, Repeating what) {
  constexpr std::array<Recompute, 4> policies{Recompute::none, Recompute::selective,
                                              Recompute::selective, Recompute::full};
  Problem& node = follow(node_, pass);
  node.layout.recompute = policies[static_cast<std::size_t>(what)];
  node.layout.recompute_layers = 0;
  return node;
}

KeptLayers::OfSets KeptLayers::find_sets(const Problem& pass, Repeating what) {
  Problem& node = node_of(pass, what);
  OfSets made;
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    if (repeating_of(node.layout) != what) continue;
    derive_flags(space_.request, node);
    const ByKind<MegatronLayer> layers = evaluator_.layers_of_layout(node);
    const bool again = what == Repeating::all;
    for (const LayerKind kind : kinds_) {
      const MegatronLayer& layer = layers[kind];
      const Layer own = layer_of(*(again ? layer.recomputed : layer.kept));
      if (made.modules.empty()) made.least[kind] = own;
      made.least[kind].lower(own);
      made.layers.push_back(own);
    }
    made.modules.push_back(node.layout.recompute_modules);
  }
  made.modules.shrink_to_fit();  // many are remembered
  made.layers.shrink_to_fit();
  return made;
}

const KeptLayers::Layers& KeptLayers::leanest(const Problem& pass, Repeating what) {
  const auto [found, added] = leanest_.try_emplace(key(pass, what));
  if (added) found->second = find_leanest(pass, what);
  return found->second;
}

// Of the sets that are listed the one that has all of them keeps least; the runtime's own, 0, may
// have others: to run attention again a layer may keep more.
KeptLayers::Layers KeptLayers::find_leanest(const Problem& pass, Repeating what) {
  Problem& node = node_of(pass, what);
  std::int64_t all = 0;
  Values weighed;
  for (const std::int64_t modules : choices(space_, Field::recompute_modules, node)) {
    set_value(node.layout, Field::recompute_modules, modules);
    if (repeating_of(node.layout) != what) continue;
    if (modules == 0) weighed.push_back(modules);
    all |= modules;
  }
  if (all > 0) weighed.push_back(all);
  Layers made;
  for (const std::int64_t modules : weighed) {
    set_value(node.layout, Field::recompute_modules, modules);
    derive_flags(space_.request, node);
    const ByKind<MegatronLayer> layers = evaluator_.layers_of_layout(node);
    for (const LayerKind kind : kinds_) {
      const Bytes kept = layer_of(*layers[kind].kept).kept;
      made[kind].kept = modules == weighed.front() ? kept : std::min(made[kind].kept, kept);
    }
  }
  return made;
}

KeptLayers::Layer KeptLayers::layer_of(const FoldedBlock& block) {
  return {.kept = block.forward.left[Category::activations],
          .backward = std::ranges::min_element(block.bytes.backward, {}, &PassBytes::peak)->peak};
}

// By what such a layer keeps, and by both together.
void KeptLayers::Layer::lower(const Layer& other) {
  const Bytes both = std::min(kept + backward, other.kept + other.backward);
  kept = std::min(kept, other.kept);
  backward = both - kept;
}

Bytes KeptLayers::kept_by(const Problem& pass,
                          const LayerRange& chunk,
                          const Layers& rest,
                          const Layers& again,
                          std::int64_t repeated) const {
  const std::int64_t border = std::min(chunk.first + repeated, chunk.last);
  Bytes kept;
  const ByKind<std::int64_t> first = layers_by_kind(pass.model, chunk.first, border);
  const ByKind<std::int64_t> others = layers_by_kind(pass.model, border, chunk.last);
  for (const LayerKind kind : kinds_) {
    kept += first[kind] * again[kind].kept + others[kind] * rest[kind].kept;
  }
  return kept;
}

Bytes KeptLayers::needed(const Problem& pass,
                         Repeating what,
                         const Stage& first,
                         RepeatedRange layers) {
  if (shares_or_moves(pass)) return {};
  if (what != Repeating::all) return needed(pass, first, sets(pass, what).least, nullptr, {});
  const Layers again = sets(pass, what).least;
  return needed(pass, first, sets(pass, Repeating::nothing).least, &again, layers);
}

Bytes KeptLayers::kept_beside_parts(const Problem& pass, Repeating what, const Stage& first) {
  if (shares_or_moves(pass)) return {};
  return needed(pass, first, leanest(pass, what), nullptr, {});
}

Bytes KeptLayers::needed_by_node(const Problem& node, const Stage& first) {
  if (shares_or_moves(node)) return {};
  const OfSets& known = sets(node, repeating_of(node.layout));
  const auto found = std::ranges::find(known.modules, node.layout.recompute_modules);
  if (found == known.modules.end()) return {};
  auto own = known.layers.begin() + std::ssize(kinds_) * (found - known.modules.begin());
  Layers layers;
  for (const LayerKind kind : kinds_) layers[kind] = *own++;
  return needed(node, first, layers, nullptr, {});
}

// With several chunks a rank the smallest stands for each.
Bytes KeptLayers::needed(const Problem& pass,
                         const Stage& first,
                         const Layers& rest,
                         const Layers* again,
                         RepeatedRange range) const {
  std::optional<Bytes> kept, backward;
  const auto lower = [](std::optional<Bytes>& least, Bytes bytes) {
    least = std::min(least.value_or(bytes), bytes);
  };
  const LayerRange* before = nullptr;
  for (const LayerRange& chunk : first.chunks) {
    if (before != nullptr && alike_layers(pass.model, *before, chunk)) continue;
    before = &chunk;
    const std::int64_t size = chunk.last - chunk.first;
    const Bytes least = kept_by(pass, chunk, rest, again != nullptr ? *again : rest, range.most);
    lower(kept, least);
    if (size == 0) {
      lower(backward, Bytes{});
      continue;
    }
    const LayerKind last = kind_of(pass.model, chunk.last - 1);
    if (again == nullptr || range.most < size) {
      lower(backward, rest[last].backward);
    } else if (range.fewest >= size) {
      lower(backward, (*again)[last].backward);
    } else {  // the last layer may keep more than what it is counted with
      const Layer& a = (*again)[last];
      const Layer& b = rest[last];
      lower(backward, std::min(a.backward, b.kept + b.backward - a.kept));
    }
  }
  // Others put parts of backward passes off.
  if (splits_backward(pass.layout.schedule)) backward = Bytes{};
  return chunks_in_flight(pass, 0) * kept.value_or(Bytes{}) + backward.value_or(Bytes{});
}

Bytes KeptLayers::least_kept(const Problem& pass, const Stage& first) {
  if (shares_or_moves(pass)) return {};
  const Layers& again = sets(pass, Repeating::all).least;
  std::optional<Bytes> least;
  for (const LayerRange& chunk : first.chunks) {
    const Bytes kept = kept_by(pass, chunk, again, again, chunk.last - chunk.first);
    least = std::min(least.value_or(kept), kept);
  }
  return chunks_in_flight(pass, 0) * least.value_or(Bytes{});
}

}  // namespace zeroplan
