// How do people read a probe? Front door: probe_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "cli/probe/probe_preset.hpp"
#include "gpu_probe/alpha_beta.hpp"
#include "presets/catalog.hpp"

namespace zeroplan {
namespace {

double mebibytes(Bytes bytes) {
  return static_cast<double>(bytes.count()) / static_cast<double>(mebi);
}

double gigabytes_per_second(Bytes moved, const Samples& seconds) {
  return static_cast<double>(moved.count()) / median(seconds) / giga;
}

// Beside what the law of step time expects of a GPU of this name. Healthy: as near as its mean
// error on products of A100, H100, H200 and B200 may be
// (tests/cost_model/kernel/measured_gemm_test.cpp).
std::string health(const ProbeFacts& facts) {
  constexpr double healthy = 0.85;
  const GpuSpec gpu = read_cluster(probe_preset(facts), "probe").gpu;
  const bool slow = std::min(gpu.product_speed, gpu.memory_speed) < healthy;
  return fmt::format(
      "products run at {:.2f} and memory streams at {:.2f} of what is expected of {}{}",
      gpu.product_speed, gpu.memory_speed, gpu.name, slow ? ": SLOW OR THROTTLED" : "");
}

}  // namespace

std::string probe_text(const ProbeFacts& facts) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    const Device& d = facts.devices[i];
    line("GPU {}: {}, {:.2f} GiB, {:.2f} GiB free, compute capability {}.{}", i, d.name,
         gibibytes(d.memory), gibibytes(d.free), d.compute_capability / 10,
         d.compute_capability % 10);
  }
  line("driver for CUDA {}, CUDA {}, NCCL {}", facts.driver, facts.cuda, facts.nccl);
  const MemoryFacts& m = facts.memory;
  line("memory: context {:.1f} MiB, modules {:.1f} MiB, cuBLASLt {:.1f} MiB, cut in {:.1f} MiB",
       mebibytes(m.context), mebibytes(m.modules), mebibytes(m.cublas),
       mebibytes(m.allocation_step));
  for (const CommunicatorMemory& c : facts.communicators) {
    line("communicator of {}: {:.1f} MiB, {:.1f} MiB once used", c.ranks, mebibytes(c.created),
         mebibytes(c.created + c.after_small + c.after_large + c.after_sharding));
  }
  for (const GemmSamples& g : facts.gemms) {
    line("product {} x {} x {}: {:.0f} TFLOP/s", g.gemm.m, g.gemm.n, g.gemm.k,
         flops(g.gemm) / median(g.seconds) / 1e12);
  }
  for (const TransferSamples& t : facts.transfers) {
    line("{}: {:.1f} GB/s", name_of(t.transfer), gigabytes_per_second(t.moved, t.seconds));
  }
  if (!facts.gemms.empty() && !facts.transfers.empty()) line("{}", health(facts));
  if (const auto& c = facts.clocks) {
    line("clocks while products run: {} of {} MHz{}{}", c->megahertz, c->highest_megahertz,
         c->held_back_by.empty() ? "" : ", held back by ", fmt::join(c->held_back_by, " and "));
  }
  for (const PeerSamples& p : facts.peers) {
    line("GPU {} to {}: {:.1f} GB/s{}", p.from, p.to, gigabytes_per_second(p.moved, p.seconds),
         p.direct ? "" : ", through the host");
  }
  for (const CollectiveSamples& c : facts.collectives) {
    line("{} over {}, {} B: {:.1f} us", name_of(c.collective), c.ranks, c.payload.count(),
         1e6 * median(c.seconds));
  }
  return text;
}

}  // namespace zeroplan
