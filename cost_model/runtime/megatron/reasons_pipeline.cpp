// What of a pipeline does Megatron-Core refuse?
#include "cost_model/runtime/megatron/reasons.hpp"

#include <numeric>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan::megatron_reasons {
namespace {

using namespace legality;  // NOLINT: what is wrong is said in its words

// What is wrong with a pipeline layout that is given as a whole.
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

// Megatron-Core takes one way to say a split (core/transformer/transformer_config.py).
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

// A layout that is given has as many chunks as it has: whether they are the right ones is the
// split's question.
Reason enough_layers_to_split(const Problem& p) {
  if (p.runtime.megatron.pipeline_model_parallel_layout.given()) return std::nullopt;
  return enough_layers(p);
}

Reason splittable_as_set(const Problem& p) {
  if (Reason several = several_splits(p.runtime.megatron)) return several;
  if (p.runtime.megatron.pipeline_model_parallel_layout.given()) return broken_layout(p);
  return splittable(p);
}

Reason schedule_of_pipeline_code(const Problem& p) {
  Reason reason = schedule_known(p);
  if (reason) *reason += ", and others by --set pipeline_code=zero-bubble|dualpipe";
  return reason;
}

Reason mtp_modules(const Problem& p) {
  constexpr std::int64_t most = 64;
  return because(p.runtime.megatron.mtp_num_layers > most, "mtp_num_layers {} is above {}",
                 p.runtime.megatron.mtp_num_layers, most);
}

// Groups are at least as long as the pipeline, and so is a last, shorter one.
Reason interleaved_groups(const Problem& p) {
  if (p.layout.schedule != Schedule::interleaved) return std::nullopt;
  const std::int64_t m = micro_batches(p);
  const std::int64_t pp = p.layout.pp;
  const std::int64_t group = pipeline_of(p, m).interleaving.group;
  if (group == pp) {
    return because(m == 0 || m % pp != 0,
                   "{} micro-batches are not a multiple of pp {}, as interleaving needs", m, pp);
  }
  const bool rest_too_short = m % group != 0 && m % group < pp;
  return because(group < pp || group > m || rest_too_short,
                 "{} micro-batches in groups of {} leave a group shorter than pp {}", m, group, pp);
}

}  // namespace zeroplan::megatron_reasons
