#pragma once
// The ranks of a job that are processes, each connected with every other.

#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "validator/rendezvous/rendezvous.hpp"

namespace zeroplan::engine {

/// Bytes between pairs of ranks, in the order they were posted. Every wait ends: with a message
/// that names the rank whose connection closed, or which did not answer within `patience`.
class Mesh {
 public:
  /// All ranks of the star make one. Throws EnvironmentError.
  Mesh(const Launch& launch, Rendezvous& star, std::chrono::milliseconds patience);

  /// Does not wait: what the connection does not take now goes while this rank waits for others.
  void post(std::int64_t to, std::span<const std::byte> bytes);
  /// What `from` posted next, as long as `bytes`. Throws PeerLost.
  void receive(std::int64_t from, std::span<std::byte> bytes, const char* during);
  /// Returns when everything posted has gone. Throws PeerLost.
  void flush();

 private:
  struct Peer {
    Socket socket;
    std::deque<std::vector<std::byte>> posted;
    std::size_t sent = 0;  // of the first of them
  };

  void connect_all(const Launch& launch, Rendezvous& star);
  void send_posted();
  void wait(std::int64_t from, const char* during, Deadline until);
  Peer& peer(std::int64_t rank) { return peers_[static_cast<std::size_t>(rank)]; }

  std::chrono::milliseconds patience_;
  std::vector<Peer> peers_;  // by rank; this one's stays closed
};

}  // namespace zeroplan::engine
