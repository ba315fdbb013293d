#pragma once
// Rules that several runtimes have. Which has which stands in the runtimes' rooms.

#include "cost_model/legality/legality.hpp"
#include "cost_model/legality/reasons.hpp"

namespace zeroplan::rules {

using enum Field;

inline constexpr Rule positions{"M-positions", sequence_length, set_of({}), legality::positions};
inline constexpr Rule no_linear_attention{"M-linear-attention", model, set_of({}),
                                          legality::no_linear_attention};
inline constexpr Rule no_expert_latents{"M-expert-latents", model, set_of({}),
                                        legality::no_expert_latents};
inline constexpr Rule linear_attention{"M-linear-attention", model, set_of({tp, cp, pp}),
                                       legality::linear_attention};
inline constexpr Rule number_format{"G-precision", precision, set_of({}), legality::number_format};
inline constexpr Rule no_fp8{"G-fp8", precision, set_of({}), legality::no_fp8};
inline constexpr Rule magnitude{"G-magnitude", sequence_length, set_of({micro_batch}),
                                legality::magnitude};
inline constexpr Rule heads{"M-heads", tp, set_of({tp}), legality::heads};
inline constexpr Rule kv_heads{"T-kv-heads", tp, set_of({tp}), legality::kv_heads};
inline constexpr Rule hidden_width{"M-hidden-width", tp, set_of({tp}), legality::hidden_width};
inline constexpr Rule mlp_width{"M-mlp-width", tp, set_of({tp}), legality::mlp_width};
inline constexpr Rule context_halves{"M-context", cp, set_of({cp}), legality::context_halves};
inline constexpr Rule context_heads{"D-context", cp, set_of({cp}), legality::context_heads};
inline constexpr Rule world{"G-world", pp, set_of({tp, cp, pp}), legality::world};
inline constexpr Rule batch{"G-batch", global_batch, set_of({micro_batch, tp, cp, pp}),
                            legality::batch};
inline constexpr Rule experts{"M-experts", ep, set_of({ep}), legality::experts};
inline constexpr Rule dense_only{"G-experts", ep, set_of({ep, etp}), legality::dense_only};
inline constexpr Rule expert_grid{"M-expert-grid", ep, set_of({pp, ep, etp}),
                                  legality::expert_grid};
inline constexpr Rule no_expert_tensor_parallel{"T-etp", etp, set_of({etp}),
                                                legality::no_expert_tensor_parallel};
inline constexpr Rule enough_layers{"G-layers", pp, set_of({pp, vpp}), legality::enough_layers};
inline constexpr Rule sequence_parallel_needs_tp{"G-sequence-parallel", sequence_parallel,
                                                 set_of({tp, sequence_parallel}),
                                                 legality::sequence_parallel_needs_tp};
inline constexpr Rule no_sequence_parallel{"G-no-sequence-parallel", sequence_parallel,
                                           set_of({sequence_parallel}),
                                           legality::no_sequence_parallel};
inline constexpr Rule sequence_rows{"M-sequence-rows", tp, set_of({tp, cp, sequence_parallel}),
                                    legality::sequence_rows};
inline constexpr Rule splittable{"M-split", pp, set_of({pp, vpp, stage_split}),
                                 legality::splittable};
inline constexpr Rule schedule_known{"G-schedule", schedule, set_of({pp, schedule}),
                                     legality::schedule_known};
inline constexpr Rule schedule_needs_pipeline{
    "G-schedule-pipeline", schedule, set_of({pp, schedule}), legality::schedule_needs_pipeline};
inline constexpr Rule chunks_fit_schedule{"G-chunks", vpp, set_of({pp, vpp, schedule}),
                                          legality::chunks_fit_schedule};
inline constexpr Rule dualpipe_pairs{"G-dualpipe", global_batch,
                                     set_of({micro_batch, tp, cp, pp, schedule}),
                                     legality::dualpipe_pairs};
inline constexpr Rule full_recompute_only{"G-recompute", recompute, set_of({recompute}),
                                          legality::full_recompute_only};
inline constexpr Rule no_offload{"G-offload", offload, set_of({zero, offload}),
                                 legality::no_offload};
inline constexpr Rule optimizer_offload_only{"G-offload", offload, set_of({zero, offload}),
                                             legality::optimizer_offload_only};
inline constexpr Rule hybrid_shards{"G-hybrid-divides", hsdp, set_of({tp, cp, pp, hsdp}),
                                    legality::hybrid_shards};
inline constexpr Rule no_hybrid{"G-hybrid", hsdp, set_of({hsdp}), legality::no_hybrid};
inline constexpr Rule hybrid_needs_sharding{"G-hybrid-stage", hsdp, set_of({hsdp, zero}),
                                            legality::hybrid_needs_sharding};

}  // namespace zeroplan::rules
