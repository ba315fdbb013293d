// The door of a job: what a rank is told, and who comes.
#include <thread>

#include "gpu_probe/environment_error.hpp"
#include "tests/fuzz/target.hpp"
#include "validator/rendezvous/rendezvous.hpp"

namespace zeroplan::fuzz {
namespace {

using namespace std::chrono_literals;

void send(const Socket& to, std::string_view bytes) {
  try {
    send_all(to, std::as_bytes(std::span(bytes)), Clock::now() + 1s);
  } catch (const ConnectionLost&) {  // it has had enough
  } catch (const DeadlinePassed&) {
  }
}

}  // namespace

// A rank that joins meets whoever holds the port.
void look_at_rank_0(std::string_view bytes) {
  const Socket listening = listen_on("127.0.0.1", 0);
  const std::jthread other([&] {
    try {
      const Socket peer = accept_from(listening, Clock::now() + 1s);
      send(peer, bytes);
    } catch (const DeadlinePassed&) {
    }
  });
  try {
    const Rendezvous star(
        {.launcher = "fuzz", .rank = 1, .world = 2, .port = port_of(listening), .nonce = 7}, 1s);
  } catch (const EnvironmentError& error) {
    require_printable(error.what());
    require(std::string_view(error.what()).size() < 1'200, "what is said is short");
  }
}

// Rank 0 waits for its peer, and this comes.
void look_at_stranger(std::string_view bytes) {
  Socket listening = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(listening);
  const std::jthread stranger([&] {
    try {
      send(connect_to("127.0.0.1", port, Clock::now() + 1s), bytes);
    } catch (const EnvironmentError&) {  // on a busy machine the door is closed before it comes
    }
  });
  const Deadline begin = Clock::now();
  try {
    const Rendezvous star(std::move(listening),
                          {.launcher = "fuzz", .world = 2, .port = port, .nonce = 7}, 20ms);
  } catch (const EnvironmentError& error) {
    require_printable(error.what());
  }
  require(Clock::now() - begin < 60s, "nobody waits longer than asked");
}

// A welcome, a blob, a failure with its reason; a hello.
std::vector<std::string> message_seeds() {
  const auto numbers = [](std::initializer_list<std::int64_t> list) {
    std::string bytes;
    for (const std::int64_t n : list) bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
    return bytes;
  };
  return {numbers({0, 0, 0}),
          numbers({0, 1, 4}) + "why\n",
          numbers({0, 0, 1 << 30}),
          numbers({3}),
          numbers({0x7a65726f706c0001, 7, 2, 1}),
          numbers({0x7a65726f706c0001, 7, 9, 1})};
}

}  // namespace zeroplan::fuzz
