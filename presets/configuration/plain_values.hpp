#pragma once
// Private to presets: what readers of plain text share.

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// Up to a '#' outside quotes.
std::string_view without_comment(std::string_view line);

/// Calls `visit` with each line that says something, its comment cut off, and its number from 1.
template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = without_comment(text.substr(0, end));
    if (!trimmed(line).empty()) visit(line, number);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  }
}

/// A number, true or false, a text with or without quotes, or a list of them in brackets; no format
/// has lists of lists.
ConfigValue plain_value(std::string_view text);

/// Throws InputError: "<where>: line <line>: <what>".
[[noreturn]] void fail_at_line(std::string_view where, std::size_t line, std::string_view what);

/// The entries so far, each key once.
class Reading {
 public:
  explicit Reading(std::string_view where) : where_(where) {}

  /// Throws InputError where the key is there.
  void add(Entry entry, std::size_t line);
  bool empty() const { return entries_.empty(); }
  Entry& last() { return entries_.back(); }
  std::vector<Entry> take() { return std::move(entries_); }

 private:
  std::string_view where_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string> keys_;
};

}  // namespace zeroplan
