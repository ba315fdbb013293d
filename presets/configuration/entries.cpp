// What does a configuration file say, key by key? Front door: Entries.
#include "presets/configuration/entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::string text_of(const ConfigValue& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const ConfigValue& item : value) text += (text.empty() ? "" : ",") + text_of(item);
  return text;
}

}  // namespace

const Entry* Entries::find(std::string_view key) const {
  const auto found = std::find_if(list_.begin(), list_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  any_known_ |= found != list_.end();
  return found == list_.end() ? nullptr : &*found;
}

bool Entries::has(std::string_view key) const {
  return find(key) != nullptr;
}

std::optional<std::string> Entries::text(std::string_view key) const {
  const Entry* entry = find(key);
  return entry == nullptr ? std::nullopt : std::optional(text_of(entry->value));
}

bool Entries::take_flag(std::string_view key) {
  const std::size_t before = list_.size();
  std::erase_if(list_, [&](const Entry& entry) { return entry.key == key; });
  any_known_ |= list_.size() < before;
  return list_.size() < before;
}

std::optional<std::string> Entries::take(std::string_view key) {
  std::optional<std::string> value = text(key);
  take_flag(key);
  return value;
}

std::optional<std::string> Entries::take_if(std::string_view key,
                                            std::initializer_list<std::string_view> known) {
  const std::optional<std::string> value = text(key);
  if (!value || std::find(known.begin(), known.end(), *value) == known.end()) return std::nullopt;
  return take(key);
}

std::optional<std::int64_t> Entries::count(std::string_view key) const {
  const std::optional<std::string> value = text(key);
  if (!value) return std::nullopt;
  const std::optional<std::int64_t> number = whole(value);
  if (number.value_or(0) >= 1) return number;
  fail(fmt::format("{} {}: must be a whole number from 1", key, in_quotes(*value)));
}

std::optional<std::int64_t> Entries::take_count(std::string_view key) {
  const std::optional<std::int64_t> number = count(key);
  take_flag(key);
  return number;
}

void Entries::fail(std::string_view complaint) const {
  throw InputError(fmt::format("{}: {}", where_, complaint));
}

std::vector<std::string> Entries::left_over() const {
  std::vector<std::string> list;
  for (const Entry& entry : list_) {
    const std::string value = text_of(entry.value);
    if (changes_nothing(entry.key, value)) continue;
    const std::string key = printable(entry.key);
    list.push_back(value.empty() ? key : key + " " + in_quotes(value));
  }
  return list;
}

std::vector<std::string> Entries::immaterial() const {
  std::vector<std::string> list;
  for (const Entry& entry : list_) {
    if (changes_nothing(entry.key, text_of(entry.value))) list.push_back(printable(entry.key));
  }
  return list;
}

std::vector<std::string> Entries::take_all(std::initializer_list<std::string_view> keys) {
  std::vector<std::string> there;
  for (const std::string_view key : keys) {
    if (take_flag(key)) there.emplace_back(key);
  }
  return there;
}

std::optional<std::int64_t> whole(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

}  // namespace zeroplan
