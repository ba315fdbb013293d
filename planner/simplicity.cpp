// How simple is a layout? Front door: SimplicityOf.
#include "planner/simplicity.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// Tokens of a rank's part below which dividing the sequence is not asked for: the least that
// NVIDIA's published runs give one (405B, 8,192 tokens over cp 2; tests/reference/
// nvidia_tables.jsonl). Llama 3's authors gave each rank 8,192 (Llama Team 2024, table 4).
constexpr std::int64_t ordinary_part = 4096;

constexpr unsigned bit(Departure departure) {
  return 1U << static_cast<unsigned>(departure);
}

constexpr bool is_chosen(Field field, std::size_t depth) {
  const auto place = std::find(choice_order.begin(), choice_order.end(), field);
  return static_cast<std::size_t>(place - choice_order.begin()) < depth;
}

bool has_uneven_ends(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  return p.layout.pp > 1 &&
         (p.layout.first_stage > 0 || set.decoder_first_pipeline_num_layers > 0 ||
          set.decoder_last_pipeline_num_layers > 0 || set.account_for_embedding_in_pipeline_split ||
          set.account_for_loss_in_pipeline_split);
}

}  // namespace

SimplicityOf::SimplicityOf(const Request& r) : splits_norms_(choices_of(r).splits_norms) {
  for (const ZeroStage stage : layout_space(r).zero) {
    usual_stages_ |= 1U << static_cast<unsigned>(stage);
  }
  const auto asked = [&](bool given, Departure departure) {
    if (given) asked_ |= bit(departure);
  };
  asked(r.cp.has_value(), Departure::context);
  asked(r.tp.has_value(), Departure::tensor_reach);
  asked(r.offload.has_value(), Departure::offload);
  asked(has_own_split(r), Departure::ends);
  asked(r.hsdp.has_value(), Departure::groups);
  asked(r.sequence_parallel.has_value(), Departure::sequence);
  asked(r.schedule.has_value(), Departure::schedule);
}

Simplicity SimplicityOf::operator()(const Problem& p, std::size_t depth) const {
  const Layout& l = p.layout;
  Simplicity s{.replica = l.tp * l.pp * l.cp};
  for (const bool in_use : {l.tp > 1, l.pp > 1, l.cp > 1, l.ep > 1, l.etp > 1, l.vpp > 1,
                            l.recompute != Recompute::none}) {
    s.kinds += in_use;
  }
  const auto mark = [&](Departure departure, bool departs) {
    if (departs) s.departures |= bit(departure);
  };
  mark(Departure::context, l.cp > 1 && p.training.sequence_length / l.cp < ordinary_part);
  mark(Departure::tensor_reach, l.tp > 1 && p.cluster.gpus_per_node % l.tp != 0);
  mark(Departure::zero,
       is_chosen(Field::zero, depth) && (usual_stages_ >> static_cast<unsigned>(l.zero) & 1U) == 0);
  mark(Departure::offload, l.offload != Offload::none);
  mark(Departure::recompute, l.recompute_layers > 0 || l.recompute_modules > 0);
  mark(Departure::ends, has_uneven_ends(p));
  mark(Departure::groups, l.hsdp > 0);
  mark(Departure::sequence, is_chosen(Field::sequence_parallel, depth) && l.tp > 1 &&
                                !l.sequence_parallel && splits_norms_);
  const bool usual = l.schedule == Schedule::one_f_one_b || l.schedule == Schedule::interleaved;
  mark(Departure::schedule, l.pp > 1 && !usual);
  mark(Departure::settings,
       l.reduce_bucket > 0 || l.reshards_all || l.gathered_layers > 0 || l.loss_chunks > 0);
  s.departures &= ~asked_;
  return s;
}

}  // namespace zeroplan
