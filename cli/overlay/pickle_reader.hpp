#pragma once
// Python's pickle format as far as plain data needs it. Nothing that a file asks for is run.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// A value of a pickle: one that holds others is a place in its Pickle.
struct PickleValue {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dictionary };
  Kind kind = Kind::none;
  std::uint32_t size = 0;   // of a text
  std::int64_t number = 0;  // boolean, integer; where a text begins; which list or dictionary
  double real = 0;
};

class Pickle {
 public:
  /// Reads protocols 2 to 5 with none, booleans, integers, numbers, texts, lists, tuples and
  /// dictionaries. Throws InputError, opened by `where`, for anything else: an opcode that would
  /// import or call, a file that is cut off, more than 50 million values.
  /// Source: CPython Lib/pickletools.py.
  Pickle(std::string bytes, std::string_view where);

  const PickleValue& root() const { return root_; }
  std::string_view text(const PickleValue& value) const;
  /// The items of a list or tuple; of a dictionary its keys, each followed by its value.
  const std::vector<PickleValue>& items(const PickleValue& value) const;
  /// The value of a key of a dictionary; null where it is none or has none such.
  const PickleValue* find(const PickleValue& dictionary, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::string bytes_;
  std::vector<std::vector<PickleValue>> containers_;
  PickleValue root_;
};

}  // namespace zeroplan
