// What is close to it? Front door: nearest_fits.
#include "planner/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

#include "planner/candidates.hpp"
#include "planner/given.hpp"

namespace zeroplan {
namespace {

// The fields a person writes as a whole number.
std::optional<std::int64_t>* number_field(Request& r, Field field) {
  using Number = std::optional<std::int64_t>;
  if (field == Field::global_batch) return &r.global_batch;
  if (field == Field::sequence_length) return &r.sequence_length;
  return visit_given(r, field, [](auto& optional) -> Number* {
    if constexpr (std::is_same_v<decltype(optional), Number&>) return &optional;
    return nullptr;
  });
}

bool legal(const Request& request, const LayoutChoice& choice) {
  return !first_violation(complete(request, with_given_fields(request, choice)));
}

// The nearest legal values below and above the given one, as "4 or 8"; empty when there are none.
std::string legal_numbers(Request request, const LayoutChoice& choice, Field field) {
  std::optional<std::int64_t>& value = *number_field(request, field);
  const std::int64_t given = *value;
  constexpr std::int64_t farthest = 1 << 14;  // values tried on each side
  const bool a_degree = field != Field::global_batch && field != Field::sequence_length;
  const std::int64_t largest = a_degree ? request.cluster.gpus : given + farthest;
  std::vector<std::int64_t> found;
  for (const std::int64_t step : {-1, 1}) {
    for (std::int64_t i = 1; i <= farthest; ++i) {
      const std::int64_t tried = given + i * step;
      if (tried < 1 || tried > largest) break;
      value = tried;
      if (!legal(request, choice)) continue;
      found.push_back(tried);
      break;
    }
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

template <class Enum, class Set>
std::string legal_names(Request request, const LayoutChoice& choice, Set set) {
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < names<Enum>().size(); ++i) {
    set(request, static_cast<Enum>(i));
    if (legal(request, choice)) found.push_back(names<Enum>()[i]);
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

std::string legal_values(const Request& request, const LayoutChoice& choice, Field field) {
  Request copy = request;
  if (const auto* number = number_field(copy, field)) {
    return number->has_value() ? legal_numbers(request, choice, field) : "";
  }
  switch (field) {
    case Field::zero:
      return legal_names<ZeroStage>(request, choice, [](Request& r, ZeroStage v) { r.zero = v; });
    case Field::schedule:
      return legal_names<Schedule>(request, choice, [](Request& r, Schedule v) { r.schedule = v; });
    case Field::recompute:
      return legal_names<Recompute>(request, choice,
                                    [](Request& r, Recompute v) { r.recompute = v; });
    case Field::precision:
      return legal_names<Precision>(request, choice,
                                    [](Request& r, Precision v) { r.precision = v; });
    case Field::optimizer:
      return legal_names<OptimizerKind>(request, choice,
                                        [](Request& r, OptimizerKind v) { r.optimizer = v; });
    case Field::offload:
      return legal_names<Offload>(request, choice, [](Request& r, Offload v) { r.offload = v; });
    default:
      return "";
  }
}

// One change of one field, or of one setting of the runtime.
struct Edit {
  unsigned what;  // a bit of its own
  std::string change;
  Request request;
};

// Settings that cost nothing, Megatron-Core's defaults being without, and both of them; each also
// with full recompute, since what did not fit for want of them may have been given none.
void add_settings(std::vector<Edit>& list, const Request& r, const Problem& p) {
  struct Setting {
    std::string_view key;
    bool MegatronSettings::*flag;
    bool helps;
  };
  const bool shards = p.layout.zero >= ZeroStage::gradients;
  const Setting settings[] = {
      {"init_model_with_meta_device", &MegatronSettings::init_model_with_meta_device, shards},
      {"fp8_param_gather", &MegatronSettings::fp8_param_gather,
       p.training.precision == Precision::fp8}};
  if (r.runtime.kind != Runtime::megatron) return;
  for (const unsigned set : {1U, 2U, 3U}) {
    Edit edit{set << names<Field>().size(), "", r};
    bool all = true;
    for (std::size_t i = 0; i < std::size(settings); ++i) {
      const auto& [key, flag, helps] = settings[i];
      if ((set >> i & 1U) == 0) continue;
      all = all && helps && !(r.runtime.megatron.*flag);
      edit.request.runtime.megatron.*flag = true;
      edit.change +=
          fmt::format("{}set {}=true (was false)", edit.change.empty() ? "" : " and ", key);
    }
    if (!all) continue;
    list.push_back(edit);
    if (p.layout.recompute == Recompute::full) continue;
    edit.request.recompute = Recompute::full;
    edit.change += fmt::format(" and recompute full (was {})", name_of(p.layout.recompute));
    list.push_back(edit);
  }
}

// What the ZeRO paper's section 6 does about activations, buffers and fragments, in the words of
// the runtimes that do it.
struct ZeroR {
  bool* partition = nullptr;       // Pa: tensor-parallel ranks keep a part of each checkpoint
  std::int64_t* bucket = nullptr;  // CB: gradients pass through buckets of a constant size
  bool* contiguous = nullptr;      // MD: what stays long is made at once
  std::string_view prefix;         // of the keys of the first and the last
};

ZeroR zero_r(RuntimeSpec& runtime) {
  if (runtime.kind == Runtime::deepspeed) {
    DeepspeedSettings& set = runtime.deepspeed;
    return {&set.partition_activations, &set.reduce_bucket_size, &set.contiguous_checkpoints,
            "activation_checkpointing."};
  }
  if (runtime.kind != Runtime::zeroplan) return {};
  ZeroplanSettings& set = runtime.zeroplan;
  return {&set.partition_activations, &set.reduce_bucket_size, &set.contiguous_memory_optimization,
          ""};
}

void set_flag(Edit& edit, bool& flag, std::string_view prefix, std::string_view key) {
  flag = true;
  edit.change = fmt::format("set {}{}=true (was false)", prefix, key);
}

void add_zero_r(std::vector<Edit>& list, const Request& r, const Problem& p) {
  constexpr auto fields = static_cast<unsigned>(names<Field>().size());
  constexpr std::int64_t small_bucket = 50'000'000;  // a tenth of DeepSpeed's default
  Edit parts{4U << fields, "", r}, bucket{8U << fields, "", r}, whole{16U << fields, "", r};
  if (const ZeroR set = zero_r(parts.request.runtime);
      set.partition != nullptr && !*set.partition && p.layout.tp > 1) {
    set_flag(parts, *set.partition, set.prefix, "partition_activations");
    if (p.layout.recompute != Recompute::full) {
      parts.request.recompute = Recompute::full;
      parts.change += fmt::format(" and recompute full (was {})", name_of(p.layout.recompute));
    }
    list.push_back(parts);
  }
  if (const ZeroR set = zero_r(bucket.request.runtime);
      set.bucket != nullptr && (*set.bucket == 0 || *set.bucket > small_bucket)) {
    bucket.change = fmt::format("set reduce_bucket_size={} (was {})", small_bucket, *set.bucket);
    *set.bucket = small_bucket;
    list.push_back(bucket);
  }
  if (const ZeroR set = zero_r(whole.request.runtime);
      set.contiguous != nullptr && !*set.contiguous) {
    set_flag(whole, *set.contiguous, set.prefix, "contiguous_memory_optimization");
    list.push_back(whole);
  }
}

// Least intrusive first: what costs compute, then what costs traffic, then what costs hardware. Of
// a field's values the mildest comes first.
std::vector<Edit> edits(const Request& r, const Problem& p) {
  const Layout& l = p.layout;
  std::vector<Edit> list;
  add_settings(list, r, p);
  add_zero_r(list, r, p);
  const auto change = [&](Field field, auto value, auto was) -> Request& {
    list.push_back({1U << static_cast<unsigned>(field),
                    fmt::format("{} {} (was {})", name_of(field), value, was), r});
    return list.back().request;
  };
  const auto number = [&](Field field, std::int64_t value, std::int64_t was) {
    *number_field(change(field, value, was), field) = value;
  };
  if (l.recompute != Recompute::full) {
    change(Field::recompute, "full", name_of(l.recompute)).recompute = Recompute::full;
  }
  for (std::int64_t size = l.micro_batch / 2; size >= 1; size /= 2) {
    number(Field::micro_batch, size, l.micro_batch);
  }
  for (int stage = static_cast<int>(l.zero) + 1; stage <= static_cast<int>(ZeroStage::parameters);
       ++stage) {
    const auto zero = static_cast<ZeroStage>(stage);
    change(Field::zero, name_of(zero), name_of(l.zero)).zero = zero;
  }
  constexpr std::int64_t widest = 64;
  for (std::int64_t factor = 2; factor <= widest; factor *= 2) {
    number(Field::tp, l.tp * factor, l.tp);
    number(Field::pp, l.pp * factor, l.pp);
    number(Field::cp, l.cp * factor, l.cp);
    if (p.model.moe) number(Field::ep, l.ep * factor, l.ep);
  }
  if (l.offload == Offload::none) {
    change(Field::offload, "optimizer", "none").offload = Offload::optimizer;
  }
  for (std::int64_t factor = 2; factor <= widest; factor *= 2) {
    const std::int64_t gpus = r.cluster.gpus * factor;
    change(Field::gpus, gpus, r.cluster.gpus).cluster.gpus = gpus;
  }
  return list;
}

}  // namespace

std::string refusal_message(const Request& request,
                            const LayoutChoice& choice,
                            const Violation& violation) {
  std::vector<Field> order{violation.field};
  for (const Field f :
       {Field::pp, Field::tp, Field::cp, Field::ep, Field::micro_batch, Field::zero}) {
    if (f != violation.field) order.push_back(f);
  }
  for (const Field field : order) {
    const std::string values = legal_values(request, choice, field);
    if (!values.empty())
      return fmt::format("{}; --{} {} would do", violation.reason, name_of(field), values);
  }
  return violation.reason;
}

std::vector<NearestFit> nearest_fits(const Request& request,
                                     const LayoutChoice& choice,
                                     const Problem& problem) {
  std::vector<NearestFit> found;
  const Evaluator evaluator(question_of(request));
  const auto fits = [&](const Edit& e) {
    const Problem changed = complete(e.request, with_given_fields(e.request, choice));
    if (first_violation(changed)) return false;
    // What is remembered holds for one set of settings.
    std::optional<Evaluator> own;
    if (e.what >> names<Field>().size() != 0) own.emplace(question_of(e.request));
    const Evaluator& known = own ? *own : evaluator;
    const WorstStage floor = floor_of_replay(changed, known, changed.cluster.gpu.memory);
    if (floor.verdict != Verdict::fits) return false;
    const auto played = played_where_it_fits(changed, known);
    if (!played) return false;
    found.push_back({e.change, played->device(), step_seconds(changed, known)});
    return true;
  };
  const std::vector<Edit> first = edits(request, problem);
  unsigned done = 0;  // fields with a value that fits
  for (const Edit& e : first) {
    if ((done & e.what) == 0 && fits(e)) done |= e.what;
  }
  if (!found.empty()) return found;
  // No single change does: every two fields, each pair with its mildest values.
  std::vector<unsigned> pairs;
  for (const Edit& one : first) {
    const Problem changed = complete(one.request, with_given_fields(one.request, choice));
    for (const Edit& other : edits(one.request, changed)) {
      const unsigned pair = one.what | other.what;
      const bool known = std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
      if (other.what == one.what || known) continue;
      if (fits({pair, one.change + " and " + other.change, other.request})) {
        pairs.push_back(pair);
      }
    }
  }
  return found;
}

}  // namespace zeroplan
