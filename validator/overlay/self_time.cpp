#include "validator/overlay/self_time.hpp"

#include <algorithm>
#include <map>

namespace zeroplan {

std::vector<double> self_seconds(const std::vector<TraceEvent>& events,
                                 const std::vector<std::size_t>& chosen) {
  std::vector<double> own;
  std::vector<std::size_t> order(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    own.push_back(events[chosen[i]].seconds);
    order[i] = i;
  }
  // Of events that start together the longest is outside.
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const TraceEvent& one = events[chosen[a]];
    const TraceEvent& other = events[chosen[b]];
    return one.start != other.start ? one.start < other.start : one.seconds > other.seconds;
  });
  std::map<std::int64_t, std::vector<std::size_t>> open;  // of each thread, innermost last
  for (const std::size_t i : order) {
    const TraceEvent& event = events[chosen[i]];
    std::vector<std::size_t>& stack = open[event.thread];
    while (!stack.empty() && events[chosen[stack.back()]].end() <= event.start) stack.pop_back();
    if (!stack.empty()) own[stack.back()] = std::max(0.0, own[stack.back()] - event.seconds);
    stack.push_back(i);
  }
  return own;
}

}  // namespace zeroplan
