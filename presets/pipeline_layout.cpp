// How does Megatron-Core write which chunk holds what? Front doors: parse_pipeline_layout,
// pipeline_layout_text.
#include "presets/pipeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace zeroplan {
namespace {

constexpr std::size_t longest_layout = 1 << 16;  // far more than any model has layers

// Takes "*3" from the front of the text.
std::optional<std::size_t> take_times(std::string_view& text) {
  if (!text.starts_with('*')) return std::nullopt;
  std::size_t times = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return times;
}

// Writes the items at the front of a text, one after another, as often as each says. `item`: how
// long the first one is, and which part of it is repeated where a number of times follows.
struct Item {
  std::size_t length = 1;
  std::string_view repeated;
};
template <class First>
std::optional<std::string> unrolled(std::string_view text, First&& first) {
  std::string out;
  while (!text.empty()) {
    const Item item = first(text);
    std::string_view rest = text.substr(item.length);
    const std::optional<std::size_t> times = take_times(rest);
    if (times) {
      if (*times > longest_layout || out.size() + *times * item.repeated.size() > longest_layout)
        return {};
      for (std::size_t i = 0; i < *times; ++i) out += item.repeated;
      text = rest;
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

// A group in parentheses, which do not nest.
Item first_group(std::string_view text) {
  const std::size_t end = text.find(')');
  const bool group = text.front() == '(' && end != std::string_view::npos && end > 1;
  if (!group) return {.length = text.size()};  // nothing follows it
  return {end + 1, text.substr(1, end - 1)};
}

Item first_letter(std::string_view text) {
  return {1, text.substr(0, 1)};
}

// Equal chunks on one run of the text.
std::string repeated(const std::string& chunk, std::int64_t times) {
  return times == 1 ? chunk + "|" : fmt::format("({}|)*{}", chunk, times);
}

std::string letters(char letter, std::int64_t times) {
  if (times > 2) return fmt::format("{}*{}", letter, times);
  return std::string(static_cast<std::size_t>(times), letter);
}

}  // namespace

std::optional<PipelineLayout> parse_pipeline_layout(std::string_view text) {
  std::string without_commas(text);
  std::erase(without_commas, ',');
  const std::optional<std::string> groups = unrolled(without_commas, first_group);
  const std::optional<std::string> all = groups ? unrolled(*groups, first_letter) : std::nullopt;
  if (!all || all->size() < 2 || all->front() != 'E' || all->back() != 'L') return std::nullopt;

  PipelineLayout layout{.layers = {0}};
  const std::string_view inside = std::string_view(*all).substr(1, all->size() - 2);
  for (const char letter : inside) {
    if (letter == '|' && layout.mtp_modules == 0) {
      layout.layers.push_back(0);
    } else if (letter == 't' && layout.mtp_modules == 0) {
      ++layout.layers.back();
    } else if (letter == 'm') {
      ++layout.mtp_modules;
    } else {
      return std::nullopt;
    }
  }
  return layout;
}

std::string pipeline_layout_text(const PipelineLayout& layout) {
  const auto& layers = layout.layers;
  std::string text = "E";
  const auto end = layers.end() - 1;  // the last chunk ends in no bar
  for (auto first = layers.begin(); first != end;) {
    // The embedding is in no run of equal chunks.
    const auto next = first == layers.begin()
                          ? first + 1
                          : std::find_if(first, end, [&](auto size) { return size != *first; });
    text += repeated(letters('t', *first), next - first);
    first = next;
  }
  return text + letters('t', *end) + letters('m', layout.mtp_modules) + "L";
}

}  // namespace zeroplan
