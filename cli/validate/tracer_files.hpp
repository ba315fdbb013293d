#pragma once
// The tracers of validator/pytorch as the build put them into the binary.

#include <span>
#include <string_view>

namespace zeroplan {

struct TracerFile {
  std::string_view name;  // trace_torchtitan.py
  std::string_view text;
};

/// The tracers, and the modules that they share.
std::span<const TracerFile> tracer_files();

}  // namespace zeroplan
