// Which values does a field take? Front door: choices.
#include "planner/sweep/choices.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "planner/given.hpp"
#include "planner/sweep/sharding_settings.hpp"

namespace zeroplan {
namespace {

template <class T>
Values numbers(std::span<const T> values) {
  Values list;
  for (const T value : values) list.push_back(static_cast<std::int64_t>(value));
  return list;
}

template <class T>
Values numbers(std::initializer_list<T> values) {
  return numbers(std::span(values));
}

Values divisors(std::int64_t value, std::int64_t limit) {
  return numbers<std::int64_t>(divisors_up_to(value, limit));
}

Values micro_batches_of(const Request& r) {
  if (r.global_batch) return divisors(*r.global_batch, largest_micro_batch);
  return numbers<std::int64_t>(powers_of_two_up_to(largest_micro_batch));
}

// Tensor and context groups: what divides the GPUs that the fields before leave over.
Values degrees(const Problem& p, std::int64_t before, std::int64_t widest) {
  return divisors(std::max<std::int64_t>(1, p.cluster.gpus / before), widest);
}

Values tensor_groups(const SearchSpace& space, const Problem& p) {
  if (!choices_of(space.request).divides_model) return {1};
  const bool inside = space.tensor_reach == TensorReach::node;
  return degrees(p, 1, inside ? std::min(widest_degree, p.cluster.gpus_per_node) : widest_degree);
}

Values context_parts(const Request& r, const Problem& p) {
  return choices_of(r).cuts_context ? degrees(p, p.layout.tp, widest_degree) : Values{1};
}

Values stage_counts(const Request& r, const Problem& p) {
  if (!choices_of(r).divides_model) return {1};
  return degrees(p, p.layout.tp * p.layout.cp, std::max<std::int64_t>(1, most_chunks(r)));
}

bool has_open_experts(const Request& r) {
  return r.model.moe && choices_of(r).divides_experts;
}

// Who can place more or fewer layers at the ends splits evenly otherwise, at most with embedding
// and head as a layer each.
Values chunks(const Request& r, const Problem& p) {
  const std::optional<std::int64_t> given = chunks_of_layout(r, p.layout.pp);
  Values list{given.value_or(1)};
  const Choices& tried = choices_of(r);
  if (given || p.layout.pp == 1 || !tried.has_several_chunks) return list;
  const MegatronSettings& set = r.runtime.megatron;
  const bool own_split =
      set.decoder_first_pipeline_num_layers > 0 || set.decoder_last_pipeline_num_layers > 0;
  const std::int64_t most = most_chunks(r);
  for (std::int64_t v = 2; v * p.layout.pp <= most; ++v) {
    const bool even = (r.model.layers + 2) % (v * p.layout.pp) <= 2;
    if (even || own_split || !tried.has_uneven_splits) list.push_back(v);
  }
  return list;
}

// Layers of the first and of the last stage as one number.
constexpr std::int64_t split_unit = 1 << 16;

// Layers of which the head multiplies as much: so many fewer a stage with an end of the model has
// where that evens out, since the embedding, as large, has its gradients to add up. None where a
// few layers more or less are as much.
std::int64_t layers_of_an_end(const ModelSpec& model, std::int64_t few) {
  const LayerKind kind = kind_of(model, model.layers - 1);
  const auto worth = static_cast<std::int64_t>(
      std::ceil(head_flops(model, 1) / layer_linear_flops(model, kind, 1)));
  return worth > few ? worth : 0;
}

// As the runtime splits by itself, or with a few layers more or less than the middle stages on the
// first and the last one; less, as many as an end of the model is worth too.
Values stage_splits(const Request& r, const Problem& p) {
  Values list{0};
  constexpr std::int64_t few = 2;
  const std::int64_t pp = p.layout.pp;
  if (!choices_of(r).has_uneven_splits || has_own_split(r) || pp == 1) return list;
  const std::int64_t layers = r.model.layers;
  const std::int64_t usual = layers / pp;
  const std::int64_t of_an_end = layers_of_an_end(r.model, few);
  const std::int64_t fewer = few + of_an_end;
  // With two stages what one has less the other has more; with others these have it.
  const std::int64_t more = pp == 2 ? fewer : few;
  const std::int64_t longer = 1 + (pp > 2 ? ceil_div(2 * of_an_end, pp - 2) : 0);
  for (std::int64_t middle = std::max<std::int64_t>(1, usual - 1); middle <= usual + longer;
       ++middle) {
    const std::int64_t ends = layers - middle * (pp - 2);
    for (std::int64_t first = std::max<std::int64_t>(1, middle - fewer); first <= middle + more;
         ++first) {
      const std::int64_t last = ends - first;
      const bool even = first == middle && last == middle;
      const bool near = last >= 1 && last >= middle - fewer && last <= middle + more;
      const bool whole_chunks = first % p.layout.vpp == 0 && last % p.layout.vpp == 0 &&
                                (pp == 2 || middle % p.layout.vpp == 0);
      const bool again = pp == 2 && middle != usual;  // without a middle it is but a window
      if (near && !even && !again && whole_chunks) list.push_back(first * split_unit + last);
    }
  }
  return list;
}

constexpr std::int64_t bit(RecomputeModule module) {
  return bit_of(module);
}

// Sets of modules of the MLP. Of experts: whoever recomputes all of a layer (moe) has the rest with
// it.
Values mlp_modules(const ModelSpec& model) {
  using enum RecomputeModule;
  if (!model.moe) return {0, bit(mlp)};
  Values list{0, bit(moe_act), bit(moe)};
  if (model.moe->shared_intermediate_size > 0) {
    list.push_back(bit(shared_experts));
    list.push_back(bit(shared_experts) | bit(moe_act));
  }
  return list;
}

// Sets as bits of RecomputeModule; 0: as the runtime is set, to the core of attention. With flash
// attention that saves next to nothing, so the others go without it; without, they go with it.
Values module_sets(const Request& r, const Problem& p) {
  using enum RecomputeModule;
  Values list;
  const bool unfused = p.training.attention == AttentionKernel::unfused;
  const Values norm_sets = has_own_norms(p) ? Values{0, bit(layernorm)} : Values{0};
  const std::int64_t core = unfused ? bit(core_attn) : 0;
  if (unfused || r.recompute) list.push_back(0);
  for (const std::int64_t latent : {std::int64_t{0}, bit(mla_up_proj)}) {
    if (latent > 0 && !r.model.attention.mla) continue;
    for (const std::int64_t inner : mlp_modules(r.model)) {
      for (const std::int64_t norms : norm_sets) {
        const std::int64_t set = latent | inner | norms;
        if (set > 0) list.push_back(core | set);
      }
    }
  }
  return list;
}

Values recompute_modules(const Request& r, const Problem& p) {
  const bool open = choices_of(r).has_recompute_modules && !r.gives("recompute_modules") &&
                    p.layout.recompute == Recompute::selective;
  return open ? module_sets(r, p) : Values{0};
}

Values recompute_policies(const Request& r) {
  using enum Recompute;
  if (choices_of(r).has_recompute_modules) return numbers({none, selective, full});
  return numbers<Recompute>(recompute_choices(r));
}

// Of each chunk, in Megatron-Core; 0: all, which is what full recompute means where it is given.
Values recompute_layers(const Request& r, const Problem& p) {
  Values list{0};
  const bool open = choices_of(r).has_recompute_modules && !r.recompute &&
                    r.runtime.megatron.recompute_num_layers == 0 &&
                    !r.gives("recompute_num_layers") && !r.gives("recompute_method") &&
                    r.runtime.megatron.recompute_method == RecomputeMethod::uniform;
  if (!open || p.layout.recompute != Recompute::full) return list;
  for (std::int64_t k = 1; k < r.model.layers / (p.layout.pp * p.layout.vpp); ++k) {
    list.push_back(k);
  }
  return list;
}

// As set; else whole, or in 8 parts where whole is the default. In more where parts of one sample
// would be longer than torchtitan #4514 lets them be: those of several, a smaller micro-batch
// shortens.
Values loss_chunks(const Request& r, const Problem& p) {
  Values list{0};
  if (r.gives("loss_chunks") || !has_loss_parts(p)) return list;
  constexpr std::int64_t usual = 8;
  constexpr std::int64_t more = 32;
  constexpr std::int64_t longest_part = 2048;
  list.push_back(default_loss_parts(p) == 1 ? usual : 1);
  const std::int64_t sample = p.training.sequence_length / p.layout.cp;
  if (sample > usual * longest_part) list.push_back(more);
  return list;
}

Values schedules(const Request& r, const Problem& p) {
  using enum Schedule;
  if (p.layout.pp == 1) return numbers({one_f_one_b});
  const unsigned known = code_of(r.runtime).schedules(r.runtime);
  Values list;
  const auto try_those = [&](std::initializer_list<Schedule> schedules) {
    for (const Schedule s : schedules) {
      if ((known & set_of_schedules({s})) != 0) list.push_back(static_cast<std::int64_t>(s));
    }
  };
  // Those that put weight gradients off only where somebody chose code that has them.
  const bool chose_code = r.runtime.megatron.pipeline_code != PipelineCode::megatron;
  if (p.layout.vpp > 1) {
    try_those({interleaved});
    if (chose_code && p.layout.vpp == 2) try_those({zb_v});
  } else {
    try_those({one_f_one_b, gpipe});
    if (chose_code) try_those({zb_h1, zb_h2, dualpipe});
  }
  return list.empty() ? numbers({one_f_one_b}) : list;  // for a rule to refuse
}

// Off, on, and on with its collectives beside products.
constexpr std::int64_t sequence_with_overlap = 2;

// User buffers reach as far as a node's links.
bool overlaps_tensor_parallelism(const Request& r, const Problem& p) {
  const MegatronSettings& set = r.runtime.megatron;
  const bool open = choices_of(r).cuts_products && !set.local_layers() && !set.tp_comm_overlap &&
                    !r.gives("tp_comm_overlap");
  return open && p.layout.tp > 1 && p.cluster.gpus_per_node % p.layout.tp == 0;
}

// Without the buffers a layout is slower and needs twelve hidden states less
// (states/overheads.hpp): looked at where memory decides.
Values sequence_choices(const SearchSpace& space, const Problem& p) {
  const Request& r = space.request;
  const bool may_be_on = p.layout.tp > 1 && choices_of(r).splits_norms;
  if (!r.sequence_parallel.value_or(may_be_on)) return {0};
  const bool overlaps = overlaps_tensor_parallelism(r, p);
  Values list;
  if (overlaps) list.push_back(sequence_with_overlap);
  if (!overlaps || space.spares_buffers) list.push_back(1);
  if (!r.sequence_parallel) list.push_back(0);
  return list;
}

Values sharding_groups(const Request& r, const Problem& p) {
  Values list{0};
  if (!choices_of(r).has_hybrid_sharding) return list;
  for (const std::int64_t width : divisors_up_to(p.layout.dp, p.layout.dp - 1)) {
    if (width > 1) list.push_back(width);
  }
  return list;
}

std::optional<std::int64_t> given(const Request& r, Field field) {
  return visit_given(r, field, [](const auto& optional) -> std::optional<std::int64_t> {
    if (!optional) return std::nullopt;
    return static_cast<std::int64_t>(*optional);
  });
}

Values open_choices(const SearchSpace& space, Field field, const Problem& p) {
  const Request& r = space.request;
  const Choices& tried = choices_of(r);
  const Layout& l = p.layout;
  switch (field) {
    case Field::micro_batch:
      return micro_batches_of(r);
    case Field::tp:
      return tensor_groups(space, p);
    case Field::cp:
      return context_parts(r, p);
    case Field::pp:
      return stage_counts(r, p);
    case Field::ep:
      return has_open_experts(r) ? divisors(r.model.moe->experts, p.cluster.gpus) : Values{1};
    case Field::etp:
      return has_open_experts(r) && tried.divides_inside_experts ? divisors(l.tp, l.tp) : Values{1};
    case Field::vpp:
      return chunks(r, p);
    case Field::schedule:
      return schedules(r, p);
    case Field::hsdp:
      return sharding_groups(r, p);
    case Field::zero:
      return numbers(tried.every_stage);
    case Field::recompute:
      return recompute_policies(r);
    case Field::stage_split:
      return stage_splits(r, p);
    case Field::recompute_layers:
      return recompute_layers(r, p);
    case Field::recompute_modules:
      return recompute_modules(r, p);
    case Field::loss_chunks:
      return loss_chunks(r, p);
    case Field::knobs:
      return knobs(r, p);
    default:
      return numbers(tried.offloads);
  }
}

}  // namespace

void set_value(Layout& l, Field field, std::int64_t value) {
  switch (field) {
    case Field::tp:
      l.tp = value;
      return;
    case Field::pp:
      l.pp = value;
      return;
    case Field::vpp:
      l.vpp = value;
      return;
    case Field::cp:
      l.cp = value;
      return;
    case Field::ep:
      l.ep = value;
      return;
    case Field::etp:
      l.etp = value;
      return;
    case Field::hsdp:
      l.hsdp = value;
      return;
    case Field::micro_batch:
      l.micro_batch = value;
      return;
    case Field::zero:
      l.zero = static_cast<ZeroStage>(value);
      return;
    case Field::sequence_parallel:
      l.sequence_parallel = value != 0;
      l.tp_overlap = value == sequence_with_overlap;
      return;
    case Field::schedule:
      l.schedule = static_cast<Schedule>(value);
      return;
    case Field::recompute:
      l.recompute = static_cast<Recompute>(value);
      return;
    case Field::offload:
      l.offload = static_cast<Offload>(value);
      return;
    case Field::stage_split:
      l.first_stage = value / split_unit;
      l.last_stage = value % split_unit;
      return;
    case Field::recompute_layers:
      l.recompute_layers = value;
      return;
    case Field::loss_chunks:
      l.loss_chunks = value;
      return;
    case Field::recompute_modules:
      l.recompute_modules = static_cast<unsigned>(value);
      return;
    case Field::knobs:
      return set_sharding_settings(l, value);
    default:
      return;
  }
}

Values choices(const SearchSpace& space, Field field, const Problem& so_far) {
  if (field == Field::sequence_parallel) return sequence_choices(space, so_far);
  if (const std::optional<std::int64_t> value = given(space.request, field)) return {*value};
  return open_choices(space, field, so_far);
}

}  // namespace zeroplan
