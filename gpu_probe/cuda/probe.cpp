// What does this machine have? Front door: probe_machine.
#include "gpu_probe/probe.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/cuda/parts.hpp"
#include "gpu_probe/cuda/watchdog.hpp"

namespace zeroplan {
namespace {

// CUDA writes 13020 for 13.2.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

void read_versions(ProbeFacts& facts) {
  int number = 0;
  check(cudaDriverGetVersion(&number), "cudaDriverGetVersion");
  facts.driver = cuda_version(number);
  check(cudaRuntimeGetVersion(&number), "cudaRuntimeGetVersion");
  facts.cuda = cuda_version(number);
  check(ncclGetVersion(&number), "ncclGetVersion");
  facts.nccl = fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
  facts.cublas = fmt::format("{}", cublasLtGetVersion());
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

ProbeFacts probe_machine(const ProbePlan& plan) {
  // Waits for collectives end first, and say what they waited for.
  const Watchdog watchdog(plan.patience + std::chrono::seconds(1), "; --timeout gives it longer");
  const int devices = device_count();
  const auto begin = [&](std::string_view stage) {
    if (plan.started) plan.started(stage);
  };
  ProbeFacts facts;
  facts.taken = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  facts.host = host_name();
  begin("memory");
  facts.memory = measure_memory();
  facts.devices = visible_devices();
  read_versions(facts);
  begin("communicators");
  facts.communicators = measure_communicators(devices, plan.patience);
  begin("matrix products");
  facts.gemms = measure_gemms(plan.gemms);
  if (!plan.gemms.empty()) facts.clocks = measure_clocks(plan.gemms.front());
  begin("memory traffic and the host's link");
  facts.transfers = measure_transfers(plan.largest_payload);
  begin("links between GPUs");
  facts.peers = measure_peers(devices, plan.largest_payload);
  begin("collectives");
  facts.collectives = measure_collectives(devices, plan.largest_payload, plan.patience);
  return facts;
}

}  // namespace zeroplan
