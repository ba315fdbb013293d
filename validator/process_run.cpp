// How does one of several processes run its rank on the host? Front door: run_as_process.
#include "validator/process_run.hpp"

#include "validator/communicator/socket_communicator.hpp"
#include "validator/host/host_device.hpp"
#include "validator/ranks.hpp"
#include "validator/report_blob.hpp"

namespace zeroplan::engine {
namespace {

// The group of both ends of the pipeline, or the rank alone.
SocketCommunicator ends_of(Mesh& mesh, const Problem& problem, Place place) {
  const Seat seat = seat_at_ends(problem, place);
  std::vector<std::int64_t> members{rank_of(problem.layout, place)};
  if (seat.size > 1) {
    members.clear();
    for (const std::int64_t stage : {std::int64_t{0}, problem.layout.pp - 1}) {
      place.pp = stage;
      members.push_back(rank_of(problem.layout, place));
    }
  }
  return {mesh, seat.rank, std::move(members)};
}

// The ranks whose places differ from `place` in one coordinate alone.
SocketCommunicator group_of(Mesh& mesh,
                            const Layout& layout,
                            Place place,
                            std::int64_t Place::*coordinate,
                            std::int64_t size) {
  const std::int64_t own = place.*coordinate;
  std::vector<std::int64_t> members;
  for (std::int64_t i = 0; i < size; ++i) {
    place.*coordinate = i;
    members.push_back(rank_of(layout, place));
  }
  return {mesh, own, std::move(members)};
}

}  // namespace

RunReport run_as_process(const Problem& problem,
                         const RunOptions& asked,
                         const Launch& launch,
                         Rendezvous& star,
                         Mesh& mesh) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  const Place place = place_of(l, launch.rank);
  HostDevice device;
  SocketCommunicator tp = group_of(mesh, l, place, &Place::tp, l.tp);
  SocketCommunicator dp = group_of(mesh, l, place, &Place::dp, l.dp);
  SocketCommunicator pp = group_of(mesh, l, place, &Place::pp, l.pp);
  SocketCommunicator ends = ends_of(mesh, problem, place);
  const auto start = Clock::now();
  RankReport own = run_steps(problem, place, device, {tp, dp, pp, ends}, options);
  mesh.flush();
  RunReport report;
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::vector<Blob> all = star.gather(packed(own, Closing{}));
  if (all.empty()) report.ranks.push_back(std::move(own));
  for (const Blob& blob : all) report.ranks.push_back(unpacked(blob).first);
  return report;
}

}  // namespace zeroplan::engine
