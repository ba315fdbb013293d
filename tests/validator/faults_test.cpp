// When a rank fails, all end: with a message, and in time.
#include <thread>

#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/device/dry_device.hpp"
#include "validator/ranks.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

Problem eight_ranks() {
  return tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .tp = 2, .pp = 2});
}

}  // namespace

TEST_CASE("an exception in one rank ends the others, and is what is reported") {
  for (std::int64_t failing = 0; failing < 8; ++failing) {
    RunOptions options;
    options.before_step = [&](std::int64_t rank, std::int64_t step) {
      if (rank == failing && step == 2) throw std::runtime_error("pulled the plug");
    };
    REQUIRE_THROWS_WITH(run_on_host(eight_ranks(), options), "pulled the plug");
  }
}

TEST_CASE("a rank that hangs is given up on") {
  RunOptions options;
  options.patience = std::chrono::milliseconds(100);
  options.before_step = [](std::int64_t rank, std::int64_t) {
    if (rank == 3) std::this_thread::sleep_for(std::chrono::seconds(2));
  };
  REQUIRE_THROWS_AS(run_on_host(eight_ranks(), options), PeerLost);
}

TEST_CASE("a rank without room says which tensor, beside what") {
  RunOptions options;
  options.capacity = 33_MiB;
  try {
    run_on_host(tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .micro_batch = 32}), options);
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("out of memory: "));
    REQUIRE_THAT(error.what(), ContainsSubstring("workspace 33554432"));
  }
}

namespace {

// A device that can do anything but attend to a long sequence.
class Narrow final : public DryDevice {
 public:
  std::int64_t attention_scratch(const AttentionShape& s) const override {
    return s.samples * s.sequence * s.heads * most / 2;
  }
  void* allocate(std::int64_t) override {
    ++allocations;
    return nullptr;
  }
  static constexpr std::int64_t most = 8'388'608 / 128;  // 32 MiB of fp32, over tokens and heads
  int allocations = 0;
};

}  // namespace

TEST_CASE("attention that would outgrow its workspace is refused before anything is allocated") {
  const auto run = [](std::int64_t tokens, Narrow& device) {
    Problem p = tests::tiny_problem(tests::tiny_llama(), {.dp = 1});
    p.training.sequence_length = tokens;
    AbsentGroups alone(p, {});
    return run_steps(p, {}, device, alone, {.steps = 1});
  };
  Narrow fits;
  REQUIRE_NOTHROW(run(64, fits));  // 64 tokens, 4 heads: to the byte
  REQUIRE(fits.allocations > 0);
  Narrow refuses;
  REQUIRE_THROWS_WITH(run(65, refuses), ContainsSubstring("1 x 65 tokens and 4 heads a rank") &&
                                            ContainsSubstring("larger --tp would do"));
  REQUIRE(refuses.allocations == 0);
}
