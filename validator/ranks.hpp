#pragma once
// The ranks of a layout, whatever they run on: where each stands, with whom it talks, its steps.

#include <functional>
#include <memory>
#include <vector>

#include "validator/communicator/absent_peers.hpp"
#include "validator/communicator/loopback.hpp"
#include "validator/run.hpp"

namespace zeroplan::engine {

/// The communicators of one rank.
struct Groups {
  Communicator& tp;
  Communicator& dp;
  Communicator& pp;
  Communicator& ends;
};

/// A rank within a group.
struct Seat {
  std::int64_t rank = 0, size = 1;
};

/// Among the two ends of the pipeline that hold a tied embedding each: the group that the cost
/// model calls `embedding`. Alone where there are no two, and between them.
Seat seat_at_ends(const Problem& problem, const Place& place);

/// All groups of a rank whose peers are not there.
class AbsentGroups {
 public:
  AbsentGroups(const Problem& problem, const Place& place);
  operator Groups() { return {tp_, dp_, pp_, ends_}; }  // NOLINT: stands for them

 private:
  AbsentPeers tp_, dp_, pp_, ends_;
};

/// tp fastest, then dp, then pp; and back.
Place place_of(const Layout& layout, std::int64_t rank);
std::int64_t rank_of(const Layout& layout, const Place& place);

/// All steps of a rank on any device.
RankReport run_steps(const Problem& problem,
                     const Place& place,
                     Device& device,
                     const Groups& groups,
                     const RunOptions& options);

/// The options with samples, where none were given.
RunOptions with_samples(const Problem& problem, const RunOptions& options);

/// Where the ranks of one process meet, group by group.
class Meetings {
 public:
  Meetings(const Layout& layout, Alarm& alarm);

  Meeting& tp(const Place& p) { return at(tp_, p.pp * layout_.dp + p.dp); }
  Meeting& dp(const Place& p) { return at(dp_, p.pp * layout_.tp + p.tp); }
  Meeting& pp(const Place& p) { return at(pp_, p.dp * layout_.tp + p.tp); }
  Meeting& ends(const Place& p) { return at(ends_, p.dp * layout_.tp + p.tp); }

 private:
  using List = std::vector<std::unique_ptr<Meeting>>;
  static Meeting& at(const List& list, std::int64_t i) {
    return *list[static_cast<std::size_t>(i)];
  }

  Layout layout_;
  List tp_, dp_, pp_, ends_;
};

/// Runs `work` for every rank, each in a thread of its own, and returns the seconds until all have
/// ended. The first failure raises the alarm, which ends the others, and is then thrown.
double run_threads(std::int64_t ranks,
                   Alarm& alarm,
                   const std::function<void(std::int64_t rank)>& work);

}  // namespace zeroplan::engine
