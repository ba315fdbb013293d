// Which parameters are gathered at once under ZeRO 3? Front door: live_parameters.
#include "cost_model/runtime/deepspeed/live_parameters.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::int64_t largest_persistent = 100'000;  // stage3_param_persistence_threshold
constexpr std::size_t no_parameter = std::numeric_limits<std::size_t>::max();

// A module that holds others, before them; the first of a layer is the layer itself.
using Group = std::vector<std::size_t>;

// The modules of a model in forward order, by the parameter of each.
struct Modules {
  std::vector<std::int64_t> sizes;      // of parameters that come and go
  LiveParameters::Gathered persistent;  // those that stay
  Group embedding, head;
  std::vector<std::vector<Group>> layers;
};

// It is of the module before it, and always small.
bool is_bias(const Weight& w) {
  return w.name.ends_with("bias");
}

void add(const Weight& w, const Problem& p, Group& modules, Modules& all) {
  const std::int64_t size = local_weight(w, p).elements();
  const bool stays = size <= largest_persistent;
  if (!is_bias(w)) modules.push_back(stays ? no_parameter : all.sizes.size());
  if (stays) {
    all.persistent.elements += size;
    ++all.persistent.calls;
  } else {
    all.sizes.push_back(size);
  }
}

// The layer, its norms, its attention and its MLP, whose activation takes what its first linear
// gave.
std::vector<Group> layer_groups(const std::vector<Weight>& weights,
                                const Problem& p,
                                Modules& all) {
  std::vector<Group> groups{{no_parameter}};
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
    add(w, p, groups.back(), all);
    if (w.module == "fc1" && groups.back().size() == 2) groups.back().push_back(no_parameter);
  }
  return groups;
}

Modules modules_of(const Problem& p, const WeightInventory& inventory) {
  Modules all;
  for (const Weight& w : inventory.embedding) add(w, p, all.embedding, all);
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    all.layers.push_back(layer_groups(inventory.layer(kind_of(p.model, i)), p, all));
  }
  for (const Weight& w : inventory.head) add(w, p, all.head, all);
  if (p.model.tied_embeddings) all.head.push_back(all.embedding.front());
  return all;
}

// The order in which modules start in a step.
struct Order {
  std::vector<std::size_t> parameters;   // of each start
  std::size_t turn = 0, after_turn = 0;  // the backward pass of the head and the last layer
  std::size_t end = 0;                   // that of the embedding
};

Order order_of(const Modules& all, bool recomputes) {
  Order order;
  std::vector<std::size_t>& starts = order.parameters;
  const auto forward = [&](const Group& modules) {
    starts.insert(starts.end(), modules.begin(), modules.end());
  };
  const auto backward = [&](const Group& modules) {
    starts.insert(starts.end(), modules.rbegin(), modules.rend());
  };
  const auto layer_forward = [&](const std::vector<Group>& groups) {
    for (const Group& group : groups) forward(group);
  };
  // What holds others starts before them in this pass too.
  const auto layer_backward = [&](const std::vector<Group>& groups) {
    forward(groups.front());
    for (auto group = groups.rbegin(); group + 1 != groups.rend(); ++group) {
      starts.push_back(group->front());
      starts.insert(starts.end(), group->rbegin(), group->rend() - 1);
    }
  };
  const Group model{no_parameter}, body{no_parameter}, rotary{no_parameter};
  forward(model);
  forward(body);
  forward(all.embedding);
  forward(rotary);
  for (const auto& layer : all.layers) layer_forward(layer);
  forward(all.head);
  order.turn = starts.size();
  forward(model);
  backward(all.head);
  forward(body);
  for (auto layer = all.layers.rbegin(); layer != all.layers.rend(); ++layer) {
    if (recomputes) layer_forward(*layer);
    layer_backward(*layer);
    if (layer == all.layers.rbegin()) order.after_turn = starts.size();
  }
  order.end = starts.size();
  backward(all.embedding);
  return order;
}

class Coordinator {
 public:
  Coordinator(const DeepspeedSettings& set, const Modules& modules, const Order& order)
      : set_(set),
        sizes_(modules.sizes),
        order_(order.parameters),
        states_(sizes_.size()),
        live_(modules.persistent.elements) {
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
      if (states_[own].group == nowhere) gather({own});
      wait_for(own);
      if (states_[own].found < step) skip_to_use(step);
    }
    gather_ahead();
    const std::int64_t most = std::max(most_, live_);
    if (own != no_parameter) release(step);
    return most;
  }

  // Since the last call.
  LiveParameters::Gathered gathered() { return std::exchange(gathered_, {}); }

 private:
  static constexpr std::int64_t nowhere = -1, there = -2;
  struct State {
    std::int64_t group = nowhere;  // that is under way
    std::size_t found = 0;         // the last use that the search ahead has passed
  };
  struct Gather {
    std::vector<std::size_t> parameters;
    std::size_t waited = 0;
  };

  void gather(std::vector<std::size_t> parameters) {
    ++gathered_.calls;
    for (const std::size_t p : parameters) {
      gathered_.elements += sizes_[p];
      available_ += sizes_[p];
      live_ += sizes_[p];
      states_[p].group = static_cast<std::int64_t>(groups_.size());
    }
    groups_.push_back({std::move(parameters)});
  }

  // All that were gathered as one are copied out together; the buffer goes with the last.
  void wait_for(std::size_t p) {
    if (states_[p].group == there) return;
    Gather& group = groups_[static_cast<std::size_t>(states_[p].group)];
    std::int64_t size = 0;
    for (const std::size_t other : group.parameters) size += sizes_[other];
    const bool as_one = group.parameters.size() > 1;
    if (as_one && group.waited == 0) live_ += size;
    most_ = std::max(most_, live_);
    if (++group.waited == group.parameters.size() && as_one) live_ -= size;
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
    std::vector<std::size_t> ahead;
    std::int64_t size = 0;
    while (searched_ < order_.size() && size < most) {
      const std::size_t at = searched_++;
      const std::size_t p = order_[at];
      if (p == no_parameter) continue;
      states_[p].found = at;
      if (states_[p].group != nowhere || std::ranges::find(ahead, p) != ahead.end()) continue;
      ahead.push_back(p);
      size += sizes_[p];
    }
    if (!ahead.empty()) gather(std::move(ahead));
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
  std::vector<Gather> groups_;
  LiveParameters::Gathered gathered_;
  std::size_t searched_ = 0;  // starts that the search ahead has passed
  std::int64_t available_ = 0, live_, most_ = 0;
};

}  // namespace

LiveParameters live_parameters(const Problem& problem, const WeightInventory& inventory) {
  const Modules modules = modules_of(problem, inventory);
  const Order order = order_of(modules, problem.layout.recompute == Recompute::full);
  Coordinator coordinator(problem.runtime.deepspeed, modules, order);
  LiveParameters live;
  for (std::size_t step = 0; step < order.parameters.size(); ++step) {
    if (step == order.turn) live.forward = coordinator.gathered();
    const std::int64_t now = coordinator.run(step);
    live.most = std::max(live.most, now);
    if (step >= order.turn && step < order.after_turn) live.at_turn = std::max(live.at_turn, now);
    if (step >= order.end) live.at_end = std::max(live.at_end, now);
  }
  live.backward = coordinator.gathered();
  live.updated = modules.persistent;
  return live;
}

}  // namespace zeroplan
