#include "cost_model/allocator/caching_allocator.hpp"

#include <map>
#include <sstream>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// "12M+1", "39M-512", "1.5M": M is MiB, a bare number bytes.
std::int64_t amount(const std::string& text) {
  std::istringstream in(text);
  double total = 0;
  for (double value = 0; in >> value;) {
    if (in.peek() == 'M') {
      in.get();
      value *= static_cast<double>(mebi);
    }
    total += value;
  }
  return static_cast<std::int64_t>(total);
}

// A script of steps "what = allocated / reserved", separated by semicolons:
//   a 30M@B           allocate a on stream B; without @, on A
//   free a b          record a B            events complete
//   empty_cache       retries 1             out of memory a 30M
class Replay {
 public:
  explicit Replay(const AllocatorConfig& config) : allocator_(config) {}

  void run(const std::string& script) {
    std::istringstream steps(script);
    for (std::string step; std::getline(steps, step, ';');) {
      INFO(step);
      const auto equals = step.find('=');
      act(step.substr(0, equals));
      if (equals != std::string::npos) expect(step.substr(equals + 1));
    }
  }

 private:
  void act(const std::string& text) {
    std::istringstream in(text);
    std::string word;
    std::string name;
    in >> word;
    if (word == "free") {
      while (in >> name) allocator_.free(blocks_.at(name));
    } else if (word == "record") {
      std::string stream;
      in >> name >> stream;
      allocator_.record_stream(blocks_.at(name), stream.at(0) - 'A');
    } else if (word == "events") {
      allocator_.complete_events();
    } else if (word == "empty_cache") {
      allocator_.empty_cache();
    } else if (word == "retries") {
      std::int64_t retries = 0;
      in >> retries;
      REQUIRE(allocator_.retries() == retries);
    } else if (word == "out") {
      in >> word >> word >> name >> word;
      REQUIRE_FALSE(allocate(word).has_value());
    } else {
      in >> name;
      const std::optional<BlockId> block = allocate(name);
      REQUIRE(block.has_value());
      blocks_[word] = *block;
    }
  }

  std::optional<BlockId> allocate(const std::string& size_at_stream) {
    const auto at = size_at_stream.find('@');
    const int stream = at == std::string::npos ? 0 : size_at_stream.at(at + 1) - 'A';
    return allocator_.allocate(Bytes{amount(size_at_stream.substr(0, at))}, stream);
  }

  void expect(const std::string& allocated_and_reserved) {
    const auto slash = allocated_and_reserved.find('/');
    REQUIRE(allocator_.allocated().count() == amount(allocated_and_reserved.substr(0, slash)));
    REQUIRE(allocator_.reserved().count() == amount(allocated_and_reserved.substr(slash + 1)));
  }

  CachingAllocator allocator_;
  std::map<std::string, BlockId> blocks_;
};

struct Vector {
  const char* name;
  AllocatorConfig config;
  const char* script;
};

void replay(const std::vector<Vector>& vectors) {
  for (const Vector& v : vectors) {
    INFO(v.name);
    Replay(v.config).run(v.script);
  }
}

}  // namespace

// The vectors were worked from the rules of the source, independently of this code.
TEST_CASE("native segments: rounding, classes and splitting") {
  replay({
      {"small blocks share 2 MiB",
       {},
       "a 1 = 512 / 2M; b 513 = 1536 / 2M; free a = 1024 / 2M; c 512 = 1536 / 2M"},
      {"a full small segment", {}, "a 1M = 1M / 2M; b 1M = 2M / 2M; c 512 = 2M+512 / 4M"},
      {"one byte more is large", {}, "a 1M+1 = 1M+512 / 20M"},
      {"a small remainder is handed out", {}, "a 10M-512 = 10M-512 / 20M; b 10M-512 = 20M / 20M"},
      {"from 10 MiB on, a segment of its own", {}, "a 10M-511 = 10M / 10M"},
      {"segments are multiples of 2 MiB", {}, "a 12M+1 = 12M+512 / 14M"},
      {"a remainder of 1 MiB is not split", {}, "a 19M = 20M / 20M"},
      {"what does not fit the tail", {}, "a 1.5M = 1.5M / 20M; b 19M = 21.5M / 40M"},
      {"a remainder of one block more is split",
       {},
       "a 40M = 40M / 40M; free a = 0 / 40M; b 39M = 40M / 40M; free b = 0 / 40M;"
       "c 39M-512 = 39M-512 / 40M"},
      {"an unsplit tail leaves nothing",
       {},
       "a 2M-512 = 2M-512 / 20M; b 18M = 20M / 20M; c 2M = 22M / 40M"},
  });
}

