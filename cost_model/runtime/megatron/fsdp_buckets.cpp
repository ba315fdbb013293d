// Which layers does Megatron-FSDP hold whole, and when? Front door: fsdp_buckets.
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/states/divided_buckets.hpp"

namespace zeroplan {
namespace {

using When = BucketEvent::When;

struct Bucket {
  bool of_mlp;            // its first gradient is that of fc1 or fc2
  std::int64_t elements;  // as the queues count them
  Bytes parameters;
  Bytes gradients;
  bool copies = false;  // gradients when they are reduced; else they are made here
};

// Walks the passes of one micro-batch as the two pipelines do.
class Walk {
 public:
  // Of narrower groups too: with the least of each bucket, and by queues that count the most.
  Walk(const Problem& problem, const WeightInventory& inventory, const Stage& stage, bool narrower)
      : p_(problem),
        sized_as_(narrower ? BucketGroup::least_of_narrower : BucketGroup::own),
        counted_as_(narrower ? BucketGroup::most_of_narrower : BucketGroup::own),
        gathers_(problem.layout.zero == ZeroStage::parameters) {
    const StateRecipe recipe = state_recipe(problem);
    parameter_bytes_ = recipe.parameter_bytes;
    gradient_bytes_ = reduced_gradient_bytes(problem);
    ByKind<Unit> layers;
    for (const LayerKind kind : all_layer_kinds) layers[kind] = unit_of(inventory.layer(kind));
    reserve(stage);
    for (const LayerRange& range : stage.chunks) {
      for (std::int64_t i = range.first; i < range.last; ++i) {
        passed_.push_back(units());
        add(layers[kind_of(problem.model, i)]);
      }
    }
    layers_ = units();
    const std::int64_t modules = stage.head ? trained_mtp_modules(problem) : 0;
    for (std::int64_t i = 0; i < modules; ++i) {
      const LayerKinds kinds = kinds_of_mtp_module(problem.model);
      layers_of_module_ = kinds.size();
      const bool again = i >= held_mtp_modules(problem);
      for (const LayerKind kind : kinds) {
        passed_.push_back(again ? passed_[passed_.size() - kinds.size()] : units());
        if (!again) add(layers[kind]);
      }
    }
    for (const std::vector<Weight>& weights : buckets_of_ends(problem, inventory, stage)) {
      ends_.push_back(bucket(bucket_elements(problem, weights, sized_as_).dense,
                             bucket_elements(problem, weights, counted_as_).dense, parameter_bytes_,
                             false));
    }
    constexpr std::int64_t usual = 1'000'000'000;
    const std::int64_t two_units =
        gathers_ && units() > 0 ? 2 * (elements_ / static_cast<std::int64_t>(units())) : 0;
    in_queue_ = std::max(usual, two_units);
    held_.resize(buckets_.size());
  }

  FsdpBuckets run() {
    std::vector<BucketsOfBlock> layers(passed_.size());
    BucketsOfBlock embedding, head;
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      gather(passed_[i], true, layers[i]);
      release(passed_[i], When::after_forward, layers[i]);
    }
    // Embedding and head share the last bucket, or have one each; a tied table has its gradient
    // from the head on.
    make(When::other_weights, ends_.back(), head);
    if (ends_.size() > 1) {
      reduce(ends_.back(), head);
      make(When::other_weights, ends_.front(), p_.model.tied_embeddings ? head : embedding);
    }
    std::vector<bool> has_gradients(units());
    for (std::size_t i = passed_.size(); i-- > 0;) {
      const std::size_t unit = passed_[i];
      gather(unit, false, layers[i]);
      release(unit, When::after_backward, layers[i]);
      // One that runs several times has gradients from the last run to the first, which stands
      // where the unit does.
      const bool begins = !has_gradients[unit];
      const bool ends = i == unit;
      has_gradients[unit] = true;
      for (std::size_t b = firsts_[unit + 1]; b-- > firsts_[unit];) {  // experts come first
        const Bucket& bucket = buckets_[b];
        const When first = bucket.of_mlp ? When::mlp_weights : When::other_weights;
        if (begins && !bucket.copies) make(first, bucket, layers[i]);
        if (!ends) continue;
        if (bucket.copies) make(When::after_backward, bucket, layers[i]);
        reduce(bucket, layers[i]);
      }
    }
    for (; freed_ < reduced_.size(); ++freed_) free(*reduced_[freed_], embedding);
    free(ends_.front(), embedding);
    FsdpBuckets result;
    append(result, embedding);
    for (std::size_t i = 0; i < passed_.size(); ++i) {
      const std::size_t place = i < layers_ ? 0 : (i - layers_) % layers_of_module_;
      const bool of_module = i >= layers_;
      if (of_module && place == 0) append(result, {});  // what leads into a module
      append(result, layers[i]);
      if (of_module && place + 1 == layers_of_module_) append(result, {});
    }
    append(result, head);
    return result;
  }

