#pragma once
// Every layout that a search tries of a request, by loops over plain numbers instead of the
// search's axes, each as a person would ask about it: every field and setting given.

#include <cmath>
#include <functional>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "planner/request.hpp"

namespace zeroplan::tests {

using Visit = std::function<void(const Request&)>;

inline std::int64_t dp_of(const Request& r) {
  return r.cluster.gpus / (*r.tp * *r.cp * *r.pp);
}

// All divisions of the GPUs that a search tries of the runtime, with micro-batches that divide the
// batch.
inline void each_grid(const Request& r, const Visit& visit) {
  const std::int64_t gpus = r.cluster.gpus;
  const bool megatron = r.runtime.kind == Runtime::megatron;
  const bool cuts_more = megatron || r.runtime.kind == Runtime::fsdp2;
  const bool moe = r.model.moe.has_value() && cuts_more;
  const std::int64_t experts = moe ? r.model.moe->experts : 1;
  Request own = r;
  for (std::int64_t mb = 1; mb <= std::min<std::int64_t>(32, *r.global_batch); ++mb) {
    for (std::int64_t tp = 1; tp <= gpus; ++tp) {
      for (std::int64_t cp = 1; tp * cp <= gpus && (cp == 1 || cuts_more); ++cp) {
        for (std::int64_t pp = 1; tp * cp * pp <= gpus; ++pp) {
          if (gpus % (tp * cp * pp) != 0) continue;
          for (std::int64_t ep = 1; ep <= experts && ep <= gpus; ++ep) {
            for (std::int64_t etp = 1; etp <= (moe && megatron ? tp : 1); ++etp) {
              if (tp % etp != 0) continue;
              own.micro_batch = mb;
              own.tp = tp;
              own.cp = cp;
              own.pp = pp;
              own.ep = ep;
              own.etp = etp;
              visit(own);
            }
          }
        }
      }
    }
  }
}

// Chunks of a rank, and the schedules that may run them. `most`: of the pipeline, that are tried.
inline void each_schedule(const Request& r,
                          const std::function<bool(std::int64_t chunks)>& tried,
                          const Visit& visit) {
  Request own = r;
  for (std::int64_t vpp = 1; vpp <= r.model.layers + 2; ++vpp) {
    if (vpp > 1 && (*r.pp == 1 || !tried(vpp * *r.pp))) continue;
    own.vpp = vpp;
    for (const Schedule schedule :
         {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved}) {
      if ((schedule == Schedule::interleaved) != (vpp > 1)) continue;
      if (*r.pp == 1 && schedule == Schedule::gpipe) continue;  // no other order than 1f1b's
      own.schedule = schedule;
      visit(own);
    }
  }
}

inline void each_sharding(const Request& r, const Visit& visit) {
  Request own = r;
  for (const ZeroStage zero :
       {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
    own.zero = zero;
    for (std::int64_t width = 0; width < dp_of(r); ++width) {
      if (width == 1 || (width > 0 && dp_of(r) % width != 0)) continue;
      own.hsdp = width;
      visit(own);
    }
  }
}

inline void give(Request& r, std::string_view setting) {
  r.given_settings.emplace_back(setting);
}

// Layers that an end of the model is worth, where that is more than two.
inline std::int64_t worth_of_an_end(const ModelSpec& model) {
  const LayerKind kind = kind_of(model, model.layers - 1);
  const double layers = head_flops(model, 1) / layer_linear_flops(model, kind, 1);
  return layers > 2 ? static_cast<std::int64_t>(std::ceil(layers)) : 0;
}

// Megatron-Core's first and last stages: as it splits by itself, or up to two layers more or less
// than the middle ones, and as many less as an end of the model is worth.
inline void each_split(const Request& r, const Visit& visit) {
  visit(r);
  const std::int64_t pp = *r.pp, layers = r.model.layers, usual = layers / pp;
  if (pp == 1) return;
  const std::int64_t worth = worth_of_an_end(r.model);
  const std::int64_t more = pp == 2 ? 2 + worth : 2;
  const std::int64_t longest = usual + 1 + (pp > 2 ? ceil_div(2 * worth, pp - 2) : 0);
  Request own = r;
  give(own, "decoder_first_pipeline_num_layers");
  give(own, "decoder_last_pipeline_num_layers");
  for (std::int64_t first = 1; first < layers; ++first) {
    for (std::int64_t last = 1; first + last <= layers; ++last) {
      const std::int64_t rest = layers - first - last;
      const auto near = [&](std::int64_t middle) {
        const auto is_near = [&](std::int64_t end) {
          return end >= middle - 2 - worth && end <= middle + more;
        };
        return is_near(first) && is_near(last);
      };
      const std::int64_t middle = pp > 2 ? rest / (pp - 2) : usual;
      const bool whole =
          pp > 2 ? rest % (pp - 2) == 0 && middle >= std::max(1L, usual - 1) && middle <= longest
                 : rest == 0;
      const bool even = first == middle && last == middle;
      if (!whole || even || !near(middle)) continue;
      if (first % *r.vpp != 0 || last % *r.vpp != 0 || (pp > 2 && middle % *r.vpp != 0)) continue;
      own.runtime.megatron.decoder_first_pipeline_num_layers = first;
      own.runtime.megatron.decoder_last_pipeline_num_layers = last;
      visit(own);
    }
  }
}

inline void each_megatron_recompute(const Request& r, const Visit& visit) {
  using enum RecomputeModule;
  Request own = r;
  own.recompute = Recompute::none;
  visit(own);
  own.recompute = Recompute::full;
  visit(own);
  own.runtime.megatron.recompute_method = RecomputeMethod::block;
  give(own, "recompute_method");
  give(own, "recompute_num_layers");
  for (std::int64_t k = 1; k < r.model.layers / (*r.pp * *r.vpp); ++k) {
    own.runtime.megatron.recompute_num_layers = k;
    visit(own);
  }
  own = r;
  own.recompute = Recompute::selective;
  give(own, "recompute_modules");
  const auto bit = [](RecomputeModule module) { return 1U << static_cast<unsigned>(module); };
  const bool has_norms = has_own_norms(open_problem(r));
  const bool latent = r.model.attention.mla.has_value();
  const bool shares = r.model.moe && r.model.moe->shared_intermediate_size > 0;
  for (unsigned set = 1; set < 1U << 7U; ++set) {
    const auto holds = [&](RecomputeModule module) { return (set & bit(module)) != 0; };
    if (holds(core_attn)) continue;  // which flash attention recomputes anyway
    if (holds(layernorm) && !has_norms) continue;
    if (holds(mla_up_proj) && !latent) continue;
    if (holds(shared_experts) && !shares) continue;
    const bool of_experts = holds(moe_act) || holds(moe) || holds(shared_experts);
    if (r.model.moe ? holds(mlp) : of_experts) continue;
    if (holds(moe) && (holds(moe_act) || holds(shared_experts))) continue;
    own.runtime.megatron.recompute_modules = set;
    visit(own);
  }
}

inline void each_of_megatron(const Request& grid, const Visit& visit) {
  const auto with_overlap = [&](const Request& r) {
    Request own = r;
    const bool exchanges_beside = r.zero <= ZeroStage::optimizer;
    for (int depth = 0; depth <= (exchanges_beside ? 2 : 0); ++depth) {
      own.runtime.megatron.overlap_grad_reduce = depth > 0;
      own.runtime.megatron.overlap_param_gather = depth > 1;
      visit(own);
    }
  };
  const auto with_sequence = [&](const Request& r, const Visit& next) {
    Request own = r;
    own.sequence_parallel = false;
    next(own);
    if (*r.tp == 1) return;
    own.sequence_parallel = true;
    own.runtime.megatron.tp_comm_overlap = r.cluster.gpus_per_node % *r.tp == 0;
    next(own);
  };
  const std::int64_t layers = grid.model.layers;
  each_schedule(
      grid,
      [&](std::int64_t chunks) {
        return chunks <= layers + 2 && (layers + 2) % chunks <= 2;  // the ends may count as layers
      },
      [&](const Request& a) {
        with_sequence(a, [&](const Request& b) {
          each_split(b, [&](const Request& c) {
            each_megatron_recompute(c, [&](const Request& d) { each_sharding(d, with_overlap); });
          });
        });
      });
}

template <class T>
inline void each_of(const Request& r,
                    std::optional<T> Request::*field,
                    std::initializer_list<T> values,
                    const Visit& visit) {
  Request own = r;
  for (const T value : values) {
    own.*field = value;
    visit(own);
  }
}

inline void each_of_fsdp2(const Request& grid, const Visit& visit) {
  using enum Recompute;
  const auto with_loss = [&](const Request& r) {
    Request own = r;
    for (const std::int64_t parts : {0, 1}) {  // 0: torchtitan's own, 8; others have none
      if (parts > 0 && r.runtime.fsdp2.layers != LayerCode::torchtitan) continue;
      own.runtime.fsdp2.loss_chunks = parts > 0 ? parts : r.runtime.fsdp2.loss_chunks;
      visit(own);
    }
  };
  const bool by_layer = grid.runtime.fsdp2.wrap_by_layer;
  const auto with_resharding = [&](const Request& r) {
    with_loss(r);
    if (r.zero != ZeroStage::parameters || *r.pp > 1) return;
    Request own = r;
    own.runtime.fsdp2.reshard_after_forward = Reshard::always;
    if (!r.model.tied_embeddings) with_loss(own);
    own = r;
    for (std::int64_t n = 1; by_layer && n <= r.model.layers; ++n) {
      own.runtime.fsdp2.no_reshard_layers = n;
      with_loss(own);
    }
  };
  const auto with_layers = [&](const Request& r, const Visit& next) {
    next(r);
    Request own = r;
    const std::int64_t chunk = r.model.layers / (*r.pp * *r.vpp);
    for (std::int64_t k = 1; by_layer && r.recompute != none && k < chunk; ++k) {
      own.runtime.fsdp2.recompute_num_layers = k;
      for (const bool rest : {false, true}) {
        if (rest && r.recompute != full) continue;
        own.runtime.fsdp2.selective_rest = rest;
        next(own);
      }
    }
  };
  const auto with_sequence = [&](const Request& r, const Visit& next) {
    if (*r.tp > 1) return each_of(r, &Request::sequence_parallel, {true, false}, next);
    each_of(r, &Request::sequence_parallel, {false}, next);
  };
  each_schedule(
      grid, [&](std::int64_t chunks) { return chunks <= grid.model.layers; },
      [&](const Request& a) {
        with_sequence(a, [&](const Request& b) {
          each_of(b, &Request::recompute, {none, selective, full}, [&](const Request& c) {
            with_layers(c, [&](const Request& d) { each_sharding(d, with_resharding); });
          });
        });
      });
}

inline void each_of_deepspeed(const Request& grid, const Visit& visit) {
  using enum Recompute;
  const auto with_settings = [&](const Request& r) {
    Request own = r;
    for (const Offload offload : {Offload::none, Offload::optimizer}) {
      own.offload = offload;
      own.runtime = r.runtime;
      // Which optimizer runs decides what of the others moves anything.
      Problem p = open_problem(own);
      p.layout.zero = *r.zero;
      p.layout.pp = *r.pp;
      p.layout.offload = offload;
      const DeepspeedOptimizer optimizer = deepspeed_optimizer(p);
      const bool hooks = optimizer == DeepspeedOptimizer::stage2 ||
                         (optimizer == DeepspeedOptimizer::stage1 && *r.pp == 1);
      const bool fills =
          optimizer != DeepspeedOptimizer::fused && optimizer != DeepspeedOptimizer::bf16;
      for (const bool overlap : {false, true}) {
        if (overlap && (!hooks || r.runtime.deepspeed.overlap_comm)) continue;
        own.runtime.deepspeed.overlap_comm = overlap || r.runtime.deepspeed.overlap_comm;
        for (const std::int64_t bucket : {500'000'000, 200'000'000, 50'000'000}) {
          if (bucket < r.runtime.deepspeed.reduce_bucket_size && !fills) continue;
          own.runtime.deepspeed.reduce_bucket_size = bucket;
          visit(own);
        }
      }
    }
  };
  each_schedule(
      grid, [](std::int64_t) { return false; },
      [&](const Request& a) {
        each_of(a, &Request::recompute, {none, full},
                [&](const Request& b) { each_sharding(b, with_settings); });
      });
}

inline void each_of_nanotron(const Request& grid, const Visit& visit) {
  using enum Recompute;
  each_schedule(
      grid, [](std::int64_t) { return false; },
      [&](const Request& a) {
        const auto with_sequence = [&](const Request& b) {
          const auto next = [&](const Request& c) {
            each_of(c, &Request::recompute, {none, full},
                    [&](const Request& d) { each_sharding(d, visit); });
          };
          if (*b.tp > 1) return each_of(b, &Request::sequence_parallel, {true, false}, next);
          each_of(b, &Request::sequence_parallel, {false}, next);
        };
        with_sequence(a);
      });
}

/// Of each runtime that has such loops.
inline void each_layout(const Request& r, const Visit& visit) {
  const auto of_runtime = r.runtime.kind == Runtime::megatron    ? each_of_megatron
                          : r.runtime.kind == Runtime::fsdp2     ? each_of_fsdp2
                          : r.runtime.kind == Runtime::deepspeed ? each_of_deepspeed
                                                                 : each_of_nanotron;
  each_grid(r, [&](const Request& grid) { of_runtime(grid, visit); });
}

}  // namespace zeroplan::tests
