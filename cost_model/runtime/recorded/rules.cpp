// What of a recorded step cannot be answered? Front door: recorded_rules.
#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/runtime/recorded/code.hpp"

namespace zeroplan {
namespace {

// A recorded step ran, so its layout is legal: the GPU may lack its format, and there may be too
// few or too many GPUs.
constexpr Rule rows[] = {
    rules::number_format,
    rules::magnitude,
    rules::world,
    rules::batch,
};

}  // namespace

constexpr RuleBook recorded_rules(rows);

}  // namespace zeroplan
