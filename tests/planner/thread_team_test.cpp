#include "planner/sweep/thread_team.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/catch.hpp"

using namespace zeroplan;

TEST_CASE("a team does every task once, a member one at a time") {
  for (const std::size_t size : {1, 2, 5}) {
    ThreadTeam team(size);
    for (const std::size_t tasks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> done(tasks + 10);
      std::vector<std::atomic<int>> at_work(size);
      std::atomic<bool> two_at_once = false;
      team.each(10, 10 + tasks, [&](std::size_t member, std::size_t i) {
        if (at_work.at(member)++ > 0) two_at_once = true;
        ++done.at(i);
        --at_work.at(member);
      });
      CAPTURE(size, tasks);
      REQUIRE_FALSE(two_at_once);
      for (std::size_t i = 0; i < done.size(); ++i) REQUIRE(done[i] == (i < 10 ? 0 : 1));
    }
  }
}

TEST_CASE("a team's members work at the same time") {
  ThreadTeam team(2);
  std::atomic<int> met = 0;
  team.each(0, 2, [&](std::size_t, std::size_t) {  // each waits for the other
    ++met;
    while (met < 2) std::this_thread::yield();
  });
  REQUIRE(met == 2);
}

TEST_CASE("a task goes to the member of its home, while that has time") {
  ThreadTeam team(2);
  std::atomic<int> met = 0;
  std::vector<std::size_t> members(2);
  const auto work = [&](std::size_t member, std::size_t i) {
    members.at(i) = member;
    ++met;
    while (met < 2) std::this_thread::yield();
  };
  team.each(0, 2, work, [](std::size_t i) { return 5 - i; });  // one even, one odd
  REQUIRE(members == std::vector<std::size_t>{1, 0});

  std::atomic<int> done = 0;
  team.each(
      0, 100, [&](std::size_t, std::size_t) { ++done; }, [](std::size_t) { return 1; });
  REQUIRE(done == 100);
}

TEST_CASE("a task's failure reaches the caller, and the team works on") {
  ThreadTeam team(3);
  std::atomic<int> done = 0;
  const auto fails_at_7 = [&](std::size_t, std::size_t i) {
    if (i == 7) throw std::runtime_error("seven");
    ++done;
  };
  REQUIRE_THROWS_WITH(team.each(0, 1000, fails_at_7), "seven");
  done = 0;
  team.each(8, 20, fails_at_7);
  REQUIRE(done == 12);

  ThreadTeam alone(1);
  done = 0;
  REQUIRE_THROWS_WITH(alone.each(0, 1000, fails_at_7), "seven");
  REQUIRE(done == 7);  // what had not begun was left out
}
