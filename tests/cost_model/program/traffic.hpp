#pragma once
// What memory allocates for collectives, and what traffic says is sent: two descriptions of a step.

#include <algorithm>
#include <initializer_list>
#include <ostream>

#include "cost_model/network/volume.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"

namespace zeroplan::tests {

struct Sum {
  std::int64_t count = 0;
  Bytes bytes;
  friend bool operator==(const Sum&, const Sum&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Sum& sum) {
    return out << sum.count << " of " << sum.bytes.count() << " bytes";
  }
};

using Names = std::initializer_list<std::string_view>;

inline bool is_one_of(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// All events of a whole step of one stage.
inline std::vector<Played> played_step(const Problem& p,
                                       const Evaluator& evaluator,
                                       std::size_t stage) {
  return played_events(evaluator.stage_program(p, stages(p)[stage]),
                       passes(p, static_cast<std::int64_t>(stage), micro_batches(p)));
}

// The allocations of these names, as large as the allocator makes them.
inline Sum allocated(const std::vector<Played>& record, Names names) {
  Sum sum;
  for (const Played& event : record) {
    if (!event.allocates || !is_one_of(names, event.tensor.name)) continue;
    ++sum.count;
    sum.bytes += event.tensor.bytes;
  }
  return sum;
}

// The calls in these groups. `unit`: each payload is rounded up to a multiple of it.
inline Sum sent(const std::vector<CollectiveLoad>& loads,
                Names groups,
                Collective what,
                std::int64_t unit = allocation_unit) {
  Sum sum;
  for (const CollectiveLoad& load : loads) {
    if (load.collective != what || !is_one_of(groups, load.group.name)) continue;
    sum.count += load.calls;
    sum.bytes += load.calls * Bytes{round_up(load.payload.count(), unit)};
  }
  return sum;
}

}  // namespace zeroplan::tests
