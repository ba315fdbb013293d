#pragma once
// TCP with a deadline on every wait.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace zeroplan {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// An open socket, or none. Moves; closes when it goes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int release();
  int descriptor_ = -1;
};

/// The other side closed the connection, or the system did.
class ConnectionLost {};
/// The deadline passed first.
class DeadlinePassed {};

/// Listens on this address alone; port 0 takes any free one. Throws EnvironmentError with the
/// address, the port and the system's reason.
Socket listen_on(const std::string& address, std::uint16_t port);

/// The port that a listening socket got.
std::uint16_t port_of(const Socket& socket);

/// This side's address of a connection, as numbers.
std::string address_of(const Socket& socket);

/// The next connection. Throws DeadlinePassed.
Socket accept_from(const Socket& listening, Deadline deadline);

/// Tries again, ever more slowly, while nobody listens yet. Throws EnvironmentError with the last
/// reason once the deadline passes, and at once for an address that does not exist.
Socket connect_to(const std::string& address, std::uint16_t port, Deadline deadline);

/// All bytes, or ConnectionLost or DeadlinePassed.
void send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);
void receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);

/// How long who has connected may take to say who he is, of all the patience there is: strangers
/// must not keep others waiting at the door.
constexpr std::chrono::milliseconds moment_of(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds longest{2000};
  return patience / 8 < longest ? patience / 8 : longest;
}

/// Whether the other side has gone, without reading or waiting.
bool has_hung_up(const Socket& socket);

}  // namespace zeroplan
