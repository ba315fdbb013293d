#include "cost_model/time/layer_time.hpp"

#include "cost_model/time/memory_bound.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

TEST_CASE("a layer never takes less with more tokens, and never more on a faster GPU") {
  for (const std::string_view model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    for (const Runtime runtime : {Runtime::megatron, Runtime::fsdp2, Runtime::deepspeed}) {
      const LayerKind kind = find_model(model).spec.moe ? LayerKind::moe : LayerKind::dense;
      double before = 0;
      for (const std::int64_t length : {512, 1024, 4096, 5000, 32768}) {
        double fastest = 1e9;
        for (const char* gpu : {"A100-80GB", "H100-80GB", "B200"}) {
          Problem p = problem(runtime, model, {}, gpu);
          p.training.sequence_length = length;
          const BlockTime time = layer_time(p, kind);
          const double seconds = (time.forward + time.backward()).total();
          CAPTURE(model, name_of(runtime), length, gpu);
          REQUIRE(seconds < fastest);
          fastest = seconds;
        }
        REQUIRE(fastest > before);
        before = fastest;
      }
    }
  }
}

TEST_CASE("recompute lengthens backward only") {
  for (const Runtime runtime : {Runtime::megatron, Runtime::fsdp2}) {
    const auto time = [&](Recompute recompute) {
      return layer_time(problem(runtime, "llama3-8b", {.recompute = recompute}), LayerKind::dense);
    };
    const BlockTime none = time(Recompute::none);
    const BlockTime selective = time(Recompute::selective);
    const BlockTime full = time(Recompute::full);
    REQUIRE(none.recompute.total() == 0);
    REQUIRE(selective.forward.total() == none.forward.total());
    REQUIRE(full.recompute.total() == Approx(full.forward.total()));
    REQUIRE(selective.backward().total() > none.backward().total());
    REQUIRE(full.backward().total() > selective.backward().total());
  }
}

TEST_CASE("selective recompute repeats what the runtime drops") {
  // Megatron: core attention. torchtitan: every second product, and all that moves bytes.
  const auto recompute = [](Runtime runtime) {
    const Layout layout{.recompute = Recompute::selective};
    return layer_time(problem(runtime, "llama3-8b", layout), LayerKind::dense);
  };
  const BlockTime megatron = recompute(Runtime::megatron);
  REQUIRE(megatron.recompute.attention == megatron.forward.attention);
  REQUIRE(megatron.recompute.gemm + megatron.recompute.memory_bound == 0);
  const BlockTime titan = recompute(Runtime::fsdp2);
  REQUIRE(titan.recompute.attention == 0);
  REQUIRE(titan.recompute.memory_bound == Approx(titan.forward.memory_bound));
  // k, o and up of the seven: (1024 + 4096 + 14336) x 4096 of 218,103,808 weights.
  REQUIRE(titan.recompute.gemm / titan.forward.gemm == Approx(0.365).epsilon(0.02));
}

TEST_CASE("tensor parallelism divides products; sequence parallelism also norms and residuals") {
  const auto forward = [](std::int64_t tp, bool sequence_parallel) {
    const Layout layout{.tp = tp, .sequence_parallel = sequence_parallel};
    return layer_time(problem(Runtime::megatron, "llama3-70b", layout), LayerKind::dense).forward;
  };
  const KernelTime one = forward(1, false);
  const KernelTime eight = forward(8, false);
  const KernelTime both = forward(8, true);
  REQUIRE(eight.gemm > one.gemm / 8);
  REQUIRE(eight.gemm < one.gemm / 7);
  REQUIRE(both.gemm == eight.gemm);
  REQUIRE(eight.memory_bound > one.memory_bound / 4);
  REQUIRE(both.memory_bound < one.memory_bound / 5);
}

TEST_CASE("a small layer waits for the host") {
  const BlockTime small = layer_time(problem(Runtime::megatron, "gpt2", {}), LayerKind::dense);
  REQUIRE(small.forward.total() < small.host.forward);
  REQUIRE(small.forward_seconds() == small.host.forward);
  Layout full{.recompute = Recompute::full};
  const BlockTime again = layer_time(problem(Runtime::megatron, "gpt2", full), LayerKind::dense);
  REQUIRE(again.host.backward == small.host.backward + small.host.forward);
}

TEST_CASE("context parallelism divides a layer's time about evenly") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {});
  p.training.sequence_length = 65536;
  const double whole = layer_time(p, LayerKind::dense).forward.total();
  p.layout.cp = 8;
  REQUIRE(8 * layer_time(p, LayerKind::dense).forward.total() == Approx(whole).epsilon(0.02));
}

TEST_CASE("all-to-alls of context parallelism copy each head four times") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.cp = 4});
  p.training.sequence_length = 65536;
  const auto moving = [&](ContextTransport transport) {
    p.runtime.megatron.cp_comm_type = transport;
    return layer_time(p, LayerKind::dense).forward.memory_bound;
  };
  // Queries and outputs of 4,096 features, keys and values of 1,024, 16,384 tokens, 16 bits.
  const Bytes copied{4LL * (4096 + 4096 + 1024 + 1024) * 16384 * 2};
  REQUIRE(moving(ContextTransport::a2a) - moving(ContextTransport::p2p) ==
          Approx(memory_bound_seconds(copied, Access::streaming, p.cluster.gpu)));
}

TEST_CASE("the host launches latent attention and shared experts module by module") {
  Problem p = problem(Runtime::megatron, "deepseek-v3", {});
  const auto forward = [&](LayerKind kind) { return layer_time(p, kind).host.forward; };
  const double latent = forward(LayerKind::dense);
  const double shared = forward(LayerKind::moe);
  p.model.attention.mla.reset();
  p.model.moe->shared_intermediate_size = 0;
  const double linear = forward(LayerKind::dense) / 5;  // of four linears and attention
  REQUIRE(latent == Approx(8 * linear));
  REQUIRE(shared - forward(LayerKind::moe) == Approx(5 * linear));
}
