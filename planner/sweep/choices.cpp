// Which values does a field take? Front door: choices.
#include "planner/sweep/choices.hpp"

#include <algorithm>
#include <optional>

#include "cost_model/rank/loss_parts.hpp"
#include "planner/given.hpp"
#include "planner/sweep/recompute_values.hpp"
#include "planner/sweep/sharding_settings.hpp"
#include "planner/sweep/stage_splits.hpp"

namespace zeroplan {
namespace {

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

// Parts of the loss: as set; else whole, or 8 where whole is the default. More where parts of one
// sample would be longer than torchtitan #4514 lets them be: those of several, a smaller
// micro-batch shortens.
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
  // Schedules that put weight gradients off only where somebody chose code that has them.
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

// Sequence parallelism is off at 0, on at 1, and here on with its collectives beside products.
constexpr std::int64_t sequence_with_overlap = 2;

// User buffers reach as far as a node's links.
bool overlaps_tensor_parallelism(const Request& r, const Problem& p) {
  const MegatronSettings& set = r.runtime.megatron;
  const bool open = choices_of(r).cuts_products && !set.local_layers() && !set.tp_comm_overlap &&
                    !r.gives("tp_comm_overlap");
  return open && p.layout.tp > 1 && p.cluster.gpus_per_node % p.layout.tp == 0;
}

// Without user buffers a layout is slower and needs twelve hidden states less
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
      return numbers(l.pp > 1 ? tried.pipeline_stages : tried.every_stage);
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
      return set_stage_split(l, value);
    case Field::recompute_layers:
      return set_recompute_layers(l, value);
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
