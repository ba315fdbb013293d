#pragma once
// Runtime settings that a row's facts determine: one function a runtime, the only place where
// versions of the runtimes are told apart.

#include <vector>

#include "presets/runtime.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::accuracy {

/// Megatron-Core. Throws Skip where a row says that a fact was not published.
std::vector<Override> megatron_settings(const Row& row);

/// Nanotron and DDP have none that rows differ in.
std::vector<Override> nanotron_settings(const Row& row);
std::vector<Override> ddp_settings(const Row& row);

/// torchtitan, and FSDP1 in its place. Throws Skip when nothing dates the run.
std::vector<Override> fsdp2_settings(const Row& row);

std::vector<Override> deepspeed_settings(const Row& row);

}  // namespace zeroplan::accuracy
