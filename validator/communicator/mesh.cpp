// How do two ranks talk while others may fail? Front door: Mesh.
#include "validator/communicator/mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "gpu_probe/environment_error.hpp"
#include "validator/communicator/communicator.hpp"
#include "validator/rendezvous/exchange.hpp"

namespace zeroplan::engine {
namespace {

constexpr std::int64_t nobody = -1;

// Where a rank listens for its peers.
struct Door {
  std::array<char, 64> address{};
  std::int64_t port = 0;
};

// The first message over a new connection.
struct Hello {
  std::uint64_t nonce = 0;
  std::int64_t rank = 0;
};

[[noreturn]] void lose(std::int64_t rank, const char* during) {
  throw PeerLost(fmt::format("rank {} is lost: its connection closed during {}", rank, during));
}

// Nothing where it does not speak in time, or has gone: anybody may connect.
std::optional<Hello> hello_of(const Socket& socket, Deadline until) {
  Hello hello;
  try {
    receive_all(socket, std::as_writable_bytes(std::span(&hello, 1)), until);
  } catch (const ConnectionLost&) {
    return std::nullopt;
  } catch (const DeadlinePassed&) {
    return std::nullopt;
  }
  return hello;
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Mesh::Mesh(const Launch& launch, Rendezvous& star, std::chrono::milliseconds patience)
    : patience_(patience), peers_(static_cast<std::size_t>(launch.world)) {
  if (launch.world == 1) return;
  try {
    connect_all(launch, star);
  } catch (const ConnectionLost&) {
    throw EnvironmentError("a peer hung up while the ranks connected with each other");
  } catch (const DeadlinePassed&) {
    throw EnvironmentError(fmt::format("the ranks did not connect with each other within {} s",
                                       std::chrono::duration<double>(patience_).count()));
  }
}

// Each connects with those before it, and waits for those after it.
void Mesh::connect_all(const Launch& launch, Rendezvous& star) {
  const Deadline until = Clock::now() + patience_;
  Door own;
  const std::string address = star.own_address();
  if (address.size() >= own.address.size()) {
    throw EnvironmentError(fmt::format("the address {} is too long", address));
  }
  const Socket listening = listen_on(address, 0);
  std::copy(address.begin(), address.end(), own.address.begin());
  own.port = port_of(listening);
  const std::vector<Door> doors = exchange(star, own, launch.world, "addresses");
  for (std::int64_t rank = 0; rank < launch.rank; ++rank) {
    const Door& door = doors[static_cast<std::size_t>(rank)];
    peer(rank).socket =
        connect_to(door.address.data(), static_cast<std::uint16_t>(door.port), until);
    const Hello hello{launch.nonce, launch.rank};
    send_all(peer(rank).socket, std::as_bytes(std::span(&hello, 1)), until);
  }
  for (std::int64_t missing = launch.world - 1 - launch.rank; missing > 0;) {
    Socket socket = accept_from(listening, until);
    const auto hello = hello_of(socket, std::min(until, Clock::now() + moment_of(patience_)));
    const bool known = hello && hello->nonce == launch.nonce && hello->rank > launch.rank &&
                       hello->rank < launch.world && !peer(hello->rank).socket.is_open();
    if (!known) continue;  // a stranger
    peer(hello->rank).socket = std::move(socket);
    --missing;
  }
}

void Mesh::post(std::int64_t to, std::span<const std::byte> bytes) {
  peer(to).posted.emplace_back(bytes.begin(), bytes.end());
  send_posted();
}

void Mesh::send_posted() {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& to = peers_[rank];
    while (!to.posted.empty()) {
      const std::vector<std::byte>& message = to.posted.front();
      const ssize_t sent = send(to.socket.descriptor(), message.data() + to.sent,
                                message.size() - to.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && would_block()) break;
      if (sent < 0) lose(static_cast<std::int64_t>(rank), "a message to it");
      to.sent += static_cast<std::size_t>(sent);
      if (to.sent < message.size()) continue;
      to.posted.pop_front();
      to.sent = 0;
    }
  }
}

// Until something may have come from `from`, something more can be sent, or a peer is lost.
void Mesh::wait(std::int64_t from, const char* during, Deadline until) {
  std::vector<pollfd> watched;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    short events = POLLRDHUP;
    if (static_cast<std::int64_t>(rank) == from) events = POLLIN;
    if (!peers_[rank].posted.empty()) events |= POLLOUT;
    watched.push_back(
        {peers_[rank].socket.descriptor(), events, 0});  // poll leaves out closed ones
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  const int ready = poll(watched.data(), watched.size(),
                         static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
  if (ready == 0) {
    const std::string who = from == nobody ? "a rank" : fmt::format("rank {}", from);
    throw PeerLost(fmt::format("no answer from {} within {} s in {}", who,
                               std::chrono::duration<double>(patience_).count(), during));
  }
  for (std::size_t rank = 0; rank < watched.size(); ++rank) {
    const bool gone = (watched[rank].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    // What `from` sent before it went is still read.
    if (gone && static_cast<std::int64_t>(rank) != from) {
      lose(static_cast<std::int64_t>(rank), during);
    }
  }
}

void Mesh::receive(std::int64_t from, std::span<std::byte> bytes, const char* during) {
  const Deadline until = Clock::now() + patience_;
  while (!bytes.empty()) {
    send_posted();
    const ssize_t got =
        recv(peer(from).socket.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got < 0 && would_block()) {
      wait(from, during, until);
    } else {
      lose(from, during);
    }
  }
}

void Mesh::flush() {
  const Deadline until = Clock::now() + patience_;
  const auto rest = [&] {
    return std::any_of(peers_.begin(), peers_.end(),
                       [](const Peer& p) { return !p.posted.empty(); });
  };
  for (send_posted(); rest(); send_posted()) wait(nobody, "a last message", until);
}

}  // namespace zeroplan::engine
