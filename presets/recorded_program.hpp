#pragma once
// A step that was recorded while a runtime's own code ran (validator/pytorch, cli/schemas/
// program.json), as what is asked about it.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cost_model/question/model.hpp"
#include "cost_model/question/runtime_settings.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {

struct RecordedStep {
  ModelSpec model;      // its name, layers and parameters; no shape
  RuntimeSpec runtime;  // with the program
  std::int64_t gpus = 1;
  std::vector<TypedOption> layout;  // every option that it fixes
};

/// Whether the text says that it is one.
bool is_recorded_step(std::string_view text);

/// `where` opens every message. Throws InputError, also of events that no run can have: a tensor
/// that is freed before it is made, sizes and numbers that nothing is as large as.
RecordedStep read_recorded_step(std::string_view text, std::string_view where);

}  // namespace zeroplan
