// Which known name is closest to a wrong one? Front door: nearest.
#include "presets/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace zeroplan {
namespace {

constexpr std::size_t longest_name =
    128;  // of a name worth comparing: longer ones are not typing errors
constexpr std::size_t longest_quote = 60;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

unsigned byte_of(char c) {
  return static_cast<unsigned char>(c);
}

// Bytes of the letter that begins the text; 0 where that is a control character or not UTF-8 (RFC
// 3629, section 4).
std::size_t bytes_of_letter(std::string_view text) {
  const unsigned first = byte_of(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_of(text[i]) & 0xc0U) != 0x80) return 0;
  }
  const unsigned second = byte_of(text[1]);
  const bool control = first == 0xc2 && second < 0xa0;
  const bool longer_than_needed =
      (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_letter = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return control || longer_than_needed || no_letter ? 0 : bytes;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_letter(text);
    if (bytes == 0) {
      out += '?';
      text.remove_prefix(1);
    } else {
      out += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return out;
}

std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool plain = byte_of(text.front()) < 0x80;
    const std::size_t bytes = plain ? 1 : bytes_of_letter(text);
    out += bytes == 0 ? "?" : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string_view start = text.substr(0, longest_quote);
  if (text.size() > longest_quote) {
    // Do not leave the first bytes of a multi-byte letter behind.
    while (!start.empty() && byte_of(start.back()) >= 0x80) start.remove_suffix(1);
  }
  return fmt::format("'{}{}'", printable(start), text.size() > longest_quote ? "..." : "");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances of a[0, i) to every b[0, j); a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char from = lower(a[i - 1]);
      const char to = lower(b[j - 1]);
      row[j] = std::min({last[j - 1] + (from == to ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && from == lower(b[j - 2]) && lower(a[i - 2]) == to;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string plain_name(std::string_view text) {
  std::string out = lower_case(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '_' || c == ':' || c == ' '; }, '-');
  return out;
}

namespace {

struct Nearness {
  std::size_t edits;
  bool loses;          // letters that were typed
  std::size_t length;  // difference
  friend auto operator<=>(const Nearness&, const Nearness&) = default;
};

Nearness nearness(std::string_view typed, const std::string& candidate) {
  constexpr std::size_t telling_start = 3;
  const std::string a = lower_case(typed);
  const std::string b = lower_case(candidate);
  // Who stopped typing early meant a name that goes on so, nearer than any misspelling. Who added a
  // part to a name is next to it: llama3-70b-instruct is built as llama3-70b.
  const bool begun = a.size() >= telling_start && b.starts_with(a);
  const bool extended = a.starts_with(b + "-");
  const std::size_t shorter = std::min(a.size(), b.size());
  const auto from_start = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin()).first -
      a.begin());
  const auto from_end = static_cast<std::size_t>(
      std::mismatch(a.rbegin(), a.rbegin() + static_cast<std::ptrdiff_t>(shorter), b.rbegin())
          .first -
      a.rbegin());
  return {begun      ? 0
          : extended ? 1
                     : edit_distance(a, b),
          from_start + from_end < a.size(), std::max(a.size(), b.size()) - shorter};
}

struct Found {
  std::string name;
  Nearness nearness;
};

std::optional<Found> nearest_of(std::string_view name, std::span<const std::string> candidates) {
  const std::string_view start = name.substr(0, longest_name);
  std::optional<Found> best;
  for (const std::string& candidate : candidates) {
    const Nearness now = nearness(start, candidate);
    if (!best || now < best->nearness) best = {candidate, now};
  }
  return best;
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  const auto found = nearest_of(name, candidates);
  return found ? found->name : "";
}

std::string near_name(std::string_view name, std::span<const std::string> candidates) {
  const auto found = nearest_of(name, candidates);
  return found && found->nearness.edits <= (name.size() + 2) / 3 ? found->name : "";
}

}  // namespace zeroplan
