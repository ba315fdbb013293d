#pragma once
// A trace of PyTorch's profiler, as it exports for Chrome.

#include <string>

#include "validator/overlay/trace.hpp"

namespace zeroplan {

/// Reads the file event by event and keeps what overlay.hpp uses: kernels and copies with their
/// collectives, or, of a run without a device, operators; steps, updates, and when kernels were
/// launched. Throws InputError where it is no such trace: not JSON, cut off, without kernels and
/// operators, compressed, with more than 20 million of them, or with times that are none.
/// Source: pytorch/kineto libkineto/src/output_json.cpp; pytorch/pytorch torch/profiler.
Trace read_kineto(const std::string& path);

}  // namespace zeroplan
