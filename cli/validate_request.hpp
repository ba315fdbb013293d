#pragma once
// What was typed after `validate`, read: by zeroplan, and by zeroplan-gpu.

#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cost_model/names.hpp"
#include "validator/shrink.hpp"

namespace zeroplan {

/// Where ranks run: threads of the host, threads that share a GPU, or processes with a GPU each.
enum class Backend { host, loopback, nccl };

template <>
struct Spellings<Backend> {
  static constexpr std::array<std::string_view, 3> value{"host", "loopback", "nccl"};
};

struct ValidateRequest {
  Backend backend = Backend::host;
  engine::Shrunk full;  // the plan as the engine executes it
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> stage;  // one rank of it alone
};

/// The host where nothing was asked. Throws InputError.
Backend read_backend(const std::optional<std::string>& asked);

/// Throws InputError.
ValidateRequest read_validation(const ValidateArguments& arguments);

}  // namespace zeroplan
