// Attention whose keys go round a ring of context parallelism.
#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/module_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem of_ring(std::int64_t cp, ContextTransport transport) {
  Problem p = problem(Runtime::megatron, "llama3-70b", {.cp = cp}, "H100-80GB");
  p.training.sequence_length = 8192;
  p.runtime.megatron.cp_comm_type = transport;
  return p;
}

KernelTime attention(const Problem& p, Product product) {
  return find(module_times(p, LayerKind::dense, LayerPart::whole), Module::core_attention)
      ->at(product);
}

}  // namespace

TEST_CASE("the kernels of a ring compute what one of all keys does") {
  for (const std::int64_t cp : {2, 4, 8}) {
    const AttentionShape whole = core_attention(of_ring(cp, ContextTransport::p2p));
    const double parts = attention_flops(own_keys(whole)) +
                         static_cast<double>(cp - 1) * attention_flops(keys_of_another(whole));
    CHECK(parts == Approx(attention_flops(whole)));
  }
}

TEST_CASE("a ring takes longer than one kernel, the more so the more ranks divide the sequence") {
  double before = 1;
  for (const std::int64_t cp : {2, 4, 8}) {
    for (const Product product : {Product::forward, Product::input_gradient}) {
      CHECK(attention(of_ring(cp, ContextTransport::p2p), product).attention >
            attention(of_ring(cp, ContextTransport::all_gather), product).attention);
    }
    const double slower =
        attention(of_ring(cp, ContextTransport::p2p), Product::forward).attention /
        attention(of_ring(cp, ContextTransport::all_gather), Product::forward).attention;
    CHECK(slower > before);
    before = slower;
  }
}

// Forward: the first step's output is read and written, to which three quarters of each other's are
// added on average.
TEST_CASE("a ring adds up what its steps give") {
  const Problem ring = of_ring(4, ContextTransport::p2p);
  const double output = 2.0 * 8192 / 4 * 8192;  // bytes
  const double moved = output * (2 + 3 * 3 * 0.75);
  const double seconds = attention(ring, Product::forward).memory_bound;
  CHECK(seconds > moved / ring.cluster.gpu.memory_bandwidth);
  CHECK(attention(of_ring(4, ContextTransport::all_gather), Product::forward).memory_bound == 0);
}
