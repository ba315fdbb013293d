// What differs between a measured step and the predicted one? Front door: overlay.
#include "validator/overlay/overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validator/overlay/call_rows.hpp"

namespace zeroplan {

double OverlayRow::difference() const {
  return (measured ? measured->seconds : 0) - (predicted ? predicted->seconds : 0);
}

std::optional<double> OverlayRow::ratio() const {
  if (!predicted || predicted->seconds <= 0) return std::nullopt;
  return (measured ? measured->seconds : 0) / predicted->seconds;
}

Overlay overlay(const StepWork& measured, const StepWork& predicted) {
  Overlay out{.measured = measured.seconds, .predicted = predicted.seconds};
  constexpr double rounding = 1e-9;  // of the step
  const double least = rounding * std::max(measured.seconds, predicted.seconds);
  const auto present = [&](const WorkSum& sum) {
    return sum.count > 0 || sum.seconds > least ? std::optional(sum) : std::nullopt;
  };
  for (std::size_t i = 0; i < names<Work>().size(); ++i) {
    const auto work = static_cast<Work>(i);
    if (work == Work::collective) continue;
    OverlayRow row{.work = work,
                   .name = std::string(name_of(work)),
                   .measured = present(measured.at(work)),
                   .predicted = present(predicted.at(work))};
    if (row.measured || row.predicted) out.rows.push_back(std::move(row));
  }
  for (OverlayRow& row : call_rows(measured.calls, predicted.calls)) {
    out.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(out.rows, std::greater{},
                           [](const OverlayRow& row) { return std::abs(row.difference()); });
  return out;
}

std::string largest_difference(const Overlay& overlay) {
  constexpr double small = 0.01;  // of the step
  const double step = std::max(overlay.measured, overlay.predicted);
  if (overlay.rows.empty() || std::abs(overlay.rows.front().difference()) <= small * step) {
    return "every kind of work takes what is predicted, to within 1 % of the step";
  }
  const OverlayRow& row = overlay.rows.front();
  const double by = row.difference();
  const std::string times =
      row.measured && row.ratio() ? fmt::format(", {:.2f} times it", *row.ratio()) : "";
  const bool most = std::abs(by) >= std::abs(overlay.measured - overlay.predicted) / 2;
  return fmt::format("off most: {}{}, {:.4f} s {} than predicted{}{}", row.name,
                     row.measured ? "" : ", absent", std::abs(by), by > 0 ? "more" : "less", times,
                     most ? "" : "; no one kind makes half of the difference");
}

}  // namespace zeroplan
