// Can the pipeline run these stages and micro-batches? Front door: splittable.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cost_model/legality/reasons.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan::legality {
namespace {

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

unsigned schedules_of(const RuntimeSpec& runtime) {
  const auto set = [](std::initializer_list<Schedule> list) {
    unsigned bits = 0;
    for (const Schedule s : list) bits |= 1U << static_cast<unsigned>(s);
    return bits;
  };
  switch (runtime.kind) {
    case Runtime::megatron:
      switch (runtime.megatron.pipeline_code) {
        case PipelineCode::megatron:
          return set({Schedule::one_f_one_b, Schedule::interleaved});
        case PipelineCode::zero_bubble:
          return set({Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                      Schedule::zb_h2, Schedule::zb_v});
        case PipelineCode::dualpipe:
          return set({Schedule::dualpipe});
      }
      return 0;
    case Runtime::fsdp2:
      return set({Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_v});
    case Runtime::deepspeed:
      return set({Schedule::one_f_one_b});
    case Runtime::nanotron:
    case Runtime::zeroplan:
      return set({Schedule::gpipe, Schedule::one_f_one_b});
    default:
      return ~0U;
  }
}

// Of a layout that is given as a whole.
Reason broken_layout(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const PipelineLayout& layout = set.pipeline_model_parallel_layout;
  const std::int64_t layers =
      std::accumulate(layout.layers.begin(), layout.layers.end(), std::int64_t{0});
  if (std::ssize(layout.layers) != p.layout.pp * p.layout.vpp) {
    return fmt::format("pipeline_model_parallel_layout has {} chunks, not pp {} x vpp {}",
                       layout.layers.size(), p.layout.pp, p.layout.vpp);
  }
  if (layers != p.model.layers) {
    return fmt::format("pipeline_model_parallel_layout places {} layers, not {}", layers,
                       p.model.layers);
  }
  if (layout.mtp_modules != set.mtp_num_layers) {
    return fmt::format(
        "pipeline_model_parallel_layout places {} modules where mtp_num_layers is {}",
        layout.mtp_modules, set.mtp_num_layers);
  }
  return because(set.pipeline_code != PipelineCode::megatron,
                 "pipeline_model_parallel_layout is Megatron-Core's own, not of pipeline_code {}",
                 name_of(set.pipeline_code));
}

// Megatron-Core takes one way to say it (core/transformer/transformer_config.py).
Reason several_splits(const MegatronSettings& set) {
  const bool counts_ends =
      set.account_for_embedding_in_pipeline_split || set.account_for_loss_in_pipeline_split;
  const bool own_ends =
      set.decoder_first_pipeline_num_layers > 0 || set.decoder_last_pipeline_num_layers > 0;
  const bool whole = set.pipeline_model_parallel_layout.given();
  return because(counts_ends + own_ends + whole > 1,
                 "account_for_*_in_pipeline_split, decoder_*_pipeline_num_layers and "
                 "pipeline_model_parallel_layout exclude each other");
}

}  // namespace

Reason enough_layers(const Problem& p) {
  const std::int64_t chunks = p.layout.pp * p.layout.vpp;
  const std::int64_t most = most_chunks(p.model, p.runtime);
  const bool given = p.runtime.kind == Runtime::megatron &&
                     p.runtime.megatron.pipeline_model_parallel_layout.given();
  if (given || chunks == 1 || most >= chunks) return std::nullopt;
  const std::int64_t ends = most - p.model.layers;
  return fmt::format("{} layers{} are fewer than pp {} x vpp {}", p.model.layers,
                     ends > 0 ? fmt::format(" and {} more for the ends of the model", ends) : "",
                     p.layout.pp, p.layout.vpp);
}

Reason splittable(const Problem& p) {
  if (p.runtime.kind == Runtime::megatron) {
    if (Reason several = several_splits(p.runtime.megatron)) return several;
    if (p.runtime.megatron.pipeline_model_parallel_layout.given()) return broken_layout(p);
  }
  return because(!has_stages(p), "{} layers do not divide over pp {} x vpp {}", p.model.layers,
                 p.layout.pp, p.layout.vpp);
}

