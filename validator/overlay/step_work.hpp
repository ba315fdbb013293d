#pragma once
// Where the time of a step goes, of one that was measured or of one that is predicted.

#include <array>
#include <string>
#include <vector>

#include "validator/overlay/work_kind.hpp"

namespace zeroplan {

/// Kernels of one name.
struct NamedWork {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0;
};

struct WorkSum {
  std::int64_t count = 0;
  double seconds = 0;            // one after the other, whatever runs beside them
  double exposed = 0;            // of collectives: while nothing computes
  double added = 0;              // of predicted ones: what they add to the step, as fit says
  std::vector<NamedWork> names;  // longest first

  void add(const WorkSum& other);
};

/// Collectives of one kind over groups of one size.
struct CallSum {
  std::optional<Collective> collective;  // none: its name does not say
  std::string group;         // predicted: its name; measured: what PyTorch was told, or nothing
  std::int64_t ranks = 0;    // 0: not said
  std::int64_t payload = 0;  // bytes of all of them as in collective.hpp; 0: not said
  WorkSum work;
};

struct StepWork {
  double seconds = 0;
  std::array<WorkSum, 8> kinds;  // by Work; collectives summed up
  std::vector<CallSum> calls;

  WorkSum& at(Work work) { return kinds[static_cast<std::size_t>(work)]; }
  const WorkSum& at(Work work) const { return kinds[static_cast<std::size_t>(work)]; }
};

}  // namespace zeroplan
