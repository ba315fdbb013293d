#include "validator/rendezvous/rendezvous.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
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
constexpr std::chrono::milliseconds at_last = 60s;  // when what would never end does all the same

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

constexpr std::size_t bytes_of_hello = 32;

// What rank 1 complains about where this answers in the place of rank 0: the bytes that follow the
// greeting.
std::string complaint_about(std::span<const std::int64_t> numbers, std::string_view text = "") {
  const Socket listening = listen_on("127.0.0.1", 0);
  const std::jthread other([&] {
    const Deadline until = Clock::now() + patience;
    const Socket peer = accept_from(listening, until);
    std::array<std::byte, bytes_of_hello> hello{};
    receive_all(peer, hello, until);
    send_all(peer, std::as_bytes(numbers), until);
    send_all(peer, std::as_bytes(std::span(text)), until);
    std::array<std::byte, 1> nothing{};
    try {
      for (;;) receive_all(peer, nothing, until);
    } catch (const ConnectionLost&) {  // it has had enough
    }
  });
  try {
    const Rendezvous star(launch(1, 2, port_of(listening)), patience);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "no complaint";
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
  CHECK_THAT(complaint([&] { Rendezvous(launch(1, 2, port), short_patience); }),
             ContainsSubstring("did not answer rank 1 in time"));
  Launch nowhere = launch(1, 2, port);
  nowhere.address = "no such host";
  CHECK_THAT(complaint([&] { Rendezvous(nowhere, patience); }), ContainsSubstring("is not known"));
}

TEST_CASE("strangers who come without end lengthen neither the wait nor the message") {
  Socket listening = listen_on("127.0.0.1", 0);
  const std::uint16_t port = port_of(listening);
  const Deadline begin = Clock::now();
  std::atomic<bool> ended = false;
  const std::jthread strangers([&] {
    while (!ended && Clock::now() < begin + at_last) {
      try {
        connect_to("127.0.0.1", port, Clock::now() + 100ms);
      } catch (const EnvironmentError&) {  // nobody listens any more
      }
    }
  });
  std::string complaint;
  try {
    const Rendezvous star(std::move(listening), launch(0, 2, port), 300ms);
  } catch (const EnvironmentError& error) {
    complaint = error.what();
  }
  ended = true;
  CHECK(Clock::now() < begin + at_last);
  CHECK_THAT(complaint, ContainsSubstring("rank 1 did not come within 0.3 s; turned away: ") &&
                            ContainsSubstring(" that hung up"));
  CHECK(complaint.size() < 150);
}

TEST_CASE("a process without a descriptor left waits no longer than asked") {
  const Socket listening = listen_on("127.0.0.1", 0);
  const Deadline begin = Clock::now();
  const Socket waiting = connect_to("127.0.0.1", port_of(listening), begin + patience);
  rlimit all{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &all) == 0);
  const int next = dup(waiting.descriptor());
  close(next);
  rlimit none = all;
  none.rlim_cur = static_cast<rlim_t>(next);
  // Who waits for ever is given one in the end.
  std::atomic<bool> watched = false;
  std::atomic<bool> ended = false;
  const std::jthread relief([&] {
    watched = true;
    while (!ended && Clock::now() < begin + at_last) std::this_thread::sleep_for(1ms);
    setrlimit(RLIMIT_NOFILE, &all);
  });
  while (!watched) std::this_thread::yield();
  // Nothing but what is tried runs without: a sanitizer that looks at a type takes a descriptor
  // too.
  bool passed = false;
  const bool limited = setrlimit(RLIMIT_NOFILE, &none) == 0;
  try {
    accept_from(listening, Clock::now() + 100ms);
  } catch (const DeadlinePassed&) {
    passed = true;
  }
  setrlimit(RLIMIT_NOFILE, &all);
  ended = true;
  REQUIRE(limited);
  CHECK(passed);
  CHECK(Clock::now() < begin + at_last);
}

TEST_CASE("who sends byte by byte has no more time than others") {
  const Socket listening = listen_on("127.0.0.1", 0);
  const Deadline begin = Clock::now();
  const Socket slow = connect_to("127.0.0.1", port_of(listening), begin + patience);
  const Socket peer = accept_from(listening, begin + patience);
  std::atomic<bool> ended = false;
  const std::jthread bytes([&] {
    while (!ended && Clock::now() < begin + at_last) {
      send_all(slow, std::array{std::byte{1}}, begin + patience);
      std::this_thread::sleep_for(1ms);
    }
  });
  Blob much(std::size_t{1} << 20);
  CHECK_THROWS_AS(receive_all(peer, much, Clock::now() + 100ms), DeadlinePassed);
  ended = true;
  CHECK(Clock::now() < begin + at_last);
}

TEST_CASE("what a peer says is bounded, and printed as what it is") {
  constexpr std::int64_t accepted = 0;
  constexpr std::int64_t blob_follows = 0;
  constexpr std::int64_t failure_follows = 1;
  CHECK_THAT(complaint_about(std::array<std::int64_t, 1>{77}),
             ContainsSubstring("gave rank 1 an answer that is none"));
  CHECK(complaint_about(std::array<std::int64_t, 3>{accepted, blob_follows, 1 << 30}) ==
        "rank 0 sent what is no message during a barrier");
  CHECK(complaint_about(std::array<std::int64_t, 3>{accepted, 5, 0}) ==
        "rank 0 sent what is no message during a barrier");
  CHECK(complaint_about(std::array<std::int64_t, 3>{accepted, failure_follows, 1 << 20}) ==
        "rank 0 sent what is no message during a barrier");
  CHECK(complaint_about(std::array<std::int64_t, 3>{accepted, failure_follows, 8},
                        "a\x1b[2Jb\nc") == "rank 0 stopped the job: a?[2Jb?c");
}
