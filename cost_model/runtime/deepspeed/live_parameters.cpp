// Which parameters are gathered at once under ZeRO 3? Front door: live_parameters.
#include "cost_model/runtime/deepspeed/live_parameters.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::size_t no_parameter = std::numeric_limits<std::size_t>::max();
// Embedding, a layer, or head: the parameter of each of its modules in the order in which they
// start, numbered from 0; what stays and what has none are alike.
struct ModelPart {
  std::vector<std::size_t> forward, backward;
  std::vector<std::int64_t> sizes;      // of parameters that come and go
  LiveParameters::Gathered persistent;  // parameters that stay
};

// Whether a weight is a bias, which is of the module before it, and always small.
bool is_bias(const Weight& w) {
  return w.name.ends_with("bias");
}

void add(const Weight& w, const Problem& p, std::vector<std::size_t>& modules, ModelPart& part) {
  const std::int64_t size = local_weight(w, p).elements();
  const bool stays = size <= largest_persistent;
  if (!is_bias(w)) modules.push_back(stays ? no_parameter : part.sizes.size());
  if (stays) {
    part.persistent.elements += size;
    ++part.persistent.calls;
  } else {
    part.sizes.push_back(size);
  }
}

ModelPart part_of(const std::vector<Weight>& weights, const Problem& p) {
  ModelPart part;
  for (const Weight& w : weights) add(w, p, part.forward, part);
  part.backward.assign(part.forward.rbegin(), part.forward.rend());
  return part;
}

// The layer holds norms, attention and MLP, whose activation takes what its first linear gave. What
// holds others has no parameter itself, and starts before them in both passes.
ModelPart layer_of(const std::vector<Weight>& weights, const Problem& p) {
  ModelPart part;
  std::vector<std::vector<std::size_t>> groups;
  bool in_attention = false;
  bool in_mlp = false;
  for (const Weight& w : weights) {
    const bool norm = !in_attention && w.module == "norm";
    const bool mlp = w.module == "fc1" || w.module == "router";
    if (norm) {
      if (!is_bias(w)) groups.emplace_back();
    } else if (mlp ? !in_mlp : !in_attention) {
      groups.push_back({no_parameter});
    }
    in_attention = in_attention || !norm;
    in_mlp = in_mlp || mlp;
    add(w, p, groups.back(), part);
    if (w.module == "fc1" && groups.back().size() == 2) groups.back().push_back(no_parameter);
  }
  part.forward.push_back(no_parameter);
  part.backward.push_back(no_parameter);
  for (const auto& group : groups) {
    part.forward.insert(part.forward.end(), group.begin(), group.end());
  }
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    part.backward.push_back(group->front());
    part.backward.insert(part.backward.end(), group->rbegin(), group->rend() - 1);
  }
  return part;
}

// The order in which modules start in a step.
struct Order {
  std::vector<std::size_t> parameters;   // of each start
  std::vector<std::size_t> layers;       // the forward pass of each layer
  std::size_t head = 0;                  // the forward pass of the head
  std::size_t turn = 0, after_turn = 0;  // the backward pass of the head
  std::size_t end = 0;                   // the backward pass of the embedding
  std::vector<std::int64_t> sizes;       // of each parameter that comes and goes
  LiveParameters::Gathered persistent;   // parameters that stay

  // Returns the number of the first parameter of `part`.
  std::size_t take(const ModelPart& part) {
    const std::size_t first = sizes.size();
    sizes.insert(sizes.end(), part.sizes.begin(), part.sizes.end());
    persistent.elements += part.persistent.elements;
    persistent.calls += part.persistent.calls;
    return first;
  }
  void start(const std::vector<std::size_t>& modules, std::size_t first) {
    for (const std::size_t p : modules) {
      parameters.push_back(p == no_parameter ? no_parameter : first + p);
    }
  }
  void start_without_parameter() { parameters.push_back(no_parameter); }
};

