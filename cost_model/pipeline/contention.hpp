#pragma once
// What is sent beside a pass, where the pass sends over the same switches between nodes.
//
// Two kinds of groups that ask uplinks for more than those carry both slow down while both send.
// Which moments of a pass these are is not simulated: both are taken as spread evenly over it.

#include <optional>
#include <vector>

#include "cost_model/network/fabric.hpp"
#include "cost_model/pipeline/directions.hpp"

namespace zeroplan {

/// What one kind of groups sends in a pass.
struct SentKind {
  Sending who;
  bool waited = false;  // for, by the pass; else other work of it goes on
  Directions seconds;   // while nothing else is sent
};

/// What all kinds of groups send in a pass; none on clusters that say nothing of switches.
class SentKinds {
 public:
  bool empty() const { return kinds_.empty(); }
  auto begin() const { return kinds_.begin(); }
  auto end() const { return kinds_.end(); }
  void add(const SentKind& kind);
  SentKinds& operator+=(const SentKinds& other) {
    for (const SentKind& kind : other) add(kind);
    return *this;
  }
  friend SentKinds operator*(double times, SentKinds kinds) {
    for (SentKind& kind : kinds.kinds_) kind.seconds = times * kind.seconds;
    return kinds;
  }

 private:
  std::vector<SentKind> kinds_;
};

/// What is sent with a pass beside it.
struct SentBeside {
  Sending who;
  During during = During::forward;  // the direction of that pass
  bool once = false;                // a step, not in each such pass
  double seconds = 0;
};

/// As parts of a pass, what of its own sending takes from what is sent beside it all the while:
/// while it waits for that, and while it does not.
struct Crowding {
  double waited = 0;
  double hidden = 0;
};

/// A pass that has something beside it.
struct PassBeside {
  During during = During::forward;  // its direction
  bool once = false;                // the one of a step, not each such pass
  double seconds = 0;
  double beside = 0;  // seconds of all that is beside it
};

/// The crowding of a pass where some of what is beside it is `sent`, on one cluster.
Crowding crowding_where_sent(const ClusterSpec& cluster,
                             const std::vector<SentBeside>& sent,
                             const SentKinds& kinds,
                             const PassBeside& pass);
inline Crowding crowding(const ClusterSpec& cluster,
                         const std::vector<SentBeside>& sent,
                         const SentKinds& kinds,
                         const PassBeside& pass) {
  if (sent.empty() || kinds.empty() || pass.beside <= 0 || pass.seconds <= 0) return {};
  return crowding_where_sent(cluster, sent, kinds, pass);
}

}  // namespace zeroplan
