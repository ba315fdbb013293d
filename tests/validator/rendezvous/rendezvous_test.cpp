#include "validator/rendezvous/rendezvous.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "gpu_probe/environment_error.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds patience = 30s;       // that no test waits out
constexpr std::chrono::milliseconds short_patience = 1s;  // for those that do

Launch launch(std::int64_t rank, std::int64_t world, std::uint16_t port, std::uint64_t nonce = 7) {
  return {.launcher = "test", .rank = rank, .world = world, .port = port, .nonce = nonce};
}

Blob blob(std::string_view text) {
  Blob bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// What each rank's thread complained about; empty where it did not.
std::vector<std::string> run(std::int64_t world,
                             const std::function<void(Rendezvous&, std::int64_t)>& body,
                             const std::function<Launch(Launch)>& change = {},
                             std::chrono::milliseconds limit = patience) {
  Socket listening = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(listening);
  std::vector<std::string> complaints(static_cast<std::size_t>(world));
  std::vector<std::jthread> threads;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Launch mine = launch(rank, world, port);
        if (change) mine = change(mine);
        Rendezvous star =
            rank == 0 ? Rendezvous(std::move(listening), mine, limit) : Rendezvous(mine, limit);
        body(star, rank);
      } catch (const EnvironmentError& error) {
        complaints[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  return complaints;
}

}  // namespace

TEST_CASE("every rank gets what rank 0 serves, and rank 0 what every rank gives") {
  std::atomic<int> served = 0;
  const auto complaints = run(5, [&](Rendezvous& star, std::int64_t rank) {
    const Blob id = blob(std::string(128, 'n'));
    served += star.broadcast(rank == 0 ? id : Blob{}) == id ? 1 : 0;
    const std::vector<Blob> all = star.gather(blob(std::to_string(rank)));
    if (rank == 0) {
      for (std::size_t i = 0; i < all.size(); ++i) served += all[i] == blob(std::to_string(i));
    }
    star.barrier();
  });
  CHECK(complaints == std::vector<std::string>(5));
  CHECK(served == 10);
}

TEST_CASE("a barrier lets nobody through before the last has come") {
  std::atomic<int> arrived = 0;
  std::atomic<bool> early = false;
  run(4, [&](Rendezvous& star, std::int64_t rank) {
    std::this_thread::sleep_for(rank * 10ms);
    ++arrived;
    star.barrier();
    if (arrived != 4) early = true;
  });
  CHECK_FALSE(early);
}

TEST_CASE("a rank alone meets nobody") {
  Rendezvous star(launch(0, 1, 0), patience);
  CHECK(star.broadcast(blob("x")) == blob("x"));
  CHECK(star.gather(blob("y")) == std::vector<Blob>{blob("y")});
  star.barrier();
  CHECK_FALSE(star.lost_peer());
}

TEST_CASE("a stranger with another nonce is turned away and named on both sides") {
  const auto complaints = run(
      3, [](Rendezvous&, std::int64_t) {},
      [](Launch mine) {
        if (mine.rank == 2) mine.nonce = 8;
        return mine;
      },
      short_patience);
  CHECK_THAT(complaints[2], ContainsSubstring("belongs to another job"));
  CHECK_THAT(complaints[0], ContainsSubstring("rank 2 did not come") &&
                                ContainsSubstring("turned away: one of another job"));
  CHECK_THAT(complaints[1], ContainsSubstring("rank 0 stopped the job: rank 2 did not come"));
}

TEST_CASE("ranks that disagree about their number, or are the same, are told so") {
  const auto other_world = run(
      2, [](Rendezvous&, std::int64_t) {},
      [](Launch mine) {
        if (mine.rank == 1) mine.world = 4;
        return mine;
      },
      short_patience);
  CHECK_THAT(other_world[1], ContainsSubstring("does not expect 4 ranks"));
  const auto twins = run(
      3, [](Rendezvous&, std::int64_t) {},
      [](Launch mine) {
        if (mine.rank == 2) mine.rank = 1;
        return mine;
      },
      short_patience);
  CHECK_THAT(twins[1] + twins[2], ContainsSubstring("has met another rank 1 already"));
}

TEST_CASE("a lost rank is named to all others, at once") {
  const Deadline begin = Clock::now();
  const auto complaints = run(4, [](Rendezvous& star, std::int64_t rank) {
    if (rank == 3) return;  // its connection closes
    star.barrier();
  });
  CHECK(Clock::now() - begin < patience);
  CHECK_THAT(complaints[0], ContainsSubstring("rank 3 is lost"));
  CHECK_THAT(complaints[1], ContainsSubstring("rank 0 stopped the job: rank 3 is lost"));
  CHECK_THAT(complaints[2], ContainsSubstring("rank 0 stopped the job: rank 3 is lost"));
}

TEST_CASE("a rank that hangs is named when patience ends") {
  const auto complaints = run(
      3,
      [](Rendezvous& star, std::int64_t rank) {
        if (rank == 1) std::this_thread::sleep_for(2 * short_patience);
        star.barrier();
      },
      {}, short_patience);
  CHECK_THAT(complaints[0], ContainsSubstring("rank 1 did not come to a barrier within 1 s"));
  CHECK_THAT(complaints[2], ContainsSubstring("rank 0 stopped the job: rank 1 did not come"));
}

TEST_CASE("whoever waits on a device can ask whether a peer has gone") {
  run(2, [](Rendezvous& star, std::int64_t rank) {
    if (rank == 1) {
      star.barrier();
      return;
    }
    CHECK_FALSE(star.lost_peer().has_value());
    star.barrier();
    const Deadline until = Clock::now() + patience;
    while (!star.lost_peer() && Clock::now() < until) std::this_thread::sleep_for(1ms);
    CHECK(star.lost_peer() == "rank 1 is lost: its connection closed");
  });
}

TEST_CASE("a refused port and an unknown address are messages, not hangs") {
  const Socket taken = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(taken);
  const auto complaint = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const EnvironmentError& error) {
      return error.what();
    }
    return "no complaint";
  };
  CHECK_THAT(complaint([&] { Rendezvous(launch(0, 2, port), patience); }),
             ContainsSubstring("cannot listen") && ContainsSubstring("already in use"));
  std::uint16_t closed = 0;
  { closed = port_of(listen_on("127.0.0.1", 0)); }
  CHECK_THAT(complaint([&] { Rendezvous(launch(1, 2, closed), 100ms); }),
             ContainsSubstring("rank 0 does not answer") && ContainsSubstring("refused"));
  // The port is open, but nobody accepts: the handshake times out.
  CHECK_THAT(complaint([&] { Rendezvous(launch(1, 2, port), 100ms); }),
             ContainsSubstring("did not answer rank 1 in time"));
  Launch nowhere = launch(1, 2, port);
  nowhere.address = "no such host";
  CHECK_THAT(complaint([&] { Rendezvous(nowhere, patience); }), ContainsSubstring("is not known"));
}
