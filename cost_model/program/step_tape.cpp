// Which tensors come and go in a step? Front door: step_tape.
#include "cost_model/program/step_tape.hpp"

namespace zeroplan {
namespace {

bool is_at(const StepTape::Place& place, const Played& event) {
  return place.pass == event.pass && place.block == event.block && place.phase == event.phase;
}

}  // namespace

StepTape step_tape(const StageProgram& program, const std::vector<Pass>& order) {
  StepTape tape;
  const auto visit = [&](const Played& event) {
    if (event.allocates) tape.tensors.push_back(event.tensor);
    if (static_cast<std::size_t>(event.id) < program.resident.size()) return;
    if (tape.places.empty() || !is_at(tape.places.back(), event)) {
      tape.places.push_back({event.phase, event.pass, event.block, 0});
    }
    tape.events.push_back({static_cast<std::int32_t>(event.id), event.allocates});
    tape.places.back().end = tape.events.size();
  };
  play_step(program, order, {.tensor = visit});
  return tape;
}

}  // namespace zeroplan
