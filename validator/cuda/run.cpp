// How does a layout run on one GPU? Front doors: run_on_one_gpu, run_as_rank.
#include "validator/cuda/run.hpp"

#include <exception>
#include <memory>
#include <thread>

#include "validator/communicator/absent_peers.hpp"
#include "validator/cuda/cuda_loopback.hpp"

namespace zeroplan::engine {
namespace {

using Meetings = std::vector<std::unique_ptr<Meeting>>;

Meetings meetings(Alarm& alarm, std::int64_t world, std::int64_t ranks) {
  Meetings list;
  for (std::int64_t i = 0; i < world / ranks; ++i) {
    list.push_back(std::make_unique<Meeting>(alarm, ranks));
  }
  return list;
}

Meeting& at(const Meetings& list, std::int64_t i) {
  return *list[static_cast<std::size_t>(i)];
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

GpuRun run_on_one_gpu(const Problem& problem, const RunOptions& asked) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  const std::int64_t world = world_size(l);
  Meter meter(0, Allocation::exact);
  Alarm alarm(options.patience);
  const Meetings tps = meetings(alarm, world, l.tp);
  const Meetings dps = meetings(alarm, world, l.dp);
  const Meetings pps = meetings(alarm, world, l.pp);
  GpuRun run;
  run.report.ranks.resize(static_cast<std::size_t>(world));
  std::exception_ptr first_failure;
  std::mutex failing;
  const auto work = [&](std::int64_t rank) {
    try {
      const Place p = place_of(l, rank);
      CudaDevice device(meter);
      CudaLoopback tp(device, at(tps, p.pp * l.dp + p.dp), p.tp, l.tp);
      CudaLoopback dp(device, at(dps, p.pp * l.tp + p.tp), p.dp, l.dp);
      CudaLoopback pp(device, at(pps, p.dp * l.tp + p.tp), p.pp, l.pp);
      run.report.ranks[static_cast<std::size_t>(rank)] =
          run_steps(problem, p, device, {tp, dp, pp}, options);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(failing);
        if (!first_failure) first_failure = std::current_exception();
      }
      alarm.raise("rank " + std::to_string(rank) + " failed: " + error.what());
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < world; ++rank) threads.emplace_back(work, rank);
  }
  run.report.seconds = seconds_since(start);
  if (first_failure) std::rethrow_exception(first_failure);
  run.closings = {meter.closing()};
  return run;
}

GpuRun run_as_rank(const Problem& problem, const Place& place, const RunOptions& asked) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  Meter meter(0, Allocation::exact);
  CudaDevice device(meter);
  AbsentPeers tp(place.tp, l.tp);
  AbsentPeers dp(place.dp, l.dp);
  AbsentPeers pp(place.pp, l.pp);
  GpuRun run;
  const auto start = std::chrono::steady_clock::now();
  run.report.ranks = {run_steps(problem, place, device, {tp, dp, pp}, options)};
  run.report.seconds = seconds_since(start);
  run.closings = {meter.closing()};
  return run;
}

}  // namespace zeroplan::engine
