#include <random>

#include "cost_model/allocator/caching_allocator.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// What must be true after every step, told from outside.
void check_invariants(const CachingAllocator& allocator, const AllocatorConfig& config) {
  Bytes reserved;
  Bytes allocated;
  std::int64_t end = 0;
  bool sound = true;
  for (const SegmentView& segment : allocator.segments()) {
    sound = sound && segment.address >= end;
    end = segment.address;
    bool after_free = false;
    for (const BlockView& block : segment.blocks) {
      const bool is_free = block.state == BlockState::free;
      sound = sound && block.address == end && block.size.count() >= 512 &&
              block.size.count() % 512 == 0 && !(is_free && after_free) &&
              is_free == (block.requested == Bytes{}) && block.requested <= block.size;
      after_free = is_free;
      end += block.size.count();
      if (block.state == BlockState::allocated) allocated += block.size;
    }
    const std::int64_t unit = config.expandable_segments && segment.is_large ? 20 * mebi : 2 * mebi;
    sound =
        sound && end == segment.address + segment.size.count() && segment.size.count() % unit == 0;
    reserved += segment.size;
  }
  REQUIRE(sound);
  REQUIRE(end < std::int64_t{1} << 53);
  REQUIRE(allocator.reserved() == reserved);
  REQUIRE(allocator.allocated() == allocated);
  REQUIRE(allocated <= reserved);
  REQUIRE(reserved <= config.capacity);
  REQUIRE(allocator.peak_allocated() >= allocated);
  REQUIRE(allocator.peak_reserved() >= reserved);
}

// A seeded program: what it allocated, freed and was refused, and what that came to.
class RandomProgram {
 public:
  explicit RandomProgram(const AllocatorConfig& config, unsigned seed)
      : config_(config), allocator_(config), random_(seed) {}

  void step() {
    const auto dice = pick(100);
    if (dice < 52) {
      allocate();
    } else if (dice < 92) {
      if (!live_.empty()) free(pick(live_.size()));
    } else if (dice < 96) {
      if (!live_.empty()) allocator_.record_stream(live_[pick(live_.size())], stream());
    } else if (dice < 99) {
      allocator_.complete_events();
    } else {
      allocator_.empty_cache();
    }
    check_invariants(allocator_, config_);
    log_.push_back(allocator_.allocated());
    log_.push_back(allocator_.reserved());
  }

  void free_all() {
    while (!live_.empty()) free(live_.size() - 1);
    allocator_.empty_cache();
    check_invariants(allocator_, config_);
  }

  const CachingAllocator& allocator() const { return allocator_; }
  const std::vector<Bytes>& log() const { return log_; }
  int refused() const { return refused_; }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  int stream() { return static_cast<int>(pick(3)); }

  void allocate() {
    constexpr std::int64_t largest[] = {4096, mebi, 12 * mebi, 60 * mebi};
    const auto limit = static_cast<std::size_t>(largest[pick(4)]);
    const auto block = allocator_.allocate(Bytes{1 + pick(limit)}, stream());
    if (block) live_.push_back(*block);
    if (!block) ++refused_;
  }

  void free(std::size_t index) {
    allocator_.free(live_[index]);
    live_[index] = live_.back();
    live_.pop_back();
  }

  AllocatorConfig config_;
  CachingAllocator allocator_;
  std::mt19937 random_;
  std::vector<BlockId> live_;
  std::vector<Bytes> log_;
  int refused_ = 0;
};

}  // namespace

TEST_CASE("any program leaves blocks tiled, merged, and counted") {
  for (const bool expandable : {false, true}) {
    for (const bool max_split : {false, true}) {
      for (const bool full : {false, true}) {
        AllocatorConfig config{.expandable_segments = expandable};
        if (max_split) config.max_split_size = 24_MiB;
        if (full) config.capacity = 700_MiB;
        CAPTURE(expandable, max_split, full);
        RandomProgram program(config, 7);
        for (int i = 0; i < 2500; ++i) program.step();
        // Some programs must meet the full device, or the test shows nothing about it.
        REQUIRE((program.allocator().retries() > 0) == full);
        REQUIRE((program.refused() > 0) == full);
        program.free_all();
        REQUIRE(program.allocator().allocated() == Bytes{});
        REQUIRE(program.allocator().reserved() == Bytes{});
        REQUIRE(program.allocator().segments().empty());
      }
    }
  }
}

TEST_CASE("the same program has the same result") {
  const AllocatorConfig config{.expandable_segments = true, .capacity = 700_MiB};
  RandomProgram first(config, 11);
  RandomProgram second(config, 11);
  for (int i = 0; i < 1000; ++i) {
    first.step();
    second.step();
  }
  REQUIRE(first.log() == second.log());
}
