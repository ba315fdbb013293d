#pragma once
// The answer on its way out.

#include <string_view>

#include "cli/request/arguments.hpp"

namespace zeroplan {

/// Writes all of `text` to standard output. Throws std::system_error where that does not take it:
/// a full disk, a closed pipe.
void write_answer(std::string_view text);

/// Writes text for people to standard output as write_answer does: on a terminal, within its width.
void write_text(std::string_view text);

/// The answer in the form that was asked for; only that one is made.
template <class Json, class Csv, class Text>
void write_in_form(const OutputOptions& output,
                   const Json& json,
                   const Csv& csv,
                   const Text& text) {
  switch (output.form()) {
    case Output::json:
      return write_answer(json());
    case Output::csv:
      return write_answer(csv());
    case Output::text:
      return write_text(text());
  }
}

/// Whether the answer is colored: as asked, else on a terminal where NO_COLOR does not forbid it.
bool wants_color(const OutputOptions& output);

}  // namespace zeroplan
