#pragma once
// Where the ranks of a validation run, and why there.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_model/question/names.hpp"

namespace zeroplan {

/// Threads or processes of the host, threads that share a GPU, or processes with a GPU each.
enum class Backend { host, loopback, nccl };

template <>
struct Spellings<Backend> {
  static constexpr std::array<std::string_view, 3> value{"host", "loopback", "nccl"};
};

/// What a choice depends on.
struct AtHand {
  std::int64_t gpus = 0;   // visible, on this node
  std::string without;     // why there are none, where that is known
  std::int64_t ranks = 1;  // that a launcher started, or is to start
};

struct ChosenBackend {
  Backend backend = Backend::host;
  std::string reason;
};

/// What was asked for; else nccl with several GPUs or several ranks with one each, loopback with
/// one, host with none.
ChosenBackend chosen_backend(const std::optional<Backend>& asked, const AtHand& at_hand);

/// The GPUs that zeroplan-gpu, which is `program`, sees. It is asked only where `devices` (/dev)
/// has a GPU's file, since a driver takes its time.
AtHand gpus_at_hand(const std::filesystem::path& devices, const std::filesystem::path& program);

}  // namespace zeroplan
