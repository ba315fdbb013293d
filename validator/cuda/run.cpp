// How does a layout run on one GPU? Front doors: run_on_one_gpu, run_as_rank.
#include "validator/cuda/run.hpp"

#include <chrono>

#include "validator/cuda/cuda_loopback.hpp"

namespace zeroplan::engine {

Watchdog watching(const RunOptions& options) {
  // Ranks that wait for another give up first, and say for whom.
  return {options.patience + std::chrono::seconds(1), "; --timeout gives it longer"};
}

Allocation allocation_of(const RunOptions& options) {
  return options.timed ? Allocation::pooled : Allocation::exact;
}

GpuRun run_on_one_gpu(const Problem& problem, const RunOptions& asked) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  const Watchdog watchdog = watching(options);
  Meter meter(0, allocation_of(options));
  Alarm alarm(options.patience);
  Meetings meetings(l, alarm);
  GpuRun run;
  run.report.ranks.resize(static_cast<std::size_t>(world_size(l)));
  run.report.seconds = run_threads(world_size(l), alarm, [&](std::int64_t rank) {
    const Place p = place_of(l, rank);
    CudaDevice device(meter);
    CudaLoopback tp(device, meetings.tp(p), p.tp, l.tp);
    CudaLoopback dp(device, meetings.dp(p), p.dp, l.dp);
    CudaLoopback pp(device, meetings.pp(p), p.pp, l.pp);
    const Seat seat = seat_at_ends(problem, p);
    CudaLoopback ends(device, meetings.ends(p), seat.rank, seat.size);
    run.report.ranks[static_cast<std::size_t>(rank)] =
        run_steps(problem, p, device, {tp, dp, pp, ends}, options);
  });
  run.closings = {meter.closing()};
  return run;
}

GpuRun run_as_rank(const Problem& problem, const Place& place, const RunOptions& asked) {
  const RunOptions options = with_samples(problem, asked);
  const Watchdog watchdog = watching(options);
  Meter meter(0, allocation_of(options));
  CudaDevice device(meter);
  AbsentGroups absent(problem, place);
  GpuRun run;
  const auto start = std::chrono::steady_clock::now();
  run.report.ranks = {run_steps(problem, place, device, absent, options)};
  run.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.closings = {meter.closing()};
  return run;
}

}  // namespace zeroplan::engine
