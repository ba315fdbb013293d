// How does memory move over a step? Front door: timeline.
#include "cost_model/program/timeline.hpp"

#include <fmt/format.h>

namespace zeroplan {

Timeline timeline(const StageProgram& program, const std::vector<Pass>& order) {
  Timeline result;
  play_step(program, order, &result.events);
  for (const TensorSpec& spec : program.resident) result.resident[spec.category] += spec.bytes;
  result.events.erase(result.events.begin(),
                      result.events.begin() + static_cast<std::ptrdiff_t>(program.resident.size()));

  MemoryBreakdown live = result.resident;
  result.live.reserve(result.events.size());
  for (std::size_t i = 0; i < result.events.size(); ++i) {
    const Played& event = result.events[i];
    live[event.tensor.category] += event.allocates ? event.tensor.bytes : -event.tensor.bytes;
    result.live.push_back(live);
    if (live.allocated() > result.live[result.highest].allocated()) result.highest = i;

    const auto at = static_cast<std::int64_t>(i);
    const bool of_pass = event.pass >= 0 && event.phase != Phase::optimizer_step;
    if (!of_pass) continue;
    if (result.passes.size() <= static_cast<std::size_t>(event.pass)) {
      result.passes.push_back({order[static_cast<std::size_t>(event.pass)], at, at});
    }
    result.passes.back().last = at + 1;
  }
  return result;
}

bool has_chunks(const Timeline& timeline) {
  for (const PassSpan& span : timeline.passes) {
    if (span.pass.chunk > 0) return true;
  }
  return false;
}

std::string pass_name(const Pass& pass, bool with_chunk) {
  const char direction = pass.backward ? 'b' : 'f';
  return with_chunk ? fmt::format("{}{}.{}", direction, pass.micro_batch, pass.chunk)
                    : fmt::format("{}{}", direction, pass.micro_batch);
}

}  // namespace zeroplan
