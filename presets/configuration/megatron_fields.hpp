#pragma once
// Private to presets: fields of Megatron-Core while they become Megatron-LM's arguments.

#include <string>
#include <string_view>
#include <vector>

#include "presets/configuration/entries.hpp"

namespace zeroplan {

class MegatronFields {
 public:
  explicit MegatronFields(Entries& entries) : entries_(entries) {}

  /// Throws InputError where the argument has another value.
  void put(std::string_view argument, ConfigValue value);
  /// What the base of a recipe would say is not so.
  void deny(std::string_view argument) { denied_.emplace_back(argument); }
  void put_or_deny(std::string_view flag, bool on);
  bool has(std::string_view argument) const;
  /// Whether the file says it, or that it is not so.
  bool decided(std::string_view argument) const;
  std::vector<Entry> take() { return std::move(list_); }

 private:
  Entries& entries_;
  std::vector<Entry> list_;
  std::vector<std::string> denied_;
};

/// What `mixed_precision` says: the name of a recipe, fields of MixedPrecisionConfig, or both; of
/// NeMo's YAML `trainer.precision`. Throws InputError for a recipe that is not known. Source:
/// Megatron-Bridge @067f987df training/mixed_precision.py.
void read_precision(Entries& entries,
                    bool base,
                    MegatronFields& out,
                    std::vector<std::string>& notes);

/// The arguments that say a precision as the keywords of MixedPrecisionConfig.
std::vector<std::string> precision_keywords(const std::vector<Entry>& arguments);

}  // namespace zeroplan
