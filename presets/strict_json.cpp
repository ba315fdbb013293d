// Does the JSON say what it must? Front door: parse_json, then JsonObject.
#include "presets/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr int deepest_nesting = 64;  // configurations use 4; a bound keeps hostile input cheap

/// What the JSON library does not refuse by itself: keys given twice and bottomless nesting.
class StrictRules {
 public:
  explicit StrictRules(std::string_view where) : where_(where) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= deepest_nesting) {
        throw InputError(fmt::format("{}: nested deeper than {} levels", where_, deepest_nesting));
      }
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw InputError(
          fmt::format("{}: key {} is given twice", where_, in_quotes(parsed.get<std::string>())));
    }
    return true;
  }

 private:
  std::string_view where_;
  std::vector<std::set<std::string>> keys_;  // of the objects still open, outermost first
};

std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n');
  const std::size_t column = before.size() - (line_start == before.npos ? 0 : line_start + 1);
  return fmt::format("line {}, column {}", lines + 1, column + 1);
}

std::string cut(std::string text, std::size_t length) {
  for (char& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code > 0x7e) c = '?';
  }
  if (text.size() > length) text = text.substr(0, length) + "...";
  return text;
}

/// The library's words after its own "[...] parse error at line 1, column 2: ".
std::string reason_of(const json::parse_error& error) {
  const std::string_view text = error.what();
  const std::size_t colon = text.find(": ");
  return cut(std::string(colon == text.npos ? text : text.substr(colon + 2)), 160);
}

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return cut(value.dump(), 60);
}

}  // namespace

json parse_json(std::string_view text, std::string_view where) {
  try {
    return json::parse(text.begin(), text.end(), StrictRules(where));
  } catch (const json::parse_error& error) {
    throw InputError(
        fmt::format("{}: {}: not JSON: {}", where, place_of(text, error.byte), reason_of(error)));
  } catch (const json::exception&) {  // the only other failure of parsing
    throw InputError(fmt::format("{}: a number is too large for any computer number", where));
  }
}

JsonObject::JsonObject(const json& value, std::string where)
    : value_(&value), where_(std::move(where)) {
  if (!value.is_object()) fail(fmt::format("expected a JSON object, found {}", shown(value)));
}

void JsonObject::fail(std::string_view complaint) const {
  throw InputError(fmt::format("{}: {}", where_, complaint));
}

void JsonObject::fail_type(std::string_view key,
                           std::string_view expected,
                           const json& found) const {
  fail(fmt::format("'{}' must be {}, found {}", key, expected, shown(found)));
}

const json* JsonObject::find(std::string_view key) const {
  const auto entry = value_->find(key);
  return entry == value_->end() || entry->is_null() ? nullptr : &*entry;
}

bool JsonObject::has(std::string_view key) const {
  return find(key) != nullptr;
}

std::optional<std::string_view> JsonObject::first_of(std::span<const std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (has(key)) return key;
  }
  return std::nullopt;
}

std::optional<std::int64_t> JsonObject::find_integer(std::string_view key, Range allowed) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  // An unsigned value above the signed maximum would wrap when read as signed.
  const bool integral = found->is_number_integer() &&
                        (!found->is_number_unsigned() ||
                         found->get<std::uint64_t>() <= static_cast<std::uint64_t>(allowed.most));
  const std::int64_t value = integral ? found->get<std::int64_t>() : 0;
  if (!integral || value < allowed.least || value > allowed.most) {
    fail_type(key, fmt::format("an integer from {} to {}", allowed.least, allowed.most), *found);
  }
  return value;
}

std::optional<double> JsonObject::find_number(std::string_view key, double least) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number() || found->get<double>() < least) {
    fail_type(key, fmt::format("a number of at least {}", least), *found);
  }
  return found->get<double>();
}

std::optional<bool> JsonObject::find_boolean(std::string_view key) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) fail_type(key, "true or false", *found);
  return found->get<bool>();
}

std::optional<std::string> JsonObject::find_string(std::string_view key) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) fail_type(key, "a string", *found);
  return found->get<std::string>();
}

namespace {

template <class Value>
Value required(std::optional<Value> value, const JsonObject& object, std::string_view key) {
  if (!value) object.fail(fmt::format("'{}' is missing", key));
  return *std::move(value);
}

}  // namespace

std::int64_t JsonObject::integer(std::string_view key, Range allowed) const {
  return required(find_integer(key, allowed), *this, key);
}

double JsonObject::number(std::string_view key, double least) const {
  return required(find_number(key, least), *this, key);
}

bool JsonObject::boolean(std::string_view key) const {
  return required(find_boolean(key), *this, key);
}

std::string JsonObject::string(std::string_view key) const {
  return required(find_string(key), *this, key);
}

JsonObject JsonObject::object(std::string_view key) const {
  const json* found = find(key);
  if (found == nullptr) fail(fmt::format("'{}' is missing", key));
  if (!found->is_object()) fail_type(key, "an object", *found);
  return {*found, fmt::format("{}: {}", where_, key)};
}

std::vector<std::string> JsonObject::strings(std::string_view key) const {
  const json* found = find(key);
  if (found == nullptr) return {};
  if (!found->is_array()) fail_type(key, "a list of strings", *found);
  std::vector<std::string> out;
  for (const json& item : *found) {
    if (!item.is_string()) fail_type(key, "a list of strings", item);
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<std::int64_t> JsonObject::integers(std::string_view key, Range allowed) const {
  const json* found = find(key);
  if (found == nullptr) return {};
  if (!found->is_array()) fail_type(key, "a list of integers", *found);
  std::vector<std::int64_t> out;
  for (const json& item : *found) {
    const json holder = {{"item", item}};
    out.push_back(JsonObject(holder, fmt::format("{}: {}", where_, key)).integer("item", allowed));
  }
  return out;
}

void JsonObject::allow_only(std::initializer_list<std::string_view> keys) const {
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fail(fmt::format("unknown key {}, nearest is '{}'", in_quotes(key), nearest(key, known)));
  }
}

}  // namespace zeroplan
