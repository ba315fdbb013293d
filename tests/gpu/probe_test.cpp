#include <algorithm>

#include "gpu_probe/alpha_beta.hpp"
#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/cuda/node_groups.hpp"
#include "gpu_probe/cuda/parts.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

constexpr std::chrono::seconds patience{60};

}  // namespace

TEST_CASE("memory before the first tensor is counted, and cut in known steps") {
  const MemoryFacts facts = measure_memory();
  CHECK(facts.total > 1_GiB);
  CHECK(facts.context > Bytes{});
  CHECK(facts.context < 4_GiB);
  CHECK(facts.modules >= Bytes{});
  CHECK(facts.allocation_step.count() % mebi == 0);
  CHECK(facts.minimum_granularity.count() % 4096 == 0);
  CHECK(facts.recommended_granularity >= facts.minimum_granularity);
}

TEST_CASE("each of a linear's three products runs, faster than memory alone would let it") {
  for (const Product product :
       {Product::forward, Product::input_gradient, Product::weight_gradient}) {
    const std::vector<GemmSamples> samples =
        measure_gemms({{.product = product, .m = 4096, .n = 6144, .k = 2048}});
    REQUIRE(samples.size() == 1);
    const double reached = flops(samples[0].gemm) / median(samples[0].seconds);
    CHECK(reached > 5e12);
    CHECK(reached < 1e16);
  }
}

TEST_CASE("memory moves faster on the device than over the host's link") {
  const std::vector<TransferSamples> all = measure_transfers(256_MiB);
  const auto rate = [&](Transfer transfer) {
    const auto found = std::ranges::find(all, transfer, &TransferSamples::transfer);
    REQUIRE(found != all.end());
    return static_cast<double>(found->moved.count()) / median(found->seconds);
  };
  CHECK(rate(Transfer::copy) > rate(Transfer::to_device));
  CHECK(rate(Transfer::to_device) > 0.5e9);
  CHECK(rate(Transfer::both_ways) > 0.9 * rate(Transfer::to_host));
}

TEST_CASE("a communicator of one GPU starts, works and ends") {
  const std::vector<CommunicatorMemory> memory = measure_communicators(1, patience);
  REQUIRE(memory.size() == 1);
  CHECK(memory[0].ranks == 1);
  CHECK(memory[0].created >= Bytes{});
  CHECK(memory[0].created < 4_GiB);
}

TEST_CASE("with several GPUs each collective takes longer for more bytes") {
  const int devices = device_count();
  if (devices < 2) return;  // nothing to communicate with
  const std::vector<CollectiveSamples> all = measure_collectives(devices, 64_MiB, patience);
  for (std::size_t c = 0; c < names<Collective>().size(); ++c) {
    std::vector<double> seconds;
    for (const CollectiveSamples& line : all) {
      if (line.ranks == devices && line.collective == static_cast<Collective>(c)) {
        seconds.push_back(median(line.seconds));
      }
    }
    CAPTURE(names<Collective>()[c]);
    REQUIRE(seconds.size() == 17);  // 1 KiB to 64 MiB
    CHECK(seconds.back() > seconds.front());
  }
}
