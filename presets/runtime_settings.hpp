#pragma once
// Private to presets: the settings of each runtime, and where the value of each goes.

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "cost_model/question/runtime_settings.hpp"

namespace zeroplan {

// The kinds of value a setting takes.
struct Count {
  std::int64_t& (*place)(RuntimeSpec&);
  std::int64_t least = 0;
  std::int64_t most = 1'000'000'000'000;  // no sum of bytes overflows below
};
struct Flag {
  bool& (*place)(RuntimeSpec&);
};
struct FormatBytes {  // fp32: 4, bf16 and fp16: 2
  std::int64_t& (*place)(RuntimeSpec&);
};
struct IsFp32 {
  bool& (*place)(RuntimeSpec&);
};
struct Rate {  // a dropout probability
  double& (*place)(RuntimeSpec&);
};
struct Words {  // takes the text, or refuses it; says it again
  bool (*take)(RuntimeSpec&, std::string_view);
  std::string (*say)(const RuntimeSpec&);
  std::string_view allowed;
};

struct RuntimeSetting {
  Runtime runtime;
  std::string_view key;
  std::variant<Count, Flag, FormatBytes, IsFp32, Rate, Words> target;
};

/// Every setting, by runtime.
std::span<const RuntimeSetting> runtime_settings();

}  // namespace zeroplan
