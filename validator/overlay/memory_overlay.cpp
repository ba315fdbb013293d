// Which tensors are off? Front door: memory_overlay.
#include "validator/overlay/memory_overlay.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

namespace zeroplan {
namespace {

struct Size {
  SizeRow row;
  std::map<std::string, std::int64_t> names;
  std::vector<Category> categories;  // of each predicted tensor
};

std::vector<std::string> most_first(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::string, std::int64_t>> list(counts.begin(), counts.end());
  std::ranges::stable_sort(list, std::greater{}, [](const auto& c) { return c.second; });
  std::vector<std::string> names;
  for (auto& [name, count] : list) names.push_back(std::move(name));
  return names;
}

Bytes total(const std::vector<TensorSpec>& tensors, Category category) {
  Bytes sum;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.category == category) sum += tensor.bytes;
  }
  return sum;
}

// What the first step leaves of all that was made before it.
std::vector<TensorSpec> single_residents(const Startup& startup) {
  const Block& made = startup.construction;
  std::vector<bool> live(made.tensors.size());
  for (const Event& event : made.forward) {
    if (event.is_of_tensor()) live[static_cast<std::size_t>(event.index)] = event.allocates();
  }
  std::vector<TensorSpec> tensors;
  for (std::size_t i = 0; i < live.size(); ++i) {
    if (live[i]) tensors.push_back(made.tensors[i]);
  }
  tensors.insert(tensors.end(), startup.moments.begin(), startup.moments.end());
  return tensors;
}

}  // namespace

MemoryOverlay memory_overlay(const MemoryHistory& history,
                             const std::vector<TensorSpec>& predicted) {
  const HeldPeak peak = held_peak(history);
  MemoryOverlay out{
      .measured = peak.bytes, .reserved = history.reserved, .unmatched = peak.unmatched};
  std::map<std::int64_t, Size> sizes;
  for (const HeldSize& held : peak.sizes) {
    SizeRow& row = sizes[held.bytes].row;
    row.measured = held.count;
    for (const auto& [label, count] : held.labels) row.holders.push_back(label);
  }
  std::map<Category, CategoryRow> categories;
  for (const TensorSpec& tensor : predicted) {
    const std::int64_t bytes = counted_bytes(tensor.bytes.count());
    Size& size = sizes[bytes];
    ++size.row.predicted;
    ++size.names[std::string(tensor.name)];
    size.categories.push_back(tensor.category);
    out.predicted += bytes;
    categories[tensor.category].predicted += bytes;
  }
  for (auto& [bytes, size] : sizes) {
    size.row.bytes = bytes;
    size.row.tensors = most_first(size.names);
    const auto found = std::min<std::int64_t>(size.row.measured, size.row.predicted);
    for (std::int64_t i = 0; i < found; ++i) {
      categories[size.categories[static_cast<std::size_t>(i)]].found += bytes;
    }
    if (bytes > 0) out.sizes.push_back(std::move(size.row));
  }
  std::ranges::stable_sort(out.sizes, std::greater{},
                           [](const SizeRow& row) { return std::llabs(row.difference()); });
  for (auto& [category, row] : categories) {
    row.category = category;
    out.categories.push_back(row);
  }
  return out;
}

std::vector<TensorSpec> tensors_at_peak(const StageProgram& program,
                                        const Startup& startup,
                                        const Timeline& timeline) {
  const std::vector<TensorSpec> singles = single_residents(startup);
  const auto as_singles = [&](Category category) {
    return total(singles, category) == total(program.resident, category);
  };
  std::vector<TensorSpec> tensors;
  std::ranges::copy_if(singles, std::back_inserter(tensors),
                       [&](const TensorSpec& t) { return as_singles(t.category); });
  std::ranges::copy_if(program.resident, std::back_inserter(tensors),
                       [&](const TensorSpec& t) { return !as_singles(t.category); });
  for (const LiveTensors& live : live_at_highest(timeline)) {
    for (std::int64_t i = 0; i < live.count; ++i) {
      tensors.push_back({.name = live.name, .bytes = live.each, .category = live.category});
    }
  }
  return tensors;
}

}  // namespace zeroplan
