// What can be run of a plan here? Front doors: for_engine, shrunk.
#include "validator/shrink.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan::engine {
namespace {

class Changing {
 public:
  explicit Changing(const Problem& problem) : result_{problem, {}} {}

  template <class Value>
  void set(std::string_view what, Value& field, Value value) {
    if (field == value) return;
    result_.changes.push_back(fmt::format("{} {} -> {}", what, text(field), text(value)));
    field = value;
  }
  Problem& problem() { return result_.problem; }
  Shrunk take() { return std::move(result_); }

 private:
  static std::string text(bool value) { return value ? "on" : "off"; }
  static std::string text(std::int64_t value) { return std::to_string(value); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static std::string text(Enum value) { return std::string(name_of(value)); }

  Shrunk result_;
};

// 6 flops a parameter and token (Kaplan et al. 2020, section 2.1).
double rough_step_flops(const Problem& p) {
  return 6.0 * static_cast<double>(parameter_count(p.model)) *
         static_cast<double>(p.training.global_batch * p.training.sequence_length);
}

// Under the ZeRO stage that takes most: the same shapes run under all.
Bytes all_ranks(Problem p) {
  Bytes most;
  for (std::size_t zero = 0; zero < names<ZeroStage>().size(); ++zero) {
    p.layout.zero = static_cast<ZeroStage>(zero);
    const Estimate e = estimate(p, Evaluator(p));
    MemoryBreakdown m = e.peak().memory;
    m[Category::communicators] = m[Category::context] = m[Category::fragmentation] = {};
    most = std::max(most, world_size(p.layout) * m.allocated());
  }
  return most;
}

bool has_room(const Problem& p, const Room& room) {
  return rough_step_flops(p) <= room.step_flops && all_ranks(p) <= room.memory;
}

// Every width halved, as far as it stays a multiple of what divides it. False where none can be.
bool halve_widths(ModelSpec& m, std::int64_t tp) {
  const ModelSpec before = m;
  constexpr std::int64_t narrowest = 16;
  const auto half = [](std::int64_t width, std::int64_t unit) {
    return std::max(unit, round_up(width / 2, unit));
  };
  if (m.hidden_size < 2 * narrowest) return false;
  AttentionSpec& a = m.attention;
  m.hidden_size = half(m.hidden_size, 2);
  m.mlp.intermediate_size = half(m.mlp.intermediate_size, tp);
  m.vocab_size = half(m.vocab_size, tp);
  if (a.kv_heads % (2 * tp) == 0 && a.heads % 2 == 0) {
    a.kv_heads /= 2;
    a.heads /= 2;
  } else if (a.heads % (2 * a.kv_heads) == 0 && a.heads / 2 % tp == 0) {
    a.heads /= 2;
  } else if (a.head_dim % 4 == 0) {
    a.head_dim /= 2;
  }
  return !(m == before);
}

// At most so many tokens: what ranks of sequence parallelism can share.
std::int64_t shareable(const Problem& p, std::int64_t tokens) {
  return p.layout.sequence_parallel ? tokens / p.layout.tp * p.layout.tp : tokens;
}

// 25 heads divide over five ranks, and not over two.
bool divides(const ModelSpec& m, std::int64_t tp) {
  return m.attention.heads % tp == 0 && m.attention.kv_heads % tp == 0 &&
         m.mlp.intermediate_size % tp == 0;
}

void shrink_ranks(Changing& change, std::int64_t ranks) {
  Problem& p = change.problem();
  Layout& l = p.layout;
  const std::int64_t m = micro_batches(p);
  const auto degree = [&](std::int64_t asked, std::int64_t left) {
    return std::min<std::int64_t>({asked, 2, left});
  };
  const std::int64_t pp = degree(l.pp, ranks);
  std::int64_t tp = degree(l.tp, ranks / pp);
  if (!divides(p.model, tp)) tp = 1;
  const std::int64_t dp = std::min(l.dp, ranks / (pp * tp));
  change.set("sequence parallelism", l.sequence_parallel, l.sequence_parallel && tp > 1);
  change.set("pp", l.pp, pp);
  change.set("tp", l.tp, tp);
  change.set("dp", l.dp, dp);
  p.cluster.gpus = world_size(l);
  change.set("sequence", p.training.sequence_length, shareable(p, p.training.sequence_length));
  const std::int64_t few = std::min(m, 2 * pp);
  change.set("global batch", p.training.global_batch, few * l.dp * l.micro_batch);
}

}  // namespace

Shrunk for_engine(const Problem& plan) {
  Changing change(plan);
  Problem& p = change.problem();
  Layout& l = p.layout;
  change.set("runtime", p.runtime.kind, Runtime::zeroplan);
  change.set("cp", l.cp, std::int64_t{1});
  change.set("vpp", l.vpp, std::int64_t{1});
  if (l.schedule != Schedule::gpipe) {
    change.set("schedule", l.schedule, Schedule::one_f_one_b);
  }
  if (l.recompute == Recompute::selective) {
    change.set("recompute", l.recompute, Recompute::none);
  }
  change.set("offload", l.offload, Offload::none);
  change.set("hsdp", l.hsdp, std::int64_t{0});
  change.set("attention", p.training.attention, AttentionKernel::flash);
  p.cluster.gpus = world_size(l);
  return change.take();
}

Shrunk shrunk(const Problem& problem, const Room& room) {
  Changing change(problem);
  shrink_ranks(change, room.ranks);
  Problem& p = change.problem();
  if (has_room(p, room)) return change.take();
  change.set("layers", p.model.layers, std::min(p.model.layers, 2 * p.layout.pp));

  constexpr std::int64_t shortest = 64;
  Problem small = p;
  for (bool narrower = true; narrower && !has_room(small, room);) {
    const bool shorter = small.training.sequence_length >= 2 * shortest;
    if (shorter) {
      small.training.sequence_length = shareable(small, small.training.sequence_length / 2);
    }
    narrower = has_room(small, room) || halve_widths(small.model, small.layout.tp) || shorter;
  }
  change.set("sequence", p.training.sequence_length, small.training.sequence_length);
  change.set("hidden", p.model.hidden_size, small.model.hidden_size);
  change.set("heads", p.model.attention.heads, small.model.attention.heads);
  change.set("key-value heads", p.model.attention.kv_heads, small.model.attention.kv_heads);
  change.set("head width", p.model.attention.head_dim, small.model.attention.head_dim);
  change.set("intermediate", p.model.mlp.intermediate_size, small.model.mlp.intermediate_size);
  change.set("vocabulary", p.model.vocab_size, small.model.vocab_size);
  return change.take();
}

}  // namespace zeroplan::engine