  // Layers gathered with the first bucket of the ends, as any are ahead of another.
  std::vector<Bytes> early() const {
    std::vector<Bytes> list;
    std::int64_t ahead = 0;
    for (std::size_t i = 1; i < ends_.size(); ++i) ahead += ends_[i].elements;
    for (std::size_t i = 0; gathers_ && i < buckets_.size() && ahead < in_queue_ / 2; ++i) {
      ahead += buckets_[i].elements;
      list.push_back(buckets_[i].parameters);
    }
    return list;
  }

 private:
  struct Unit {
    boost::container::small_vector<Bucket, 2> buckets;
    std::int64_t elements = 0;  // without padding
  };
  Unit unit_of(const std::vector<Weight>& weights) const {
    const auto [dense, expert] = bucket_elements(p_, weights, sized_as_);
    const BucketElements counted = bucket_elements(p_, weights, counted_as_);
    // Vectors, which stay wide where matrices are of 8 bits, are small.
    const bool narrow = keeps_8_bit_matrices(p_) && !weights.empty() && !weights.front().wide;
    const std::int64_t bytes = narrow ? 1 : parameter_bytes_;
    Unit unit{.elements = local_elements(weights, p_)};
    if (dense > 0) unit.buckets.push_back(bucket(dense, counted.dense, bytes, expert == 0));
    if (expert > 0) unit.buckets.push_back(bucket(expert, counted.expert, bytes, true));
    // What no other rank has a part of is in the buffers of the states, which no bucket copies, but
    // to reduce gradients in another type.
    const bool of_narrower = sized_as_ == BucketGroup::least_of_narrower;  // of one rank, too
    if (expert > 0 && (of_narrower || shard_widths(p_).expert == 1)) {
      Bucket& whole = unit.buckets.back();
      whole.parameters = Bytes{};
      whole.copies = true;
      if (reduced_gradient_bytes(p_) == main_gradient_bytes(p_)) whole.gradients = Bytes{};
    }
    return unit;
  }
  void reserve(const Stage& stage) {
    constexpr std::int64_t of_modules = 4;  // as most have at most
    const auto layers = static_cast<std::size_t>(layer_count(stage) + of_modules);
    buckets_.reserve(2 * layers);
    firsts_.reserve(layers + 1);
    passed_.reserve(layers);
    reduced_.reserve(buckets_.capacity());
  }
  void add(const Unit& unit) {
    buckets_.insert(buckets_.end(), unit.buckets.begin(), unit.buckets.end());
    firsts_.push_back(buckets_.size());
    elements_ += unit.elements;
  }
  std::size_t units() const { return firsts_.size() - 1; }

  Bucket bucket(std::int64_t elements,
                std::int64_t counted,
                std::int64_t parameter_bytes,
                bool of_mlp) const {
    const auto rounded = [](std::int64_t bytes) { return Bytes{round_up(bytes, allocation_unit)}; };
    return {.of_mlp = of_mlp,
            .elements = counted,
            .parameters = rounded(parameter_bytes * elements),
            .gradients = rounded(gradient_bytes_ * elements)};
  }

  static void add(BucketsOfBlock& events, const BucketEvent& event) {
    if (event.bytes > Bytes{}) events.push_back(event);
  }
  static void make(When when, const Bucket& bucket, BucketsOfBlock& events) {
    add(events, {when, BucketEvent::gradients, true, bucket.gradients});
  }
  static void free(const Bucket& bucket, BucketsOfBlock& events) {
    add(events, {When::after_backward, BucketEvent::gradients, false, bucket.gradients});
  }

  // The unit's buckets, and the next ones in the direction of the pass until half of what may
  // travel does.
  void gather(std::size_t unit, bool forward, BucketsOfBlock& events) {
    if (!gathers_) return;
    const When when = forward ? When::before_forward : When::before_backward;
    std::size_t first = firsts_[unit], last = firsts_[unit + 1];
    std::int64_t ahead = 0;
    while (ahead < in_queue_ / 2 && (forward ? last < buckets_.size() : first > 0)) {
      ahead += buckets_[forward ? last++ : --first].elements;
    }
    for (std::size_t i = first; i < last; ++i) {
      if (held_[i]) continue;
      held_[i] = true;
      add(events, {when, BucketEvent::parameters, true, buckets_[i].parameters});
    }
  }

  void release(std::size_t unit, When when, BucketsOfBlock& events) {
    for (std::size_t i = firsts_[unit]; gathers_ && i < firsts_[unit + 1]; ++i) {
      held_[i] = false;
      add(events, {when, BucketEvent::parameters, false, buckets_[i].parameters});
    }
  }

