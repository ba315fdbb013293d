// torchao's recipes: what one scale covers decides what is cast, gathered and multiplied.
#include "cost_model/runtime/fsdp2/float8.hpp"

#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/module_time.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/states/overheads.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

constexpr std::int64_t tokens = 4096, hidden = 4096;

Problem llama3_8b(const std::vector<Override>& settings, std::int64_t tp = 1) {
  Problem p = tests::problem(
      Runtime::fsdp2, "llama3-8b",
      {.dp = 8, .tp = tp, .zero = ZeroStage::parameters, .sequence_parallel = tp > 1}, "H100-96GB");
  p.runtime = load_runtime(Runtime::fsdp2, settings);
  p.training.precision = Precision::fp8;
  return p;
}

// Of all linears together.
Traffic all_casts(const Problem& p) {
  Traffic sum{Module::casts, Access::streaming, {}, {}};
  for (const Traffic& one : layer_traffic(p, LayerKind::dense)) {
    if (one.module != Module::casts) continue;
    sum.forward += one.forward;
    sum.backward += one.backward;
  }
  return sum;
}

struct Sent {
  std::int64_t gathered = 0, reduced = 0;
  bool in_parts = true;
};
Sent sent_by_layer(const Problem& p) {
  Sent sent;
  const Block layer = code_of(p).block(p, weight_inventory(p.model), BlockKind::layer,
                                       LayerKind::dense, RepeatSet{});
  for (const Call& call : layer.calls) {
    if (call.group != "tp") continue;
    const bool gathers = call.collective == Collective::all_gather;
    (gathers ? sent.gathered : sent.reduced) += call.times * call.payload.count();
    sent.in_parts &= call.beside == Beside::parts;
  }
  return sent;
}

}  // namespace

TEST_CASE("torchtitan scaled whole tensors until 2026-04-27") {
  CHECK(float8_recipe(llama3_8b({{"recipe_date", "2026-04-26"}})) == Float8Recipe::tensorwise);
  CHECK(float8_recipe(llama3_8b({{"recipe_date", "2026-04-27"}})) == Float8Recipe::rowwise);
  CHECK(float8_recipe(llama3_8b({{"float8.recipe_name", "rowwise_with_gw_hp"}})) ==
        Float8Recipe::rowwise_with_gw_hp);
}

// Llama 3 8B: keys and values are a quarter as wide as queries, the MLP 3.5 times.
TEST_CASE("bytes that casts move, by what a scale covers") {
  constexpr std::int64_t f = 14'336, kv = 1024;
  const std::int64_t inputs = tokens * (4 * hidden + 2 * hidden + f);  // q, k, v, o; gate, up; down
  const std::int64_t gradients = tokens * (2 * hidden + 2 * kv + 2 * f + hidden);
  const std::int64_t weights = hidden * (2 * hidden + 2 * kv + 3 * f);
  struct Case {
    const char* recipe;
    const char* compiled;
    std::int64_t input, input_again, gradient, weight, weight_again;
  };
  const auto& [recipe, compiled, input, again, gradient, weight, weight_again] = GENERATE(
      Case{"tensorwise", "true", 5, 2, 7, 5, 7}, Case{"rowwise", "true", 3, 9, 8, 3, 9},
      Case{"rowwise_with_gw_hp", "true", 3, 4, 3, 3, 5},
      Case{"tensorwise", "false", 33, 2, 35, 33, 35}, Case{"delayed", "false", 4, 0, 4, 4, 0});
  const Traffic moved =
      all_casts(llama3_8b({{"float8.recipe_name", recipe}, {"compile.enable", compiled}}));
  CHECK(moved.forward.count() == input * inputs + weight * weights);
  CHECK(moved.backward.count() == again * inputs + gradient * gradients + weight_again * weights);
}

// Queries, keys, values, gate and up read what was gathered; proj and down receive it.
TEST_CASE("each rank casts its part of what is gathered in 8 bits, and all of what is not") {
  constexpr std::int64_t tp = 4, f = 14'336, kv = 1024, e = tokens;
  constexpr std::int64_t own = e * (hidden + f) / tp, received = e * (hidden + 2 * kv + 2 * f) / tp;
  constexpr std::int64_t weights = hidden * (2 * hidden + 2 * kv + 3 * f) / tp;
  struct Case {
    const char* recipe;
    std::int64_t parts, input, input_again, gradient, weight, weight_again;
  };
  const auto& [recipe, parts, input, again, gradient, weight, weight_again] =
      GENERATE(Case{"tensorwise", tp, 5, 2, 7, 5, 7}, Case{"rowwise", 1, 3, 9, 8, 3, 9});
  const Traffic moved =
      all_casts(llama3_8b({{"float8.recipe_name", recipe}, {"compile.enable", "true"}}, tp));
  const std::int64_t inputs = 5 * e * hidden / parts + own;
  const std::int64_t gradients = received + 2 * e * hidden / parts;
  CHECK(moved.forward.count() == input * inputs + weight * weights);
  CHECK(moved.backward.count() == again * inputs + gradient * gradients + weight_again * weights);
}

TEST_CASE("weights that are gathered in 8 bits are not cast again") {
  const auto moved = [](const char* gathers) {
    return all_casts(llama3_8b({{"float8.recipe_name", "tensorwise"},
                                {"compile.enable", "true"},
                                {"float8.enable_fsdp_float8_all_gather", gathers}}));
  };
  const std::int64_t weights = 218'103'808;
  CHECK((moved("false").forward - moved("true").forward).count() == 5 * weights);
  CHECK((moved("false").backward - moved("true").backward).count() == 5 * weights);
}

