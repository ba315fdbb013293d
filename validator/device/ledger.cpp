// What is allocated, and what was at most? Front door: Ledger.
#include "validator/device/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace zeroplan::engine {

Ledger::Entry Ledger::add(std::string_view tensor, Category category, Bytes asked) {
  const Bytes bytes{round_up(asked.count(), alignment)};
  if (capacity_ > Bytes{} && live_.allocated() + bytes > capacity_) {
    throw OutOfMemory(fmt::format(
        "out of memory: {} of {} bytes does not fit beside {} bytes of {}, in {}; alive are {}",
        tensor, bytes.count(), live_.allocated().count(), capacity_.count(),
        phase_ ? name_of(*phase_) : "the making of states",
        rows_.empty() ? "no tensors" : listing()));
  }
  live_[category] += bytes;
  if (live_.allocated() > peak_.live.allocated())
    peak_ = {live_, phase_.value_or(Phase::forward), tensor};
  if (free_rows_.empty()) {
    rows_.push_back({tensor, category, bytes, phase_, true});
    return rows_.size() - 1;
  }
  const Entry entry = free_rows_.back();
  free_rows_.pop_back();
  rows_[entry] = {tensor, category, bytes, phase_, true};
  return entry;
}

void Ledger::remove(Entry entry) {
  Row& row = rows_.at(entry);
  if (!row.live) throw std::logic_error(fmt::format("{} is freed twice", row.tensor));
  row.live = false;
  live_[row.category] -= row.bytes;
  free_rows_.push_back(entry);
}

std::string Ledger::listing() const {
  std::map<std::string, Bytes> sums;
  for (const Row& row : rows_) {
    if (!row.live) continue;
    const std::string made = row.phase ? fmt::format(" of {}", name_of(*row.phase)) : "";
    sums[std::string(row.tensor) + made] += row.bytes;
  }
  std::vector<std::pair<std::string, Bytes>> list(sums.begin(), sums.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [tensor, bytes] : list) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor, bytes.count());
  }
  return text;
}

}  // namespace zeroplan::engine
