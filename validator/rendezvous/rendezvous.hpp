#pragma once
// The ranks of a job in a star around rank 0: how they exchange the NCCL id, wait for each other
// and bring their results together without a GPU.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "validator/launch/launch.hpp"
#include "validator/rendezvous/socket.hpp"

namespace zeroplan {

using Blob = std::vector<std::byte>;

/// Every call throws EnvironmentError with which rank is missing, lost or of another job, at the
/// latest once 1.5 times `patience` have passed; a rank that rank 0 loses is named to all others.
/// After that the star is broken.
class Rendezvous {
 public:
  /// Meets the other ranks of the launch: rank 0 listens on the launch's address and port, the
  /// others connect. Strangers (another nonce or another number of ranks) are turned away, and told
  /// so.
  Rendezvous(const Launch& launch, std::chrono::milliseconds patience);

  /// Rank 0 with a socket that listens already, for a port that the system chose.
  Rendezvous(Socket listening, const Launch& launch, std::chrono::milliseconds patience);

  /// What rank 0 gave, in every rank.
  Blob broadcast(Blob from_rank_0);

  /// In rank 0 what each rank gave, by rank; elsewhere empty.
  std::vector<Blob> gather(Blob mine);

  /// Returns once every rank is here.
  void barrier();

  /// The address of this process, as its peers can reach it.
  std::string own_address() const;

  /// Without waiting: a message when a peer's connection has gone. For whoever waits on a device
  /// meanwhile.
  std::optional<std::string> lost_peer() const;

 private:
  void host(Socket listening);
  void join();
  class Strangers;
  void greet(Socket peer, Strangers& strangers, Deadline deadline);
  void send(std::size_t rank, const Blob& blob, const char* during, Deadline deadline);
  Blob receive(std::size_t rank, const char* during, Deadline deadline, std::int64_t most);
  [[noreturn]] void give_up(const std::string& message);
  // Rank 0 loses patience first, so that it can still tell the others with whom.
  Deadline deadline() const {
    return Clock::now() + (launch_.rank == 0 ? patience_ : patience_ + patience_ / 2);
  }
  std::size_t ranks() const { return peers_.size(); }

  Launch launch_;
  std::chrono::milliseconds patience_;
  std::vector<Socket> peers_;  // by rank; beside rank 0 only its own connection, at 0, is open
};

}  // namespace zeroplan
