#pragma once
// What was typed after `validate`, read: by zeroplan, and by zeroplan-gpu.

#include <optional>
#include <string>

#include "cli/request/arguments.hpp"
#include "cli/validate/backend.hpp"
#include "validator/run.hpp"
#include "validator/shrink.hpp"

namespace zeroplan {

struct ValidateRequest {
  std::optional<Backend> backend;
  engine::Shrunk full;  // the plan as the engine executes it
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> spawn;  // as processes, so many
  bool share_gpus = false;            // several of them on one GPU, with nccl
  engine::RunOptions options;
  std::optional<std::int64_t> stage;  // one rank of it alone
};

/// Throws InputError.
std::optional<Backend> read_backend(const std::optional<std::string>& asked);

/// Throws InputError.
ValidateRequest read_validation(const ValidateArguments& arguments);

}  // namespace zeroplan
