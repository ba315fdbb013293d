#pragma once
// Private to the page: text that HTML and Markdown take as text.

#include <string>
#include <string_view>

namespace zeroplan {

/// `text` with the five signs of HTML written as entities, and control characters other than tab
/// and line feed as U+FFFD: fit for content and for quoted attributes.
std::string html_text(std::string_view text);

/// A sentence as html_text writes it, but a number and its unit, and an option, stay on one line.
std::string html_prose(std::string_view text);

/// A command line as html_text writes it, but an option stays with its value where a line has room
/// for both.
std::string html_command(std::string_view text);

/// `text` as one line of Markdown, with what would be a tag, a cell border, emphasis, code or a
/// link escaped.
std::string markdown_text(std::string_view text);

/// A fenced block whose fence is longer than any run of backticks in it.
std::string markdown_code(std::string_view text);

/// A document for a script element, which no text in it can end.
std::string json_in_html(std::string json);

}  // namespace zeroplan
