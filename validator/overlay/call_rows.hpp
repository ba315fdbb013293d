#pragma once
// Which measured collective is which predicted one. Private to this folder.

#include "validator/overlay/overlay.hpp"

namespace zeroplan {

/// As overlay.hpp says.
std::vector<OverlayRow> call_rows(const std::vector<CallSum>& measured,
                                  const std::vector<CallSum>& predicted);

}  // namespace zeroplan