TEST_CASE("weight gradients of rowwise_with_gw_hp are products of 16 bits") {
  const auto seconds = [](const char* recipe, Precision precision) {
    Problem p = llama3_8b({{"float8.recipe_name", recipe}});
    p.training.precision = precision;
    const ModuleTimes times = module_times(p, LayerKind::dense);
    const ModuleTime& linear = *find(times, Module::down_proj);
    return std::pair(linear.weight_gradient.gemm, linear.input_gradient.gemm);
  };
  const auto wide = seconds("rowwise_with_gw_hp", Precision::fp8);
  const auto rows = seconds("rowwise", Precision::fp8);
  const auto bf16 = seconds("rowwise", Precision::bf16);
  CHECK(wide.first == bf16.first);
  CHECK(wide.second == rows.second);
  CHECK(rows.first < bf16.first);
}

TEST_CASE("tensor parallelism gathers in 8 bits what has one scale") {
  const auto sent = [](const char* recipe) {
    return sent_by_layer(llama3_8b({{"float8.recipe_name", recipe}}, 4));
  };
  CHECK(2 * sent("tensorwise").gathered == sent("rowwise").gathered);
  CHECK(sent("tensorwise").reduced == sent("rowwise").reduced);
  CHECK(sent("rowwise").gathered == 4 * 2 * tokens * hidden);
}

TEST_CASE("asynchronous tensor parallelism sends beside the layers' products") {
  const Problem waits = llama3_8b({{"compile.enable", "true"}}, 4);
  const Problem async =
      llama3_8b({{"compile.enable", "true"}, {"compile.enable_async_tensor_parallel", "true"}}, 4);
  CHECK_FALSE(sent_by_layer(waits).in_parts);
  CHECK(sent_by_layer(async).in_parts);
  CHECK(sent_by_layer(async).gathered == sent_by_layer(waits).gathered);
  const Block head = code_of(async).block(async, weight_inventory(async.model), BlockKind::head,
                                          LayerKind::dense, RepeatSet{});
  for (const Call& call : head.calls) CHECK(call.beside == Beside::nothing);
  CHECK(symmetric_memory_bytes(waits) == Bytes{});
  CHECK(symmetric_memory_bytes(async) == Bytes{2 * 2 * tokens * hidden / 4});
}

// As it ran on an H100 with release 0.2.2 of 2026-02-20 (validator/pytorch/README.md).
TEST_CASE(
    "torchtitan that misses its renamed 8-bit linears gathers 16 bits, and casts all of them") {
  const auto problem = [](const char* date) {
    return llama3_8b({{"float8.recipe_name", "tensorwise"}, {"recipe_date", date}}, 4);
  };
  const Problem before = problem("2025-09-29"), missed = problem("2025-09-30");
  CHECK(gathers_eight_bit(before));
  CHECK_FALSE(gathers_eight_bit(missed));
  CHECK_FALSE(gathers_eight_bit(problem("2026-02-22")));
  CHECK(gathers_eight_bit(problem("2026-02-23")));
  CHECK(sent_by_layer(missed).gathered == 2 * sent_by_layer(before).gathered);
  CHECK(all_casts(missed).forward > all_casts(before).forward);
}

TEST_CASE("torchtitan attends by cuDNN's kernels between 2025-10-09 and FlexAttention") {
  const auto kernel = [](std::vector<Override> settings) {
    return kernel_habits(llama3_8b(std::move(settings))).flash;
  };
  CHECK(kernel({{"recipe_date", "2025-10-08"}}) == FlashKernel::flash2);
  CHECK(kernel({{"recipe_date", "2025-10-09"}}) == FlashKernel::newest);
  CHECK(kernel({{"recipe_date", "2026-06-09"}}) == FlashKernel::flash2);
  CHECK(kernel({{"recipe_date", "2026-02-01"}, {"layers", "huggingface"}}) == FlashKernel::flash2);
  Problem blackwell = llama3_8b({{"recipe_date", "2025-05-14"}});
  CHECK(kernel_habits(blackwell).flash == FlashKernel::flash2);
  blackwell.cluster.gpu = find_gpu("B200");
  CHECK(kernel_habits(blackwell).flash == FlashKernel::newest);
}

TEST_CASE(
    "torchtitan joins what it gathered and orders what it reduces, unless it sends in parts") {
  const auto moved = [](std::vector<Override> settings, std::int64_t tp) {
    for (const Traffic& one : layer_traffic(llama3_8b(settings, tp), LayerKind::dense)) {
      if (one.module == Module::rank_order) return one.forward.count();
    }
    return std::int64_t{0};
  };
  // 2 bytes an element, read and written, of one half: gathered and reduced.
  constexpr std::int64_t both = 2 * 2 * 2 * tokens * hidden;
  CHECK(moved({{"compile.enable", "false"}}, 4) == both);
  CHECK(moved({{"compile.enable", "true"}}, 4) == both);
  CHECK(moved({{"compile.enable", "true"}, {"compile.enable_async_tensor_parallel", "true"}}, 4) ==
        0);
  CHECK(moved({{"compile.enable", "false"}}, 1) == 0);
}
