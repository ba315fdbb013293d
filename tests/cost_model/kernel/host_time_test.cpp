// What graphs leave the host to launch.
#include "cost_model/kernel/host_time.hpp"

#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

constexpr unsigned bit(GraphScope scope) {
  return 1U << static_cast<unsigned>(scope);
}

double forward(std::string_view model, LayerKind kind, CudaGraphs impl, unsigned scope = 0) {
  Problem p = problem(Runtime::megatron, model, {}, "B200");
  p.runtime.megatron.cuda_graph_impl = impl;
  p.runtime.megatron.cuda_graph_scope = scope;
  return layer_host_time(p, kind).forward;
}

}  // namespace

TEST_CASE("a graph of the whole step leaves no launches, one of a layer none of its own") {
  for (const CudaGraphs impl : {CudaGraphs::full_iteration, CudaGraphs::transformer_engine}) {
    CHECK(forward("llama3-8b", LayerKind::dense, impl) == 0);
    CHECK(forward("mixtral-8x7b", LayerKind::moe, impl) == 0);
  }
  // As older releases say it.
  CHECK(forward("llama3-8b", LayerKind::dense, CudaGraphs::local,
                bit(GraphScope::full_iteration)) == 0);
}

TEST_CASE("graphs of parts of layers leave the others") {
  const HostConstants host = published_constants.host;
  const auto impl = CudaGraphs::transformer_engine;
  // Two linears of five modules.
  CHECK(forward("llama3-8b", LayerKind::dense, impl, bit(GraphScope::attn)) ==
        Approx(0.4 * host.engine_forward));
  CHECK(forward("llama3-8b", LayerKind::dense, impl, bit(GraphScope::mlp)) ==
        Approx(0.6 * host.engine_forward));
  const unsigned routing = bit(GraphScope::moe_router) | bit(GraphScope::moe_preprocess);
  CHECK(forward("mixtral-8x7b", LayerKind::moe, impl, routing) ==
        Approx(host.engine_forward + host.experts - host.routing));
  CHECK(forward("mixtral-8x7b", LayerKind::moe, impl, routing | bit(GraphScope::attn)) ==
        Approx(0.4 * host.engine_forward + host.experts - host.routing));
  CHECK(forward("mixtral-8x7b", LayerKind::moe, CudaGraphs::none, routing) ==
        Approx(host.engine_forward + host.experts));
}

TEST_CASE(
    "experts' messages beside another pass are launched in parts, unless a graph holds them") {
  Problem p = problem(Runtime::megatron, "mixtral-8x7b", {}, "B200");
  const HostTime whole = layer_host_time(p, LayerKind::moe);
  p.runtime.megatron.overlap_moe_expert_parallel_comm = true;
  const HostTime parts = layer_host_time(p, LayerKind::moe);
  CHECK(parts.forward == Approx(whole.forward + published_constants.host.in_parts));
  CHECK(parts.backward == Approx(whole.backward + published_constants.host.in_parts));
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::full_iteration;
  CHECK(layer_host_time(p, LayerKind::moe).forward == 0);
}

// The activation's offset is copied from the host, which waits for all that it launched: the GPU
// has nothing of the next products to do meanwhile.
TEST_CASE("the host waits for gpt-oss's experts unless a graph or a fused kernel holds them") {
  Problem p = problem(Runtime::megatron, "gpt-oss-120b", {.dp = 8, .ep = 8}, "H100-80GB");
  const auto waits = [&] {
    return layer_host_wait(p, LayerKind::moe, module_times(p, LayerKind::moe));
  };
  const ModuleTimes modules = module_times(p, LayerKind::moe);
  const double first = find(modules, Module::fc1)->forward.total();
  CHECK(waits().forward == first);
  CHECK(waits().backward == 0);
  CHECK(layer_time(p, LayerKind::moe).host.forward ==
        layer_host_time(p, LayerKind::moe).forward + first);
  p.layout.recompute = Recompute::full;
  CHECK(waits().backward == first);
  p.runtime.megatron.use_transformer_engine_op_fuser = true;
  CHECK(waits().forward == 0);
  p.runtime.megatron.use_transformer_engine_op_fuser = false;
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::full_iteration;
  CHECK(waits().forward == 0);
  const Problem other = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8});
  CHECK(layer_host_wait(other, LayerKind::moe, module_times(other, LayerKind::moe)).forward == 0);
}

