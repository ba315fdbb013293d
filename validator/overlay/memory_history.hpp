#pragma once
// What PyTorch's allocator did, as its snapshot keeps it.

#include <cstdint>
#include <string>
#include <vector>

namespace zeroplan {

/// A block that somebody holds.
struct HeldBlock {
  std::int64_t bytes = 0;  // as asked for
  std::int32_t label = 0;  // in MemoryHistory::labels
};

struct MemoryEvent {
  bool allocates = false;
  std::int64_t address = 0;
  HeldBlock block;
};

struct MemoryHistory {
  std::vector<std::string> labels;                       // who asked: function and place
  std::vector<std::pair<std::int64_t, HeldBlock>> held;  // at the end, by address
  std::vector<MemoryEvent> events;                       // the last ones before, in their order
  std::int64_t reserved = 0;                             // bytes of all segments at the end
};

/// Blocks of one size that are held at the same moment. The allocator cuts memory by 512 bytes
/// (PyTorch c10/core/alignment: kMinBlockSize), so that sizes are told apart by as much.
struct HeldSize {
  std::int64_t bytes = 0;  // of each
  std::int64_t count = 0;
  std::vector<std::pair<std::string, std::int64_t>> labels;  // and how many each asked for
  std::int64_t total() const { return count * bytes; }
};

/// The moment of a history at which most is held.
struct HeldPeak {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::size_t event = 0;        // after so many events
  std::size_t unmatched = 0;    // events that contradict the others
  std::vector<HeldSize> sizes;  // largest total first
};

/// Plays the events backwards from what is held at the end, then forwards.
HeldPeak held_peak(const MemoryHistory& history);

/// Bytes that the allocator counts for so many.
constexpr std::int64_t counted_bytes(std::int64_t bytes) {
  constexpr std::int64_t cut = 512;
  return (bytes + cut - 1) / cut * cut;
}

}  // namespace zeroplan
