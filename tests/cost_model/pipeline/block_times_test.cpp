#include "cost_model/pipeline/block_times.hpp"

#include <array>
#include <random>

#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// All of a layer's collectives, one by one.
TimedBlock layer_at_once(const Problem& p, const WeightInventory& inventory, LayerKind kind) {
  TimedBlock block{.kernels = layer_time(p, kind)};
  const auto calls = [&](RepeatSet set) {
    return code_of(p).block(p, inventory, BlockKind::layer, kind, set).calls;
  };
  const std::vector<Call> once = calls(0);
  const std::vector<Call> all = calls(repeats(p));
  for (const CollectiveLoad& load : loads_of(p, once)) {
    block.loads.add(p.cluster, timed_load(p, load));
  }
  for (const CollectiveLoad& load : loads_of(p, calls_beyond(all, once))) {
    block.repeated.add(p.cluster, timed_load(p, load));
  }
  return block;
}

std::array<double, 14> numbers(const TimedBlock& b) {
  const auto& [kernels, loads, repeated, lesser] = b;
  return {kernels.forward.total(),        kernels.recompute.total(),
          kernels.input_gradient.total(), kernels.weight_gradient.total(),
          kernels.host.forward,           kernels.host.backward,
          kernels.forward.attention,      loads.waited.forward,
          loads.waited.backward,          loads.ring.forward + loads.ring.backward,
          loads.products.backward,        repeated.waited.backward,
          repeated.ring.backward,         repeated.products.backward};
}

}  // namespace

TEST_CASE("a layer put together of its parts is the layer made at once") {
  const std::string_view model = GENERATE("mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b");
  const Runtime runtime = GENERATE(Runtime::megatron, Runtime::fsdp2);
  CAPTURE(model, name_of(runtime));
  std::mt19937 random(3);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const WeightInventory inventory = weight_inventory(find_model(model).spec);
  Problem p = problem(runtime, model, {.dp = 256}, "H100-80GB");
  OnlyFor only(question_of(p));
  BlockClock clock(inventory, only);
  for (int i = 0; i < 400; ++i) {
    Layout& l = p.layout;
    switch (draw(0, 3)) {  // the others stay as they were: most is found again
      case 0:
        l.tp = std::int64_t{1} << draw(0, 2);
        l.cp = std::int64_t{1} << draw(0, 1);
        l.sequence_parallel = l.tp > 1;
        break;
      case 1:
        l.ep = std::int64_t{1} << draw(0, 3);
        l.etp = runtime == Runtime::megatron ? std::int64_t{1} << draw(0, 1) : 1;
        break;
      case 2:
        l.micro_batch = draw(1, 3);
        break;
      default:
        l.recompute = static_cast<Recompute>(draw(0, 2));
        l.recompute_modules = static_cast<unsigned>(draw(1, 127));
        p.runtime.megatron.recompute_modules = l.recompute_modules;
    }
    CAPTURE(l.tp, l.cp, l.ep, l.etp, l.micro_batch, name_of(l.recompute), l.recompute_modules);
    for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
      if (layers_of_kind(p.model, 0, p.model.layers, kind) == 0) continue;
      const auto put_together = numbers(clock.times(p).layer(kind));
      const auto at_once = numbers(layer_at_once(p, inventory, kind));
      for (std::size_t n = 0; n < at_once.size(); ++n) {
        CAPTURE(static_cast<int>(kind), n);
        REQUIRE(put_together[n] == Approx(at_once[n]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("layers that full recompute leaves repeat what selective recompute does") {
  const std::string_view model = GENERATE("llama3-8b", "qwen3-30b-a3b", "deepseek-v2-lite");
  CAPTURE(model);
  const WeightInventory inventory = weight_inventory(find_model(model).spec);
  Problem p = problem(Runtime::fsdp2, model, {.dp = 8, .recompute = Recompute::selective});
  OnlyFor only(question_of(p));
  BlockClock clock(inventory, only);
  const LayerKind kind = kind_of(p.model, p.model.layers - 1);
  const TimedBlock selective = clock.times(p).layer(kind);
  REQUIRE_FALSE(selective.lesser.has_value());
  p.layout.recompute = Recompute::full;
  p.runtime.fsdp2.recompute_num_layers = 3;
  p.runtime.fsdp2.selective_rest = true;
  const TimedBlock mixed = clock.times(p).layer(kind);
  REQUIRE(mixed.lesser.has_value());
  REQUIRE(mixed.again(false) == selective.again(true));
  REQUIRE(mixed.lesser->loads.waited.backward == selective.repeated.waited.backward);
  REQUIRE(mixed.again(true) > mixed.again(false));
  p.runtime.fsdp2.selective_rest = false;
  REQUIRE(clock.times(p).layer(kind).again(false) == 0);
}