TEST_CASE("a Grace takes longer for the same launches") {
  const auto on = [](std::string_view gpu) {
    return layer_host_time(problem(Runtime::megatron, "llama3-8b", {}, gpu), LayerKind::dense);
  };
  CHECK(on("GB200").forward ==
        Approx(published_constants.host.grace_slowness * on("B200").forward));
  CHECK(on("GB200").backward ==
        Approx(published_constants.host.grace_slowness * on("B200").backward));
}

TEST_CASE("the GPU waits for the launches of many experts' products") {
  const auto super = [](std::int64_t ep, std::string_view gpu = "B300") {
    return problem(Runtime::megatron, "nemotron-3-super-120b-a12b", {.dp = 64, .ep = ep}, gpu);
  };
  const auto gap = [](const Problem& p) {
    return find(module_times(p, LayerKind::moe), Module::fc1)->forward.gaps;
  };
  const auto computed = [](const Problem& p) {
    double sum = 0;
    const ModuleTimes routed = module_times(p, LayerKind::moe, LayerPart::routed);
    for (const Module module : {Module::fc1, Module::expert_activation, Module::fc2}) {
      const KernelTime forward = find(routed, module)->forward;
      sum += forward.total() - forward.gaps;
    }
    if (const ModuleTime* casts = find(routed, Module::casts)) sum += casts->forward.total();
    return sum;
  };
  const HostConstants host = published_constants.host;
  Problem p = super(8);
  CHECK(gap(p) == Approx(2 * 64 * host.expert_product - computed(p)));
  // As part of the layer that runs on its own, of the whole, and again where all of it repeats.
  CHECK(find(module_times(p, LayerKind::moe, LayerPart::routed), Module::fc1)->forward.gaps ==
        gap(p));
  CHECK(layer_time(p, LayerKind::moe).forward.gaps == gap(p));
  CHECK(layer_time(p, LayerKind::moe).recompute.gaps == 0);
  p.layout.recompute = Recompute::full;
  CHECK(layer_time(p, LayerKind::moe).recompute.gaps == gap(p));
  p = super(8, "GB300");
  CHECK(gap(p) == Approx(2 * 64 * host.grace_slowness * host.expert_product - computed(p)));
  // Casts run as other kernels do while more are launched.
  const double in_16_bits = gap(p);
  p.training.precision = Precision::fp8;
  CHECK(gap(p) == Approx(2 * 64 * host.grace_slowness * host.expert_product - computed(p)));
  CHECK(gap(p) > in_16_bits);
  // Eight are soon launched.
  CHECK(gap(super(64)) == 0);
}

TEST_CASE("no launches are waited for that were made before, or are one") {
  Problem p = problem(Runtime::megatron, "nemotron-3-super-120b-a12b", {.dp = 64, .ep = 8}, "B300");
  const auto gap = [&] { return find(module_times(p, LayerKind::moe), Module::fc1)->forward.gaps; };
  REQUIRE(gap() > 0);
  MegatronSettings& set = p.runtime.megatron;
  const MegatronSettings usual = set;
  set.use_transformer_engine_op_fuser = true;
  CHECK(gap() == 0);
  set = usual;
  set.moe_pad_to_capacity = true;
  CHECK(gap() == 0);
  set = usual;
  set.cuda_graph_impl = CudaGraphs::full_iteration;
  CHECK(gap() == 0);
}
