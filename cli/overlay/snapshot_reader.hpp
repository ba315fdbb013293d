#pragma once
// A memory snapshot of PyTorch.

#include <string>

#include "validator/overlay/memory_history.hpp"

namespace zeroplan {

/// Reads what torch.cuda.memory._dump_snapshot writes: "segments" with their blocks, and of
/// "device_traces" what was allocated and freed, of the device with most events. A block is
/// labelled by the first of its frames that is a Python file outside PyTorch, else by the first.
/// Throws InputError where the file is no such pickle or is larger than 2 GiB.
/// Source: pytorch/pytorch torch/cuda/memory.py, torch/csrc/cuda/memory_snapshot.cpp.
MemoryHistory read_snapshot(const std::string& path);

}  // namespace zeroplan
