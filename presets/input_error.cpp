#include "presets/input_error.hpp"

#include "presets/nearest_name.hpp"

namespace zeroplan {

InputError::InputError(const std::string& said) : std::runtime_error(printable(said)) {}

}  // namespace zeroplan
