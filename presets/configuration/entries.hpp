#pragma once
// Private to presets: a configuration file as keys and values, whatever it is written in. Keys of
// nested objects are joined by dots: zero_optimization.stage.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

using ConfigValue = nlohmann::ordered_json;  // a plain value, or a list; null: a flag

struct Entry {
  std::string key;
  ConfigValue value;
};

/// The entries of a file while they are read: what nobody takes is left over.
class Entries {
 public:
  /// `where`: the file, which opens every complaint.
  Entries(std::vector<Entry> list, std::string_view where)
      : list_(std::move(list)), where_(where) {}

  const std::vector<Entry>& list() const { return list_; }
  const std::string& where() const { return where_; }
  bool has(std::string_view key) const;
  /// The value as `take` gives it, left where it is.
  std::optional<std::string> text(std::string_view key) const;
  /// Whether there is such a flag; it counts as taken.
  bool take_flag(std::string_view key);
  /// The value as text, "true" and "false" for booleans, lists joined by commas. It counts as
  /// taken.
  std::optional<std::string> take(std::string_view key);
  /// The value as `take` gives it where the text is what a mapping knows; else it stays.
  std::optional<std::string> take_if(std::string_view key,
                                     std::initializer_list<std::string_view> known);
  /// Adds an entry, as if the file said it.
  void put(std::string_view key, ConfigValue value) {
    list_.push_back({std::string(key), std::move(value)});
  }
  /// The value as a number of things, left where it is. Throws InputError unless it is a whole
  /// number from 1.
  std::optional<std::int64_t> count(std::string_view key) const;
  /// The value as `count` gives it; it counts as taken.
  std::optional<std::int64_t> take_count(std::string_view key);
  /// "key value" of what was not taken and may change memory or time.
  std::vector<std::string> left_over() const;
  /// The keys of what was not taken and changes neither memory nor time.
  std::vector<std::string> immaterial() const;
  /// Takes all entries with these keys; gives the keys that there were.
  std::vector<std::string> take_all(std::initializer_list<std::string_view> keys);

  /// Whether any key that was asked for is there.
  bool any_known() const { return any_known_; }

  /// Throws InputError: "<where>: <complaint>".
  [[noreturn]] void fail(std::string_view complaint) const;

 private:
  const Entry* find(std::string_view key) const;
  std::vector<Entry> list_;
  std::string where_;
  mutable bool any_known_ = false;
};

/// Whether this key is of data, rates, logs or checkpoints, or at a value that is taken for given.
bool changes_nothing(std::string_view key, std::string_view value);

/// A text as a whole number; empty where it is anything else.
std::optional<std::int64_t> whole(const std::optional<std::string>& text);

/// One argument with its values a line, or several: --flag value value. '#' begins a comment.
std::vector<Entry> read_arguments(std::string_view text, std::string_view where);
std::string write_arguments(const std::vector<Entry>& entries);

/// TOML: tables of plain values and lists of them.
std::vector<Entry> read_toml(std::string_view text, std::string_view where);
std::string write_toml(const std::vector<Entry>& entries);

/// YAML: mappings of plain values and lists of them, nested by indentation; of a list of mappings
/// the keys have its number: data_stages.0.name. What is null is left out.
std::vector<Entry> read_yaml(std::string_view text, std::string_view where);
std::string write_yaml(const std::vector<Entry>& entries);

struct PythonConfiguration {
  std::vector<Entry> entries;
  std::string base;  // the function whose configuration the entries change; empty: there is none
  std::vector<std::string> none = {};  // keys that are None
};

/// What a Python configuration writes: keywords of nested calls,
/// training=TrainingConfig(seq_len=8192) as training.seq_len, and assignments, cfg.model.seq_length
/// = 8192 as model.seq_length. Nothing is run: what stands under a condition, and several
/// configurations in a file, are refused.
PythonConfiguration read_python(std::string_view text, std::string_view where);
/// A value as Python writes it.
std::string python_value(const ConfigValue& value);
/// Whether the text imports or defines.
bool looks_like_python(std::string_view text);

/// JSON out of hjson as DeepSpeed reads it (runtime/config.py): comments (#, //, /* */) and
/// trailing commas made blanks, so that lines and columns stay.
std::string without_comments(std::string_view text);

/// JSON: an object of objects.
std::vector<Entry> read_json(std::string_view text, std::string_view where);
std::string write_json(const std::vector<Entry>& entries);

}  // namespace zeroplan
