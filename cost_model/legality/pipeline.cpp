// Can the pipeline run these stages and micro-batches? Front door: splittable.
#include <fmt/format.h>

#include "cost_model/legality/reasons.hpp"
#include "cost_model/rank/stages.hpp"

namespace zeroplan::legality {
namespace {

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

}  // namespace

Reason enough_layers(const Problem& p) {
  const std::int64_t chunks = p.layout.pp * p.layout.vpp;
  const std::int64_t most = most_chunks(p.model, p.runtime);
  if (chunks == 1 || most >= chunks) return std::nullopt;
  const std::int64_t ends = most - p.model.layers;
  return fmt::format("{} layers{} are fewer than pp {} x vpp {}", p.model.layers,
                     ends > 0 ? fmt::format(" and {} more for the ends of the model", ends) : "",
                     p.layout.pp, p.layout.vpp);
}

Reason splittable(const Problem& p) {
  return because(!has_stages(p), "{} layers do not divide over pp {} x vpp {}", p.model.layers,
                 p.layout.pp, p.layout.vpp);
}

Reason schedule_known(const Problem& p) {
  const unsigned known = code_of(p).schedules(p.runtime);
  const auto asked = static_cast<unsigned>(p.layout.schedule);
  if (!pipelined(p) || (known >> asked & 1U) != 0) return std::nullopt;
  std::string list;
  for (std::size_t i = 0; i < names<Schedule>().size(); ++i) {
    if ((known >> i & 1U) != 0)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", names<Schedule>()[i]);
  }
  return fmt::format("{} has no schedule {}; it has {}", runtime_name(p),
                     name_of(p.layout.schedule), list);
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

Reason batch(const Problem& p) {
  const std::int64_t unit = p.layout.dp * p.layout.micro_batch;
  return because(p.training.global_batch % unit != 0,
                 "global batch {} is not a multiple of dp {} x micro-batch {}",
                 p.training.global_batch, p.layout.dp, p.layout.micro_batch);
}

}  // namespace zeroplan::legality
