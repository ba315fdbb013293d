#pragma once
// A measured step beside the predicted one, for people and for programs.

#include <optional>
#include <string>

#include "cli/out/terminal.hpp"
#include "planner/fit.hpp"
#include "validator/overlay/calibration.hpp"
#include "validator/overlay/measured_step.hpp"
#include "validator/overlay/memory_overlay.hpp"
#include "validator/overlay/overlay.hpp"

namespace zeroplan {

enum class OverlayVerdict { agrees, differs, other_device };

template <>
struct Spellings<OverlayVerdict> {
  static constexpr std::array<std::string_view, 3> value{"agrees", "differs", "other_device"};
};

/// All that is shown of a measured step beside the predicted one.
struct OverlayReport {
  std::int64_t stage = 0;
  double band = 0;  // half width, of the predicted step
  OverlayVerdict verdict = OverlayVerdict::differs;
  MeasuredStep measured;
  Overlay overlay;
  std::optional<MemoryOverlay> memory;     // where a snapshot was given
  std::optional<Calibration> calibration;  // where it was asked for
  std::vector<std::string> notes;
};

/// The step, then each kind of work, what is off most first; what it is made of where it is off or
/// unknown; and what is off most in a sentence. quiet: the step alone.
std::string overlay_text(const FitAnswer& answer, const OverlayReport& report, TextStyle style);

/// Schema zeroplan.overlay/1.
std::string overlay_json(const FitAnswer& answer, const OverlayReport& report);

/// Measured memory beside the predicted, and a calibration, for people: parts of overlay_text.
std::string memory_text(const MemoryOverlay& memory, std::size_t width);
std::string calibration_text(const Calibration& calibration, double measured);

/// The step as CSV, a row a kind of work.
std::string overlay_csv(const OverlayReport& report);

}  // namespace zeroplan
