#pragma once
// The tensors of a played step as a list: walked once, replayed as often as a run has steps.

#include <vector>

#include "cost_model/program/play.hpp"

namespace zeroplan {

struct StepTape {
  /// A tensor that is not resident comes or goes.
  struct Event {
    std::int32_t id;  // of the allocation
    bool allocates;
  };
  /// Events in a row at one place of the step.
  struct Place {
    Phase phase;
    std::int32_t pass;   // as in Played
    std::int32_t block;  // as in Played
    std::size_t end;     // of its events, which begin where those of the place before end
  };

  std::vector<TensorSpec> tensors;  // by allocation; what is resident comes first
  std::vector<Event> events;
  std::vector<Place> places;
};

/// What play_step tells of tensors.
StepTape step_tape(const StageProgram& program, const std::vector<Pass>& order);

}  // namespace zeroplan
