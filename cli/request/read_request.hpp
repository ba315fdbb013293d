#pragma once
// From what was typed to what was meant.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/request/arguments.hpp"
#include "cli/request/words.hpp"
#include "planner/request.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

/// What the options of a search mean; the request is that of the layout options.
SweepQuestion read_question(const SweepArguments& arguments, std::vector<std::string>& notes);

/// Looks up names, reads files, takes apart a plan and checks every value. What a file left open is
/// appended to `notes`. Throws InputError naming the option.
Request read_request(const LayoutArguments& arguments, std::vector<std::string>& notes);

/// The part of the fastest layout's time by which a simpler one may be slower. Throws InputError.
double read_tie(const LayoutArguments& arguments);

/// Zero where they were not given. Throws InputError.
std::size_t read_threads(const SweepArguments& arguments);

/// Says which names an option has, and which is nearest.
[[noreturn]] void refuse_choice(std::string_view flag,
                                std::string_view text,
                                std::span<const std::string_view> allowed);

/// The choice of this name, or of a word for it; empty where none was made. Throws InputError
/// naming the option.
template <class Enum>
std::optional<Enum> read_choice(std::string_view flag, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  if (const auto value = parse_name<Enum>(usual_word(flag, *text))) return value;
  refuse_choice(flag, *text, names<Enum>());
}

/// A model of which only the size is known, for textbook arithmetic: all parameters in one tensor.
ModelSpec model_of_size(std::string_view name, std::int64_t parameters);

}  // namespace zeroplan
