// How does memory move over a step? Front door: timeline.
#include "cost_model/program/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace zeroplan {

Timeline timeline(const StageProgram& program, const std::vector<Pass>& order) {
  Timeline result;
  result.events = played_events(program, order);
  for (const TensorSpec& spec : program.resident) result.resident[spec.category] += spec.bytes;
  result.events.erase(result.events.begin(),
                      result.events.begin() + static_cast<std::ptrdiff_t>(program.resident.size()));

  std::int32_t pass = -1;
  MemoryBreakdown live = result.resident;
  result.live.reserve(result.events.size());
  for (std::size_t i = 0; i < result.events.size(); ++i) {
    const Played& event = result.events[i];
    live[event.tensor.category] += event.allocates ? event.tensor.bytes : -event.tensor.bytes;
    result.live.push_back(live);
    if (live.allocated() > result.live[result.highest].allocated()) result.highest = i;

    const auto at = static_cast<std::int64_t>(i);
    const bool of_pass = event.pass >= 0 && event.phase < Phase::optimizer_step;
    if (!of_pass) continue;
    if (event.pass != pass) {  // one without events has no span
      pass = event.pass;
      result.passes.push_back({order[static_cast<std::size_t>(event.pass)], at, at});
    }
    result.passes.back().last = at + 1;
  }
  return result;
}

namespace {

using Live = std::map<std::int64_t, const TensorSpec*>;  // in the order in which they were made

std::vector<LiveTensors> kinds_of(const Live& live) {
  std::vector<LiveTensors> kinds;
  std::map<std::tuple<std::string_view, Category, Bytes>, std::size_t> known;
  for (const auto& [id, tensor] : live) {
    const auto [found, added] =
        known.try_emplace({tensor->name, tensor->category, tensor->bytes}, kinds.size());
    if (added) {
      kinds.push_back({tensor->name, tensor->category, 1, tensor->bytes});
    } else {
      ++kinds[found->second].count;
    }
  }
  return kinds;
}

}  // namespace

std::vector<LiveTensors> kinds_of(const std::vector<TensorSpec>& tensors) {
  Live live;
  for (const TensorSpec& tensor : tensors) live[std::ssize(live)] = &tensor;
  return kinds_of(live);
}

std::vector<LiveTensors> live_at_highest(const Timeline& timeline) {
  if (timeline.events.empty()) return {};
  Live live;
  for (std::size_t i = 0; i <= timeline.highest; ++i) {
    const Played& event = timeline.events[i];
    if (event.allocates) {
      live[event.id] = &event.tensor;
    } else {
      live.erase(event.id);
    }
  }
  return kinds_of(live);
}

std::vector<LiveTensors> live_at_highest(const Block& block) {
  Live live, highest;
  Bytes sum, most;
  for (const Event& event : block.forward) {
    if (!event.is_of_tensor()) continue;
    const TensorSpec& spec = block.tensors[static_cast<std::size_t>(event.index)];
    if (event.allocates()) {
      live[event.index] = &spec;
      sum += spec.bytes;
    } else {
      if (sum > most) highest = live;
      most = std::max(most, sum);
      live.erase(event.index);
      sum += -spec.bytes;
    }
  }
  return kinds_of(sum > most ? live : highest);
}

bool has_chunks(const Timeline& timeline) {
  for (const PassSpan& span : timeline.passes) {
    if (span.pass.chunk > 0) return true;
  }
  return false;
}

std::string pass_name(const Pass& pass, bool with_chunk) {
  const char direction = pass.kind == PassKind::forward           ? 'f'
                         : pass.kind == PassKind::weight_gradient ? 'w'
                                                                  : 'b';
  return with_chunk ? fmt::format("{}{}.{}", direction, pass.micro_batch, pass.chunk)
                    : fmt::format("{}{}", direction, pass.micro_batch);
}

}  // namespace zeroplan
