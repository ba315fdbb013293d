#pragma once
// A file of a recorded step as MODEL.

#include <string>
#include <string_view>

#include "cli/request/arguments.hpp"
#include "cost_model/question/runtime_settings.hpp"

namespace zeroplan {

/// Puts what was recorded, and the layout that it has, into `typed`. `where` opens messages, and
/// `source` is what was typed. Throws InputError, also where another layout is asked for.
void lay_recorded(LayoutArguments& typed,
                  const std::string& text,
                  std::string_view where,
                  std::string_view source);

/// Throws InputError where this runtime is a record: `command` asks for what only a described
/// program can tell.
void require_described(std::string_view command, const RuntimeSpec& runtime);

/// Throws InputError where the file that MODEL names is a record, before anything else is read of
/// the question: `command` asks for what only a described program can tell.
void require_described(std::string_view command, const LayoutArguments& typed);

}  // namespace zeroplan
