#pragma once
// Numbers as people type them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cost_model/question/units.hpp"

namespace zeroplan {

/// A whole number from `least` to `largest`. Throws InputError naming the option.
std::int64_t read_whole(std::string_view flag,
                        std::string_view text,
                        std::int64_t least,
                        std::int64_t largest);

/// Tokens of a sample, a whole number from `least` to `largest`, which may be typed 8k or 1M: 1024
/// and 1024 x 1024 of them. Throws InputError naming the option.
std::int64_t read_length(std::string_view flag,
                         std::string_view text,
                         std::int64_t least,
                         std::int64_t largest);

/// Tokens in thousands and on: "4M tokens", 15T, 300e9; `tokens` may be left out. Empty when the
/// text is not of that form, or a number alone.
std::optional<double> parse_tokens(std::string_view text);

/// A size with its unit, B to TiB, whatever the case. Throws InputError naming the option.
Bytes read_size(std::string_view flag, std::string_view text);

/// A size, or a share of `whole`: 90%. Throws InputError naming the option.
Bytes read_size_or_share(std::string_view flag, std::string_view text, Bytes whole);

/// Per cent from 0 to 100, with its sign or without, as a part of 1. Throws InputError naming the
/// option.
double read_percent(std::string_view flag, std::string_view text);

/// "7.5B", "128b", "1T" as a number of parameters; empty when the text is not of that form.
std::optional<std::int64_t> parse_parameter_count(std::string_view text);

}  // namespace zeroplan
