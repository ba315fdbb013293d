#include "cost_model/kernel/layer_time.hpp"

#include "cost_model/kernel/memory_bound.hpp"
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
  // o and up of qkv, o, gate, up, down: (4096 + 14336) x 4096 of 218,103,808 weights.
  REQUIRE(titan.recompute.gemm / titan.forward.gemm == Approx(0.346).epsilon(0.02));
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

TEST_CASE("norms after each half take what norms before them do") {
  Problem p = problem(Runtime::ddp, "olmo2-7b", {}, "H100-80GB");
  const BlockTime after = layer_time(p, LayerKind::dense);
  p.model.norms_after = false;
  const BlockTime before = layer_time(p, LayerKind::dense);
  CHECK(after.forward.total() == Approx(before.forward.total()).epsilon(0.01));
  CHECK(after.backward().total() == Approx(before.backward().total()).epsilon(0.01));
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
  p.runtime.megatron.cp_comm_type = ContextTransport::all_gather;  // one kernel of all keys
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
  REQUIRE(moving(ContextTransport::a2a) - moving(ContextTransport::all_gather) ==
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

namespace {

BlockTime titan_head(std::vector<Override> settings, std::string_view model = "llama3-8b") {
  Problem p = problem(Runtime::fsdp2, model, {}, "H100-80GB");
  p.runtime = load_runtime(Runtime::fsdp2, settings);
  return head_time(p);
}

double total(const BlockTime& time) {
  return (time.forward + time.backward()).total();
}

}  // namespace

TEST_CASE("a loss in parts takes what the whole one does, and adding up the parts' gradients") {
  for (const std::string_view model : {"llama3-8b", "gemma2-9b", "gpt2"}) {
    double before = total(titan_head({{"loss_chunks", "1"}}, model));
    REQUIRE(before == total(titan_head({{"recipe_date", "2026-04-26"}}, model)));
    for (const char* parts : {"2", "8", "32"}) {
      const BlockTime time = titan_head({{"loss_chunks", parts}}, model);
      CAPTURE(model, parts);
      REQUIRE(total(time) > before);
      REQUIRE(time.backward().gemm == 0);  // each part runs backward before the next one
      before = total(time);
    }
  }
}

// Of the weight the first part's gradient is widened (2 + 4 bytes an element), seven are added
// (4 + 2 + 4 each); of the hidden state a buffer is filled (4), parts are widened (2 + 4) and
// copied (4 + 4), and it is narrowed (4 + 2). Kernels start in 3 us.
TEST_CASE("what eight parts of a loss move beside it, by hand") {
  const BlockTime whole = titan_head({{"loss_chunks", "1"}});
  const BlockTime parts = titan_head({{"loss_chunks", "8"}});
  const double weight = 128256. * 4096;
  const double hidden = 4096. * 4096;
  const double moved = (6 + 7 * 10) * weight + (4 + 6 + 8 + 6) * hidden;
  const double kernels = 1 + 7 + 1 + 8 + 8 + 1 + 2 * (8 - 1);
  const double more = parts.forward.memory_bound + parts.input_gradient.memory_bound -
                      whole.forward.memory_bound - whole.input_gradient.memory_bound;
  REQUIRE(more == Approx(moved / (0.8 * 3350e9) + kernels * 3e-6));
}

// torchtitan e23bb707d: 5,957 tokens a second whole, 5,953 in parts, of 8,192 a step.
TEST_CASE("parts of the logits cost next to nothing") {
  const double whole = total(titan_head({{"recipe_date", "2025-03-24"}}));
  const double parts = total(titan_head({{"recipe_date", "2025-03-24"}, {"loss_chunks", "8"}}));
  REQUIRE(parts > whole);
  REQUIRE(parts - whole < 0.002 * 8192 / 5957.);
}
