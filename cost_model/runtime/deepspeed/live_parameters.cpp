// Which parameters are gathered at once under ZeRO 3? Front door: live_parameters.
#include "cost_model/runtime/deepspeed/live_parameters.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::int64_t largest_persistent = 100'000;  // stage3_param_persistence_threshold
constexpr std::size_t no_parameter = std::numeric_limits<std::size_t>::max();
// Modules that have none themselves: the model and its body; a layer, attention, MLP, activation.
constexpr std::size_t around_all = 2, around_layer = 4;

// The modules of a model in forward order, by the parameter of each.
struct Modules {
  std::vector<std::int64_t> sizes;      // of parameters that come and go
  LiveParameters::Gathered persistent;  // those that stay
  std::vector<std::size_t> parameters;  // of each module
  // Where embedding, each layer and head begin, and the end.
  std::vector<std::size_t> begins;

  std::size_t parts() const { return begins.size() - 1; }
  std::size_t count(std::size_t part) const { return begins[part + 1] - begins[part]; }
};

std::vector<std::int64_t> sizes_of(const std::vector<Weight>& weights, const Problem& p) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(weights.size());
  for (const Weight& w : weights) sizes.push_back(local_weight(w, p).elements());
  return sizes;
}

Modules modules_of(const Problem& p, const WeightInventory& inventory) {
  Modules all;
  const auto add = [&](std::size_t around, const std::vector<std::int64_t>& sizes) {
    all.begins.push_back(all.parameters.size());
    all.parameters.insert(all.parameters.end(), around, no_parameter);
    for (const std::int64_t size : sizes) {
      const bool stays = size <= largest_persistent;
      all.parameters.push_back(stays ? no_parameter : all.sizes.size());
      if (stays) {
        all.persistent.elements += size;
        ++all.persistent.calls;
      } else {
        all.sizes.push_back(size);
      }
    }
  };
  const std::vector<std::int64_t> dense = sizes_of(inventory.dense_layer, p);
  const std::vector<std::int64_t> moe = sizes_of(inventory.moe_layer, p);
  add(around_all, sizes_of(inventory.embedding, p));
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    add(around_layer, kind_of(p.model, i) == LayerKind::moe ? moe : dense);
  }
  add(0, sizes_of(inventory.head, p));
  all.begins.push_back(all.parameters.size());
  return all;
}

// The order in which modules start in a step.
struct Order {
  std::vector<std::size_t> parameters;   // of each start
  std::size_t turn = 0, after_turn = 0;  // the backward pass of the head and the last layer
};

Order order_of(const Modules& all, bool recomputes) {
  Order order{.parameters = all.parameters, .turn = all.parameters.size()};
  order.parameters.reserve(3 * order.turn);
  const std::size_t head = all.parts() - 1;
  for (std::size_t part = head + 1; part-- > 0;) {
    const std::span own{all.parameters.data() + all.begins[part], all.count(part)};
    const bool is_layer = part > 0 && part < head;
    if (is_layer && recomputes) {
      order.parameters.insert(order.parameters.end(), own.begin(), own.end());
    }
    order.parameters.insert(order.parameters.end(), own.rbegin(), own.rend());
    if (part + 1 == head) order.after_turn = order.parameters.size();
  }
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

  // Since the last call.
  LiveParameters::Gathered gathered() { return std::exchange(gathered_, {}); }

 private:
  static constexpr std::int64_t nowhere = -1, there = -2;
  struct State {
    std::int64_t group = nowhere;  // that is under way
    std::size_t found = 0;         // the last use that the search ahead has passed
  };
  struct Group {
    std::int64_t size = 0;
    std::size_t parameters = 0, waited = 0;
  };

  // Into the next group that is gathered.
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
  const Modules modules = modules_of(problem, inventory);
  const Order order = order_of(modules, problem.layout.recompute == Recompute::full);
  Coordinator coordinator(problem.runtime.deepspeed, modules, order);
  LiveParameters live;
  const std::size_t end = order.parameters.size() - modules.count(0);
  for (std::size_t step = 0; step < order.parameters.size(); ++step) {
    if (step == order.turn) live.forward = coordinator.gathered();
    const std::int64_t now = coordinator.run(step);
    live.most = std::max(live.most, now);
    if (step >= order.turn && step < order.after_turn) live.at_turn = std::max(live.at_turn, now);
    if (step >= end) live.at_end = std::max(live.at_end, now);
  }
  live.backward = coordinator.gathered();
  live.updated = modules.persistent;
  return live;
}

}  // namespace zeroplan
