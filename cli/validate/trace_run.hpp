#pragma once
// Runs a tracer in the user's Python.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace zeroplan {

struct TraceRun {
  std::string python;              // a path, or a name to look for
  std::string script;              // trace_torchtitan.py
  std::vector<std::string> words;  // its arguments
  std::chrono::seconds limit{600};
};

/// The row that the tracer writes, in the form of tests/reference/traced. Throws InputError where
/// it refuses the arguments, with its own words; EnvironmentError where the interpreter cannot be
/// started, lacks a package, fails, takes longer than `limit` (it is then killed), or writes no
/// row.
nlohmann::json traced_row(const TraceRun& run);

}  // namespace zeroplan
