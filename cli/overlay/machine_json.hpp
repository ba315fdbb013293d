#pragma once
// A cluster as the file that --cluster reads.

#include <string>

#include "validator/overlay/calibration.hpp"

namespace zeroplan {

/// The whole cluster, its GPU with all its rates, in the form of a preset (presets/catalog.hpp);
/// under "measured" the speeds beside what is expected. `trace` is named as its source.
std::string machine_json(const Calibration& calibration, const std::string& trace);

}  // namespace zeroplan
