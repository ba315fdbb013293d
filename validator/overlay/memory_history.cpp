// When was most memory held, and by whom? Front door: held_peak.
#include "validator/overlay/memory_history.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace zeroplan {
namespace {

class Holding {
 public:
  bool add(std::int64_t address, const HeldBlock& block) {
    if (!blocks_.try_emplace(address, block).second) return false;
    bytes_ += counted_bytes(block.bytes);
    return true;
  }
  bool remove(std::int64_t address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return false;
    bytes_ -= counted_bytes(found->second.bytes);
    blocks_.erase(found);
    return true;
  }
  bool apply(const MemoryEvent& event, bool forwards) {
    return event.allocates == forwards ? add(event.address, event.block) : remove(event.address);
  }

  std::int64_t bytes() const { return bytes_; }
  const auto& blocks() const { return blocks_; }

 private:
  std::unordered_map<std::int64_t, HeldBlock> blocks_;
  std::int64_t bytes_ = 0;
};

std::vector<HeldSize> sizes_of(const MemoryHistory& history, const Holding& held) {
  struct Counted {
    std::int64_t count = 0;
    std::map<std::int32_t, std::int64_t> labels;
  };
  std::map<std::int64_t, Counted> by_size;
  for (const auto& [address, block] : held.blocks()) {
    Counted& counted = by_size[counted_bytes(block.bytes)];
    ++counted.count;
    ++counted.labels[block.label];
  }
  std::vector<HeldSize> sizes;
  for (const auto& [bytes, counted] : by_size) {
    HeldSize& size = sizes.emplace_back(HeldSize{bytes, counted.count, {}});
    for (const auto& [label, count] : counted.labels) {
      size.labels.emplace_back(history.labels[static_cast<std::size_t>(label)], count);
    }
    std::ranges::stable_sort(size.labels, std::greater{}, [](const auto& l) { return l.second; });
  }
  std::ranges::stable_sort(sizes, std::greater{}, &HeldSize::total);
  return sizes;
}

}  // namespace

HeldPeak held_peak(const MemoryHistory& history) {
  HeldPeak peak;
  Holding held;
  for (const auto& [address, block] : history.held) peak.unmatched += !held.add(address, block);
  for (std::size_t i = history.events.size(); i-- > 0;) {
    peak.unmatched += !held.apply(history.events[i], false);
  }
  const Holding first = held;
  peak.bytes = held.bytes();
  for (std::size_t i = 0; i < history.events.size(); ++i) {
    held.apply(history.events[i], true);
    if (held.bytes() > peak.bytes) {
      peak.bytes = held.bytes();
      peak.event = i + 1;
    }
  }
  held = first;
  for (std::size_t i = 0; i < peak.event; ++i) held.apply(history.events[i], true);
  peak.blocks = static_cast<std::int64_t>(held.blocks().size());
  peak.sizes = sizes_of(history, held);
  return peak;
}

}  // namespace zeroplan
