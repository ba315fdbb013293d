#pragma once
// JSON read strictly: every complaint says where, what stands there and what is allowed.
// Private to this room: other rooms see specs, never JSON.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// The document. `where` (a path, a preset) opens every message. Throws InputError on invalid JSON
/// (with line and column), a key given twice, nesting deeper than 64, or a number no double can
/// hold.
nlohmann::json parse_json(std::string_view text, std::string_view where);

/// The integers a field may hold.
struct Range {
  std::int64_t least;
  std::int64_t most;
};

/// One JSON object under reading. A key that is null counts as absent. Does not own the document.
class JsonObject {
 public:
  /// Throws InputError unless `value` is an object.
  JsonObject(const nlohmann::json& value, std::string where);

  const std::string& where() const { return where_; }
  const nlohmann::json& value() const { return *value_; }

  bool has(std::string_view key) const;

  /// The first of `keys` that is present; empty when none is.
  std::optional<std::string_view> first_of(std::span<const std::string_view> keys) const;

  // Each throws InputError when the key is absent or holds another type or value than allowed;
  // find_... returns empty for an absent key. 3.7, "12" and true are not integers.
  std::int64_t integer(std::string_view key, Range allowed) const;
  std::optional<std::int64_t> find_integer(std::string_view key, Range allowed) const;
  double number(std::string_view key, double least) const;
  std::optional<double> find_number(std::string_view key, double least) const;
  bool boolean(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::string string(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;
  JsonObject object(std::string_view key) const;

  // Absent: an empty list.
  std::vector<std::string> strings(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key, Range allowed) const;

  /// Throws InputError with the nearest allowed key when the object has any other.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  /// Throws InputError: "<where>: <complaint>".
  [[noreturn]] void fail(std::string_view complaint) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  [[noreturn]] void fail_type(std::string_view key,
                              std::string_view expected,
                              const nlohmann::json& found) const;

  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace zeroplan
