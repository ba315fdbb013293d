// How does text stay text? Front doors: html_text, markdown_text.
#include "cli/page/html.hpp"

#include <algorithm>

namespace zeroplan {

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\t':
      case '\n':
        out += c;
        break;
      default: {
        const auto code = static_cast<unsigned char>(c);
        out += code < 0x20 || code == 0x7f ? std::string("\ufffd") : std::string(1, c);
      }
    }
  }
  return out;
}

std::string markdown_text(std::string_view text) {
  constexpr std::string_view special = "\\`*_[]|~#";
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (code < 0x20 || code == 0x7f) {
      out += ' ';
    } else {
      if (special.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string end = text.ends_with('\n') ? "" : "\n";
  return fence + "\n" + std::string(text) + end + fence + "\n";
}

std::string json_in_html(std::string json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace zeroplan