Reason schedule_known(const Problem& p) {
  const unsigned known = schedules_of(p.runtime);
  const auto asked = static_cast<unsigned>(p.layout.schedule);
  if (!pipelined(p) || (known >> asked & 1U) != 0) return std::nullopt;
  std::string list;
  for (std::size_t i = 0; i < names<Schedule>().size(); ++i) {
    if ((known >> i & 1U) != 0)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", names<Schedule>()[i]);
  }
  const bool megatron = p.runtime.kind == Runtime::megatron;
  return fmt::format("{} has no schedule {}; it has {}{}", runtime_name(p),
                     name_of(p.layout.schedule), list,
                     megatron ? ", and others by --set pipeline_code=zero-bubble|dualpipe" : "");
}

Reason chunks_fit_schedule(const Problem& p) {
  const Layout& l = p.layout;
  switch (l.schedule) {
    case Schedule::interleaved:
      return because(l.vpp == 1, "the interleaved schedule needs vpp above 1");
    case Schedule::zb_v:
      return because(l.vpp != 2, "zb-v places exactly two chunks on a rank, not vpp {}", l.vpp);
    default:
      return because(l.vpp > 1,
                     "vpp {} needs the interleaved schedule and pp above 1, not {} with pp {}",
                     l.vpp, name_of(l.schedule), l.pp);
  }
}

Reason schedule_needs_pipeline(const Problem& p) {
  const bool default_schedule = p.layout.schedule == Schedule::one_f_one_b;
  return because(!pipelined(p) && !default_schedule, "schedule {} needs pp above 1",
                 name_of(p.layout.schedule));
}

Reason dualpipe_pairs(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  return because(
      p.layout.schedule == Schedule::dualpipe &&
          (p.layout.pp % 2 != 0 || m < 2 * p.layout.pp || m % 2 != 0),
      "dualpipe needs an even pp and an even number of micro-batches, at least 2 x pp = {}, not {}",
      2 * p.layout.pp, m);
}

Reason no_tied_pipeline(const Problem& p) {
  return because(pipelined(p) && p.model.tied_embeddings,
                 "{} ties embedding and head, which {} cannot place on two stages", p.model.name,
                 runtime_name(p));
}

Reason batch(const Problem& p) {
  const std::int64_t unit = p.layout.dp * p.layout.micro_batch;
  return because(p.training.global_batch % unit != 0,
                 "global batch {} is not a multiple of dp {} x micro-batch {}",
                 p.training.global_batch, p.layout.dp, p.layout.micro_batch);
}

// Groups are at least as long as the pipeline, and so is a last, shorter one.
Reason interleaved_groups(const Problem& p) {
  if (p.layout.schedule != Schedule::interleaved) return std::nullopt;
  const std::int64_t m = micro_batches(p);
  const std::int64_t pp = p.layout.pp;
  const std::int64_t group = pipeline_of(p, m).group;
  if (group == pp) {
    return because(m == 0 || m % pp != 0,
                   "{} micro-batches are not a multiple of pp {}, as interleaving needs", m, pp);
  }
  const bool rest_too_short = m % group != 0 && m % group < pp;
  return because(group < pp || group > m || rest_too_short,
                 "{} micro-batches in groups of {} leave a group shorter than pp {}", m, group, pp);
}

Reason torch_micro_batches(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  if (!pipelined(p)) return std::nullopt;
  if (p.layout.schedule == Schedule::interleaved) {
    const std::int64_t rounds = std::max<std::int64_t>(1, m / p.layout.pp);
    return because(m % rounds != 0,
                   "{} micro-batches are not a multiple of their {} rounds over pp {}", m, rounds,
                   p.layout.pp);
  }
  return because(m < p.layout.pp,
                 "{} micro-batches are fewer than the {} stages, which PyTorch refuses", m,
                 p.layout.pp);
}

Reason nanotron_micro_batches(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  const std::int64_t least = p.layout.pp - 1;
  return because(p.layout.schedule == Schedule::one_f_one_b && m < least,
                 "{} micro-batches are fewer than the {} of nanotron's 1F1B over pp {}", m, least,
                 p.layout.pp);
}

}  // namespace zeroplan::legality