TEST_CASE("native segments: best fit, merging and streams") {
  replay({
      {"the smallest block that fits",
       {},
       "a 8M; b 8M; c 4M = 20M / 20M; free a = 12M / 20M; free c = 8M / 20M;"
       "d 6M = 14M / 20M; e 4M = 18M / 20M"},
      {"free neighbours merge",
       {},
       "a 6M; b 6M; c 6M = 18M / 20M; free a = 12M / 20M; free b = 6M / 20M;"
       "d 12M = 18M / 20M; free d = 6M / 20M; free c = 0 / 20M; e 20M = 20M / 20M"},
      {"segments are reused",
       {},
       "a 30M = 30M / 30M; b 50M = 80M / 80M; free a b = 0 / 80M; c 28M = 28M / 80M;"
       "d 40M = 68M / 80M"},
      {"streams do not share",
       {},
       "a 100M@A = 100M / 100M; free a = 0 / 100M; b 100M@B = 100M / 200M;"
       "c 100M@A = 200M / 200M"},
      {"nor do classes",
       {},
       "a 512@A = 512 / 2M; b 512@B = 1024 / 4M; c 4M@A = 4M+1024 / 24M;"
       "d 4M@B = 8M+1024 / 44M"},
  });
}

TEST_CASE("a block used on another stream waits for its event, seen at the next allocation") {
  replay({
      {"pending",
       {},
       "a 64M@A = 64M / 64M; record a B; free a = 0 / 64M; b 64M@A = 64M / 128M;"
       "events complete = 64M / 128M; c 64M@A = 128M / 128M"},
      {"already complete",
       {},
       "a 64M; record a B; free a = 0 / 64M; events complete; b 64M@A = 64M / 64M"},
      {"its own stream does not count", {}, "a 64M@A; record a A; free a; b 64M@A = 64M / 64M"},
  });
}

TEST_CASE("native segments: a full device returns what is cached and tries again") {
  const AllocatorConfig cap200{.capacity = 200_MiB};
  replay({
      {"a free segment is returned", cap200,
       "a 64M = 64M / 64M; b 64M = 128M / 128M; free a = 64M / 128M; c 100M = 164M / 164M;"
       "retries 1"},
      {"not before it must be", cap200,
       "a 60M = 60M / 60M; b 10M = 70M / 70M; free a = 10M / 70M; k 5M = 15M / 70M;"
       "c 120M = 135M / 190M; retries 0"},
      {"events are awaited", cap200,
       "a 64M@A; record a B; free a = 0 / 64M; b 150M@A = 150M / 150M; retries 1"},
      {"from every stream", cap200,
       "a 80M@A; free a = 0 / 80M; b 70M@B = 70M / 150M; c 60M@B = 130M / 130M; retries 1"},
      {"empty_cache",
       {},
       "a 60M = 60M / 60M; free a = 0 / 60M; b 58M = 58M / 60M; free b = 0 / 60M;"
       "empty_cache = 0 / 0"},
      {"out of memory leaves the cache empty",
       {.capacity = 100_MiB},
       "a 60M = 60M / 60M; b 30M = 90M / 90M; free a = 30M / 90M;"
       "out of memory c 80M = 30M / 30M; retries 1"},
  });
}

TEST_CASE("native segments: oversize blocks are kept for oversize requests") {
  const AllocatorConfig split256{.max_split_size = 256_MiB};
  replay({
      {"refused to a smaller request", split256,
       "a 300M = 300M / 300M; free a = 0 / 300M; b 100M = 100M / 400M; c 310M = 410M / 710M"},
      {"given within 20 MiB, whole", split256,
       "a 300M; free a; b 290M = 300M / 300M; free b; c 280M-512 = 280M / 580M"},
      {"one that suffices is returned first, and nothing else",
       {.max_split_size = 256_MiB, .capacity = 1000_MiB},
       "a 300M; b 400M; c 100M; free a b c = 0 / 800M; d 310M = 310M / 710M; retries 0"},
      {"else the largest, until they suffice",
       {.max_split_size = 256_MiB, .capacity = 1000_MiB},
       "a 300M; b 280M; c 260M; d 50M; free a b c d = 0 / 890M; e 500M = 500M / 810M;"
       "retries 0"},
  });
}

