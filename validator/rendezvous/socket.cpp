// How do two processes talk without ever waiting forever? Front doors: listen_on, connect_to.
#include "validator/rendezvous/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

using std::chrono::milliseconds;

struct AddressList {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, AddressList> resolve(const std::string& address,
                                               std::uint16_t port,
                                               int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (status != 0) {
    throw EnvironmentError(fmt::format("the address of rank 0, '{}', is not known: {}", address,
                                       gai_strerror(status)));
  }
  return std::unique_ptr<addrinfo, AddressList>(list);
}

// Milliseconds for poll, at least one while time is left.
int left_until(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

// Returns when `events` are possible. Throws DeadlinePassed, also where they are possible all the
// time: who sends byte by byte, or connects again and again, has no more time than others.
void wait_for(int descriptor, short events, Deadline deadline) {
  for (;;) {
    pollfd one{.fd = descriptor, .events = events, .revents = 0};
    const int ready = poll(&one, 1, left_until(deadline));
    if (ready >= 0 && Clock::now() >= deadline) throw DeadlinePassed{};
    if (ready > 0) return;
    if (errno != EINTR) throw ConnectionLost{};
  }
}

Socket open_socket(const addrinfo& target) {
  Socket socket(::socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (socket.is_open()) {
    setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return socket;
}

// One try. Empty with `error` set when it failed.
Socket try_connect(const addrinfo& target, Deadline deadline, int& error) {
  Socket socket = open_socket(target);
  if (!socket.is_open()) {
    error = errno;
    return {};
  }
  if (connect(socket.descriptor(), target.ai_addr, target.ai_addrlen) == 0) return socket;
  error = errno;
  if (error != EINPROGRESS) return {};
  try {
    wait_for(socket.descriptor(), POLLOUT, deadline);
  } catch (const DeadlinePassed&) {
    error = ETIMEDOUT;
    return {};
  }
  socklen_t size = sizeof error;
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : Socket{};
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// What the system may have again in a while: descriptors, memory.
bool is_short_of_something() {
  return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (is_open()) close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

Socket::~Socket() {
  if (is_open()) close(descriptor_);
}

int Socket::release() {
  return std::exchange(descriptor_, -1);
}

Socket listen_on(const std::string& address, std::uint16_t port) {
  const auto targets = resolve(address, port, AI_PASSIVE);
  int error = 0;
  for (const addrinfo* target = targets.get(); target != nullptr; target = target->ai_next) {
    Socket socket = open_socket(*target);
    const int on = 1;
    setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(socket.descriptor(), target->ai_addr, target->ai_addrlen) == 0 &&
        listen(socket.descriptor(), SOMAXCONN) == 0) {
      return socket;
    }
    error = errno;
  }
  throw EnvironmentError(fmt::format(
      "rank 0 cannot listen on {}:{}: {}; ZEROPLAN_PORT and ZEROPLAN_ADDRESS choose another",
      address, port, std::strerror(error)));
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size);
  return storage.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

std::string address_of(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size);
  std::array<char, NI_MAXHOST> text{};
  const int status = getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, text.data(),
                                 text.size(), nullptr, 0, NI_NUMERICHOST);
  if (status != 0) {
    throw EnvironmentError(fmt::format("no own address: {}", gai_strerror(status)));
  }
  return text.data();
}

Socket accept_from(const Socket& listening, Deadline deadline) {
  for (;;) {
    wait_for(listening.descriptor(), POLLIN, deadline);
    Socket peer(accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.is_open()) {  // it went away again before it was taken, or still waits
      constexpr milliseconds pause{10};
      if (is_short_of_something()) std::this_thread::sleep_for(pause);
      continue;
    }
    const int on = 1;
    setsockopt(peer.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return peer;
  }
}

Socket connect_to(const std::string& address, std::uint16_t port, Deadline deadline) {
  const auto targets = resolve(address, port, 0);
  constexpr milliseconds longest_pause{1000};
  milliseconds pause{10};
  int error = 0;
  for (;;) {
    for (const addrinfo* target = targets.get(); target != nullptr; target = target->ai_next) {
      Socket socket = try_connect(*target, deadline, error);
      if (socket.is_open()) return socket;
    }
    if (Clock::now() + pause >= deadline) {
      throw EnvironmentError(
          fmt::format("rank 0 does not answer on {}:{}: {}", address, port, std::strerror(error)));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest_pause);
  }
}

void send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (would_block()) {
      wait_for(socket.descriptor(), POLLOUT, deadline);
    } else {
      throw ConnectionLost{};
    }
  }
}

void receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got < 0 && would_block()) {
      wait_for(socket.descriptor(), POLLIN, deadline);
    } else {
      throw ConnectionLost{};
    }
  }
}

bool has_hung_up(const Socket& socket) {
  pollfd one{.fd = socket.descriptor(), .events = POLLRDHUP, .revents = 0};
  return poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace zeroplan
