#pragma once
// How far the predicted step may be off.

#include <string_view>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Half the width of a band in which 95 of 100 measured steps lie, as a part of the predicted
/// seconds.
struct StepBand {
  double half_width = 0;
  bool measured = false;  // by runs of its own family; else assumed
};

/// From runs that no fit had seen: of the runtime, and with Megatron-Core of the GPU's generation,
/// the width of its products and whether the model has experts. Wider where nobody published such
/// runs, and where a layer waits for its host.
StepBand step_band(const Problem& problem);

/// The generation whose constants time this GPU, where it is of another; else empty.
std::string_view stand_in_generation(const GpuSpec& gpu);

}  // namespace zeroplan