TEST_CASE("expandable segments") {
  const AllocatorConfig expandable{.expandable_segments = true};
  const AllocatorConfig cap200{.expandable_segments = true, .capacity = 200_MiB};
  replay({
      {"the free tail is extended", expandable,
       "a 1.5M = 1.5M / 20M; b 19M = 20.5M / 40M; c 512 = 20.5M+512 / 42M"},
      {"every remainder is split", expandable, "a 19M = 19M / 20M; b 1M+512 = 20M+512 / 40M"},
      {"a hole that is too small stays", expandable,
       "a 30M = 30M / 40M; b 30M = 60M / 60M; free a = 30M / 60M; c 40M = 70M / 100M;"
       "d 30M = 100M / 100M"},
      {"a free tail does not fragment", expandable,
       "a 30M = 30M / 40M; free a = 0 / 40M; b 70M = 70M / 80M"},
      {"best fit", expandable,
       "a 16M = 16M / 20M; b 16M = 32M / 40M; c 16M = 48M / 60M; free a = 32M / 60M;"
       "free c = 16M / 60M; d 8M = 24M / 60M; e 20M = 44M / 60M"},
      {"streams do not share", expandable,
       "a 50M@A = 50M / 60M; free a = 0 / 60M; b 50M@B = 50M / 120M"},
      {"empty_cache keeps the chunks of live blocks", expandable,
       "a 25M = 25M / 40M; b 5M = 30M / 40M; c 50M = 80M / 80M; free a = 55M / 80M;"
       "free c = 5M / 80M; empty_cache = 5M / 20M; d 30M = 35M / 40M; e 20M = 55M / 60M"},
      {"a full device unmaps", cap200,
       "a 100M@A; free a = 0 / 100M; b 120M@B = 120M / 120M; retries 1"},
      {"but not the chunks of live blocks", cap200,
       "a 100M@A; k 10M@A = 110M / 120M; free a = 10M / 120M; b 120M@B = 130M / 140M;"
       "retries 1"},
      {"small chunks are 2 MiB", expandable, "a 1M = 1M / 2M; b 1M = 2M / 2M; c 1M = 3M / 4M"},
      {"the tail is used last", expandable,
       "a 40M = 40M / 40M; b 10M = 50M / 60M; free a = 10M / 60M; d 8M = 18M / 60M;"
       "e 35M = 53M / 100M"},
      {"more than the device", cap200, "out of memory a 300M = 0 / 0; b 200M = 200M / 200M"},
  });
}

TEST_CASE("sizes round up to parts of a power of two") {
  const AllocatorConfig quarters{.roundup_power2_divisions = 4};
  replay({
      {"the part above", quarters, "a 1200M = 1280M / 1280M; b 1280M+1 = 2816M / 2816M"},
      {"the power itself", quarters, "a 1024M = 1024M / 1024M"},
      {"the last part ends at the next power", quarters, "a 1M-1 = 1M / 2M"},
      {"not where a part is below 512 bytes", quarters, "a 1025 = 1536 / 2M; b 2049 = 4096 / 2M"},
      {"the class is that of the rounded size", quarters, "a 1M+1 = 1.25M / 20M"},
  });
}

TEST_CASE("a memory limit acts before the device is full") {
  replay({
      {"native",
       {.memory_limit = 100_MiB},
       "a 60M; free a; b 80M = 80M / 80M; retries 1; out of memory c 30M = 80M / 80M"},
      // The source compares the size a native segment would have.
      {"expandable",
       {.expandable_segments = true, .memory_limit = 100_MiB},
       "a 90M = 90M / 100M; out of memory b 12M = 90M / 100M; c 10M = 100M / 100M"},
  });
}

TEST_CASE("garbage collection returns what was idle longest") {
  const AllocatorConfig config{.memory_limit = 200_MiB, .garbage_collection_threshold = 0.5};
  replay({
      {"below the threshold, nothing", config, "a 60M; free a; b 70M = 70M / 130M"},
      {"above, the oldest", config,
       "a 40M; b 50M; c 60M = 150M / 150M; free a; d 70M@B = 180M / 180M; retries 0;"
       "free b; e 45M = 175M / 180M"},
      {"the young stay when the old suffice", config,
       "a 60M; b 40M; free a; c 30M@B = 70M / 130M; free b; d 30M@C = 60M / 100M"},
  });
}

TEST_CASE("no bytes, no block") {
  CachingAllocator allocator;
  const std::optional<BlockId> block = allocator.allocate(Bytes{});
  REQUIRE(block.value() == BlockId::none);
  allocator.record_stream(*block, 1);
  allocator.free(*block);
  REQUIRE(allocator.reserved() == Bytes{});
}

TEST_CASE("peaks stay") {
  CachingAllocator allocator;
  const BlockId block = *allocator.allocate(30_MiB);
  allocator.free(block);
  allocator.empty_cache();
  REQUIRE(allocator.allocated() == Bytes{});
  REQUIRE(allocator.peak_allocated() == 30_MiB);
  REQUIRE(allocator.peak_reserved() == 30_MiB);
}

TEST_CASE("a snapshot shows segments and their blocks") {
  CachingAllocator allocator({.expandable_segments = true});
  const BlockId a = *allocator.allocate(30_MiB);
  const BlockId b = *allocator.allocate(4_MiB, 1);
  allocator.record_stream(a, 1);
  const BlockId c = *allocator.allocate(Bytes{1000});
  allocator.free(a);
  const std::vector<SegmentView> segments = allocator.segments();
  REQUIRE(segments.size() == 3);
  REQUIRE(segments[0].size == 40_MiB);
  REQUIRE(segments[0].address == allocator.block(a).address);
  REQUIRE(segments[0].blocks.size() == 2);
  REQUIRE(segments[0].blocks[0].state == BlockState::awaiting_events);
  REQUIRE(segments[0].blocks[1].state == BlockState::free);
  REQUIRE(segments[1].stream == 1);
  REQUIRE(segments[1].is_large);
  REQUIRE(allocator.block(b).size == 4_MiB);
  REQUIRE_FALSE(segments[2].is_large);
  REQUIRE(allocator.block(c).size == Bytes{1024});
  REQUIRE(allocator.block(c).requested == Bytes{1000});
}
