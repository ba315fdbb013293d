#pragma once
// Starts the ranks of one node where no launcher did.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zeroplan {

struct Spawn {
  std::vector<std::string> command;  // program and arguments; every rank runs the same
  std::int64_t ranks = 1;
  std::chrono::milliseconds limit{};      // for the whole job
  std::optional<std::string> input = {};  // what each rank reads from standard input; none: ours
};

/// Runs the ranks as processes with torchrun's variables, a free port on the loopback interface and
/// a nonce of their own, and waits for all. 0 when all ended with 0, else the exit code of the
/// first that did not: the others are then stopped, kindly and soon not. They also end when this
/// process does. Throws EnvironmentError when a rank could not be started, was ended by a signal,
/// or the limit passed; no rank is left behind in any case. Ranks
/// find signals as a program does that was started by hand; while the job runs, so does this
/// process find SIGCHLD.
int spawn_ranks(const Spawn& job);

}  // namespace zeroplan