// The model holds its body, which holds all but the output layer; rotary positions are a module
// too.
Order order_of(const Problem& p, const WeightInventory& inventory) {
  const ModelPart embedding = part_of(inventory.embedding, p);
  const ModelPart head = part_of(inventory.head, p);
  ByKind<ModelPart> of_kind;
  std::size_t longest = 0;
  for (const LayerKind kind : all_layer_kinds) {
    of_kind[kind] = layer_of(inventory.layer(kind), p);
    longest = std::max(longest, of_kind[kind].forward.size());
  }
  const auto layer = [&](std::int64_t i) -> const ModelPart& {
    return of_kind[kind_of(p.model, i)];
  };
  const bool recomputes = p.layout.recompute == Recompute::full;
  const bool tied = p.model.tied_embeddings;
  const std::size_t table = embedding.forward.front();

  Order order;
  const auto layers = static_cast<std::size_t>(p.model.layers);
  order.parameters.reserve(4 * layers * longest);
  order.start_without_parameter();
  order.start_without_parameter();
  order.start(embedding.forward, order.take(embedding));
  order.start_without_parameter();
  std::vector<std::size_t> first;  // of each layer
  first.reserve(layers);
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    order.layers.push_back(order.parameters.size());
    first.push_back(order.take(layer(i)));
    order.start(layer(i).forward, first.back());
  }
  order.head = order.parameters.size();
  const std::size_t first_of_head = order.take(head);
  order.start(head.forward, first_of_head);
  if (tied) order.parameters.push_back(table);

  order.turn = order.parameters.size();
  order.start_without_parameter();
  if (tied) order.parameters.push_back(table);
  order.start(head.backward, first_of_head);
  order.after_turn = order.parameters.size();
  order.start_without_parameter();
  for (std::int64_t i = p.model.layers; i-- > 0;) {
    const std::size_t own = first[static_cast<std::size_t>(i)];
    if (recomputes) order.start(layer(i).forward, own);
    order.start(layer(i).backward, own);
  }
  order.end = order.parameters.size();
  order.start(embedding.backward, 0);
  return order;
}

class Coordinator {
 public:
  Coordinator(const DeepspeedSettings& set, const Order& order)
      : set_(set),
        sizes_(order.sizes),
        order_(order.parameters),
        states_(sizes_.size()),
        live_(order.persistent.elements) {
    traversed_.reserve(order_.size() + 1);
    traversed_.push_back(0);
    for (const std::size_t p : order_) {
      traversed_.push_back(traversed_.back() + (p == no_parameter ? 0 : sizes_[p]));
    }
    std::vector<std::size_t> next(sizes_.size(), order_.size());
    next_use_.resize(order_.size());
    for (std::size_t step = order_.size(); step-- > 0;) {
      if (order_[step] == no_parameter) continue;
      next_use_[step] = next[order_[step]];
      next[order_[step]] = step;
    }
  }

  // The most elements while the module that starts at `step` runs.
  std::int64_t run(std::size_t step) {
    most_ = live_;
    const std::size_t own = order_[step];
    if (own != no_parameter) {
      if (states_[own].group == nowhere) {
        Group alone;
        join(alone, own);
        gather(alone);
      }
      wait_for(own);
      if (states_[own].found < step) skip_to_use(step);
    }
    gather_ahead();
    const std::int64_t most = std::max(most_, live_);
    if (own != no_parameter) release(step);
    return most;
  }

  // What was gathered since this was last called.
  LiveParameters::Gathered gathered() { return std::exchange(gathered_, {}); }

 private:
  static constexpr std::int64_t nowhere = -1, there = -2;
  struct State {
    std::int64_t group = nowhere;  // the parameter's, while it is under way
    std::size_t found = 0;         // the last use that the search ahead has passed
  };
  struct Group {
    std::int64_t size = 0;
    std::size_t parameters = 0, waited = 0;
  };

  // Puts a parameter into the next group that is gathered.
  void join(Group& group, std::size_t p) {
    group.size += sizes_[p];
    ++group.parameters;
    states_[p].group = static_cast<std::int64_t>(groups_.size());
  }

