// How does a layout run over several GPUs? Front door: run_over_nccl.
#include "validator/cuda/nccl_run.hpp"

#include <array>

#include "validator/cuda/nccl_communicator.hpp"
#include "validator/cuda/run.hpp"
#include "validator/rendezvous/exchange.hpp"
#include "validator/report_blob.hpp"

namespace zeroplan::engine {
namespace {

// What a rank names communicators for: those whose first rank it is, and the two links between it
// and the next stage.
enum Slot : std::size_t { tp_slot, dp_slot, ends_slot, forward_slot, backward_slot, slots };
using Ids = std::array<ncclUniqueId, slots>;

Ids own_ids(const Problem& problem, const Place& p) {
  const Layout& l = problem.layout;
  Ids ids{};
  const auto name = [&](Slot slot) { check(ncclGetUniqueId(&ids[slot]), "ncclGetUniqueId"); };
  if (l.tp > 1 && p.tp == 0) name(tp_slot);
  if (l.dp > 1 && p.dp == 0) name(dp_slot);
  if (const Seat seat = seat_at_ends(problem, p); seat.size > 1 && seat.rank == 0) name(ends_slot);
  if (p.pp + 1 < l.pp) {
    name(forward_slot);
    name(backward_slot);
  }
  return ids;
}

// Stage by stage, so that two neighbours always make the same link at the same time.
void link_pipeline(NcclCommunicator& pp,
                   const Layout& l,
                   const Place& p,
                   const std::vector<Ids>& ids,
                   const Watch& watch) {
  const auto both_ways = [&](std::int64_t lower) {
    Place namer = p;
    namer.pp = lower;
    const Ids& named = ids[static_cast<std::size_t>(rank_of(l, namer))];
    pp.link(named[forward_slot], lower, lower + 1, watch);
    pp.link(named[backward_slot], lower + 1, lower, watch);
  };
  if (p.pp > 0) both_ways(p.pp - 1);
  if (p.pp + 1 < l.pp) both_ways(p.pp);
}

// Whether something travels while the device goes on: an exact allocator would wait for it.
bool passes_on(const Problem& p) {
  const ZeroplanSettings& set = p.runtime.zeroplan;
  return p.layout.pp > 1 || (set.prefetch && p.layout.zero >= ZeroStage::parameters) ||
         (set.overlap_comm && p.layout.zero >= ZeroStage::gradients);
}

GpuRun gathered(RankReport report, const Closing& closing, double seconds, Rendezvous& star) {
  GpuRun run;
  run.report.seconds = seconds;
  const std::vector<Blob> all = star.gather(packed(report, closing));
  if (all.empty()) {
    run.report.ranks.push_back(std::move(report));
    run.closings.push_back(closing);
  }
  for (const Blob& blob : all) {
    auto [other, closed] = unpacked(blob);
    run.report.ranks.push_back(std::move(other));
    run.closings.push_back(closed);
  }
  return run;
}

}  // namespace

GpuRun run_over_nccl(const Problem& problem,
                     const RunOptions& asked,
                     const Launch& launch,
                     std::int64_t gpu,
                     Rendezvous& star) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  const Place p = place_of(l, launch.rank);
  const Watch watch{options.patience, [&] { return star.lost_peer(); }};
  const Watchdog watchdog = watching(options);
  Meter meter(static_cast<int>(gpu),
              passes_on(problem) ? Allocation::pooled : allocation_of(options));
  CudaDevice device(meter);
  NcclCommunicator tp(device, p.tp, l.tp);
  NcclCommunicator dp(device, p.dp, l.dp);
  NcclCommunicator pp(device, p.pp, l.pp);
  const Seat seat = seat_at_ends(problem, p);
  NcclCommunicator ends(device, seat.rank, seat.size);
  const std::vector<Ids> ids = exchange(star, own_ids(problem, p), launch.world, "NCCL's ids");
  const auto named_by = [&](Place namer, Slot slot) -> const ncclUniqueId& {
    return ids[static_cast<std::size_t>(rank_of(l, namer))][slot];
  };
  if (l.tp > 1) tp.connect(named_by({.tp = 0, .dp = p.dp, .pp = p.pp}, tp_slot), watch);
  if (l.dp > 1) dp.connect(named_by({.tp = p.tp, .dp = 0, .pp = p.pp}, dp_slot), watch);
  link_pipeline(pp, l, p, ids, watch);
  if (seat.size > 1) ends.connect(named_by({.tp = p.tp, .dp = p.dp, .pp = 0}, ends_slot), watch);
  const auto start = Clock::now();
  RankReport report = run_steps(problem, p, device, {tp, dp, pp, ends}, options);
  for (NcclCommunicator* group : {&tp, &dp, &pp, &ends}) group->finish();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return gathered(std::move(report), meter.closing(), seconds, star);
}

}  // namespace zeroplan::engine
