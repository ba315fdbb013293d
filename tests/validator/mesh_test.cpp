// Who may connect with a rank while it waits for its peers?
#include "validator/communicator/mesh.hpp"

#include <array>
#include <string>
#include <thread>

#include "gpu_probe/environment_error.hpp"
#include "tests/catch.hpp"
#include "validator/rendezvous/exchange.hpp"

using namespace zeroplan;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds patience = 4s;

// As a mesh tells the others where it listens, and who comes there.
struct Door {
  std::array<char, 64> address{};
  std::int64_t port = 0;
};
struct Hello {
  std::uint64_t nonce = 0;
  std::int64_t rank = 0;
};

Launch launch(std::int64_t rank, std::uint16_t port) {
  return {.launcher = "test", .rank = rank, .world = 2, .port = port, .nonce = 7};
}

}  // namespace

TEST_CASE("strangers that hang up or say nothing do not end a job that is about to begin") {
  Socket listening = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(listening);
  std::string complaint;
  std::jthread rank_0([&] {
    try {
      Rendezvous star(std::move(listening), launch(0, port), patience);
      engine::Mesh mesh(launch(0, port), star, patience);
    } catch (const EnvironmentError& error) {
      complaint = error.what();
    }
  });
  Rendezvous star(launch(1, port), patience);
  const std::vector<Door> doors = exchange(star, Door{}, 2, "addresses");
  const auto knock = [&] {
    return connect_to(doors[0].address.data(), static_cast<std::uint16_t>(doors[0].port),
                      Clock::now() + patience);
  };
  const Socket silent = knock();
  { const Socket hangs_up = knock(); }
  const auto say = [](const Socket& socket, const Hello& hello) {
    send_all(socket, std::as_bytes(std::span(&hello, 1)), Clock::now() + patience);
  };
  const Socket wrong = knock();
  say(wrong, {8, 1});
  const Socket right = knock();
  say(right, {7, 1});
  rank_0.join();
  CHECK(complaint.empty());
}