  void gather(const Group& group) {
    ++gathered_.calls;
    gathered_.elements += group.size;
    available_ += group.size;
    live_ += group.size;
    groups_.push_back(group);
  }

  // All that were gathered as one are copied out together; the buffer goes with the last.
  void wait_for(std::size_t p) {
    if (states_[p].group == there) return;
    Group& group = groups_[static_cast<std::size_t>(states_[p].group)];
    const bool as_one = group.parameters > 1;
    if (as_one && group.waited == 0) live_ += group.size;
    most_ = std::max(most_, live_);
    if (++group.waited == group.parameters && as_one) live_ -= group.size;
    states_[p].group = there;
  }

  void skip_to_use(std::size_t step) {
    while (searched_ < order_.size()) {
      const std::size_t at = searched_++;
      if (order_[at] == no_parameter) continue;
      states_[order_[at]].found = at;
      if (at >= step) return;
    }
  }

  void gather_ahead() {
    const std::int64_t most =
        std::min(set_.stage3_max_live_parameters - available_, set_.stage3_prefetch_bucket_size);
    Group ahead;
    while (searched_ < order_.size() && ahead.size < most) {
      const std::size_t at = searched_++;
      const std::size_t p = order_[at];
      if (p == no_parameter) continue;
      states_[p].found = at;
      if (states_[p].group == nowhere) join(ahead, p);
    }
    if (ahead.parameters > 0) gather(ahead);
  }

  void release(std::size_t step) {
    const std::size_t p = order_[step];
    if (states_[p].found > step) return;
    const std::size_t next = next_use_[step];
    const bool again = next < order_.size() &&
                       traversed_[next] - traversed_[step + 1] < set_.stage3_max_reuse_distance;
    if (again) return;
    available_ -= sizes_[p];
    live_ -= sizes_[p];
    states_[p].group = nowhere;
  }

  const DeepspeedSettings& set_;
  const std::vector<std::int64_t>& sizes_;
  const std::vector<std::size_t>& order_;
  std::vector<std::int64_t> traversed_;  // elements of the starts before each
  std::vector<std::size_t> next_use_;    // of the parameter of each start
  std::vector<State> states_;
  std::vector<Group> groups_;
  LiveParameters::Gathered gathered_;
  std::size_t searched_ = 0;  // starts that the search ahead has passed
  std::int64_t available_ = 0, live_, most_ = 0;
};

}  // namespace

LiveParameters live_parameters(const Problem& problem, const WeightInventory& inventory) {
  if (problem.layout.zero != ZeroStage::parameters) return {};
  const Order order = order_of(problem, inventory);
  Coordinator coordinator(problem.runtime.deepspeed, order);
  LiveParameters live{.in_layers = std::vector<std::int64_t>(order.layers.size()),
                      .beside = std::vector<std::int64_t>(order.sizes.size())};
  std::size_t layer = 0;
  for (std::size_t step = 0; step < order.parameters.size(); ++step) {
    if (step == order.turn) live.forward = coordinator.gathered();
    const std::int64_t now = coordinator.run(step);
    const bool in_head = step >= order.head && step < order.turn;
    if (in_head) live.at_head = std::max(live.at_head, now);
    while (layer + 1 < order.layers.size() && step >= order.layers[layer + 1]) ++layer;
    if (layer < order.layers.size() && step < order.head)
      live.in_layers[layer] = std::max(live.in_layers[layer], now);
    if (step >= order.turn && step < order.after_turn) live.at_turn = std::max(live.at_turn, now);
    const std::size_t own = order.parameters[step];
    if (step >= order.turn && own != no_parameter) live.beside[own] = now;
    if (step >= order.end) live.at_end = std::max(live.at_end, now);
  }
  live.backward = coordinator.gathered();
  live.updated = order.persistent;
  return live;
}

}  // namespace zeroplan