  // Waits for the first of those on their way while they are too many.
  void reduce(const Bucket& bucket, BucketsOfBlock& events) {
    for (; travelling_ > in_queue_; ++freed_) {
      travelling_ -= reduced_[freed_]->elements;
      free(*reduced_[freed_], events);
    }
    reduced_.push_back(&bucket);
    travelling_ += bucket.elements;
  }

  static void append(FsdpBuckets& result, const BucketsOfBlock& buckets) {
    if (!result.blocks.empty() && result.blocks.back().buckets == buckets) {
      ++result.blocks.back().count;
    } else {
      result.blocks.emplace_back(buckets);
    }
  }

  const Problem& p_;
  BucketGroup sized_as_, counted_as_;
  bool gathers_;
  std::int64_t parameter_bytes_ = 0;
  std::int64_t gradient_bytes_ = 0;
  std::vector<Bucket> buckets_;         // of units
  std::vector<std::size_t> firsts_{0};  // bucket of each unit, then their number
  std::vector<Bucket> ends_;            // of what is in no layer
  std::vector<std::size_t> passed_;     // unit of each layer, in the order of the forward pass
  std::size_t layers_ = 0;              // of the decoder, the others are of MTP modules
  std::size_t layers_of_module_ = 1;
  std::int64_t elements_ = 0;  // of all units, without padding
  std::int64_t in_queue_ = 0;  // of gradients, when another bucket follows; twice of parameters
  std::vector<bool> held_;
  std::vector<const Bucket*> reduced_;  // so far
  std::size_t freed_ = 0;               // of these, the first ones
  std::int64_t travelling_ = 0;         // elements of the others
};

// Of what is in no layer, bucket by bucket.
std::vector<Bytes> end_parameters(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage,
                                  BucketGroup group = BucketGroup::own) {
  const std::int64_t element = state_recipe(problem).parameter_bytes;
  std::vector<Bytes> list;
  for (const std::vector<Weight>& weights : buckets_of_ends(problem, inventory, stage)) {
    const std::int64_t bytes = element * bucket_elements(problem, weights, group).dense;
    list.emplace_back(round_up(bytes, allocation_unit));
  }
  return list;
}

Bytes sum(const std::vector<Bytes>& list) {
  return std::accumulate(list.begin(), list.end(), Bytes{});
}

}  // namespace

FsdpBuckets fsdp_buckets(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  return Walk(problem, inventory, stage, false).run();
}

FsdpBuckets least_fsdp_buckets(const Problem& problem,
                               const WeightInventory& inventory,
                               const Stage& stage) {
  return Walk(problem, inventory, stage, true).run();
}

BucketRun::BucketRun(const BucketsOfBlock& of_each) : buckets(of_each) {
  for (const BucketEvent& event : buckets) {
    PassBytes& sum = bytes[static_cast<std::size_t>(event.when)];
    sum.left += event.change();
    sum.peak = std::max(sum.peak, sum.left);
  }
}

Bytes FsdpBuckets::at_first_backward(std::int64_t layers) const {
  Bytes live;
  std::int64_t after = -1 - layers;  // blocks after the last layer, the embedding being first
  for (const BucketRun& run : blocks) {
    after += run.count;
    live += run.count * (run.at(When::before_forward).left + run.at(When::after_forward).left);
  }
  for (auto run = blocks.rbegin(); run != blocks.rend(); after -= run->count, ++run) {
    for (const When when :
         {When::before_backward, When::mlp_weights, When::other_weights, When::after_backward}) {
      live += std::min(after, run->count) * run->at(when).left;
    }
    if (after >= run->count) continue;
    live += run->at(When::before_backward).left;
    break;
  }
  return live;
}

Bytes fsdp_gathered_ends(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  if (problem.layout.zero != ZeroStage::parameters) return {};
  return sum(end_parameters(problem, inventory, stage));
}

Bytes fsdp_padding_of_ends(const Problem& problem,
                           const WeightInventory& inventory,
                           const Stage& stage) {
  const auto least = BucketGroup::least_of_narrower;
  return sum(end_parameters(problem, inventory, stage)) -
         sum(end_parameters(problem, inventory, stage, least));
}

Bytes fsdp_first_bucket(const Problem& problem,
                        const WeightInventory& inventory,
                        const Stage& stage) {
  return end_parameters(problem, inventory, stage).front();
}

std::vector<Bytes> fsdp_gathered_early(const Problem& problem,
                                       const WeightInventory& inventory,
                                       const Stage& stage) {
  return Walk(problem, inventory, stage, false).early();
}

}  // namespace zeroplan
