#pragma once
// zeroplan probe, in the program that can.

#include <cstdint>
#include <string>

namespace zeroplan {

struct ProbeOutput {
  bool json = false;
  bool quiet = false;
  bool devices = false;
  std::int64_t patience = 120;  // seconds, with a GPU that no longer answers
  std::string file;             // of the preset; empty: none
};

/// Measures, or lists the GPUs, and writes the answer. Throws EnvironmentError without a GPU.
void probe_here(const ProbeOutput& output);

}  // namespace zeroplan
