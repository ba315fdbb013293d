// Which known name is closest to a wrong one? Front door: nearest.
#include "presets/nearest_name.hpp"

#include <algorithm>
#include <numeric>
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

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, longest_quote)) {
    const auto code = static_cast<unsigned char>(c);
    out += code < 0x20 || code == 0x7f ? '?' : c;
  }
  if (text.size() > longest_quote) {
    // Do not leave the first bytes of a multi-byte letter behind.
    while ((static_cast<unsigned char>(out.back()) & 0x80U) != 0) out.pop_back();
    out += "...";
  }
  return out + "'";
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

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::string_view start = name.substr(0, longest_name);
  constexpr std::size_t telling_start = 3;
  const auto rank = [&](const std::string& candidate) {
    const std::size_t a = start.size();
    const std::size_t b = candidate.size();
    // Who stopped typing early meant a name that goes on so, nearer than any misspelling.
    const bool begun = a >= telling_start && lower_case(candidate).starts_with(lower_case(start));
    const std::size_t edits = edit_distance(start, candidate);
    return std::pair(begun ? 0 : edits, a > b ? a - b : b - a);
  };
  std::string best;
  auto least = rank(best);
  for (const std::string& candidate : candidates) {
    const auto found = rank(candidate);
    if (!best.empty() && found >= least) continue;
    best = candidate;
    least = found;
  }
  return best;
}

}  // namespace zeroplan
