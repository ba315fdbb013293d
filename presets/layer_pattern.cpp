// Which layers does a pattern name? Front doors: read_layer_pattern, layer_pattern.
#include "presets/layer_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace zeroplan {
namespace {

using List = std::optional<std::vector<bool>>;

// sum: term (+ term)*; term: factor (* number)*; factor: (sum) or [0, 1, ...].
class PatternReader {
 public:
  PatternReader(std::string_view text, std::size_t most) : rest_(text), most_(most) {}

  List read() {
    List list = sum(0);
    skip_spaces();
    return rest_.empty() ? list : std::nullopt;
  }

 private:
  List sum(int depth) {
    List all = term(depth);
    while (all && take('+')) {
      const List more = term(depth);
      if (!more || all->size() + more->size() > most_) return std::nullopt;
      all->insert(all->end(), more->begin(), more->end());
    }
    return all;
  }

  List term(int depth) {
    List list = factor(depth);
    while (list && take('*')) list = repeated(*list);
    return list;
  }

  List repeated(const std::vector<bool>& list) {
    skip_spaces();
    std::size_t times = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), times);
    if (error != std::errc{} || times > most_ || list.size() * times > most_) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    std::vector<bool> all;
    all.reserve(list.size() * times);
    for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  List factor(int depth) {
    constexpr int deepest = 32;
    if (take('(')) {
      if (depth == deepest) return std::nullopt;
      List inner = sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    return take('[') ? list() : std::nullopt;
  }

  // After its bracket.
  List list() {
    std::vector<bool> all;
    do {
      const bool one = take('1');
      if (!one && !take('0')) return std::nullopt;
      all.push_back(one);
    } while (take(','));
    return take(']') && all.size() <= most_ ? List(all) : std::nullopt;
  }

  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  bool take(char sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
  std::size_t most_;
};

}  // namespace

std::vector<bool> read_layer_pattern(std::string_view text, std::int64_t most) {
  return PatternReader(text, static_cast<std::size_t>(most)).read().value_or(std::vector<bool>{});
}

std::string layer_pattern(const std::vector<bool>& list) {
  std::string text;
  for (std::size_t first = 0; first < list.size();) {
    std::size_t last = first;
    while (last < list.size() && list[last] == list[first]) ++last;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", list[first] ? 1 : 0, last - first);
    first = last;
  }
  return "(" + text + ")";
}

}  // namespace zeroplan
