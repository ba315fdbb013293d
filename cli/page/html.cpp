// How does text stay text? Front doors: html_text, html_prose, html_command, markdown_text.
#include "cli/page/html.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Letters of the option that the text begins with (--micro-batch); 0 where there is none.
std::size_t flag_size(std::string_view text) {
  if (text.size() < 3 || !text.starts_with("--") || text[2] < 'a' || text[2] > 'z') return 0;
  const auto end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  return std::min(end, text.size());
}

bool is_unit(std::string_view text) {
  constexpr std::string_view units[] = {"%", "GiB", "s", "ms", "\u00b5s"};
  return std::ranges::any_of(units, [&](std::string_view unit) {
    if (!text.starts_with(unit)) return false;
    const std::string_view next = text.substr(unit.size());
    return next.empty() || std::string_view(" ,.:;)").find(next.front()) != std::string_view::npos;
  });
}

}  // namespace

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

std::string html_prose(std::string_view text) {
  constexpr std::string_view kept = "\u00a0";
  constexpr std::string_view cross = "\u00d7";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool starts = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(';
    if (const std::size_t flag = starts ? flag_size(rest) : 0; flag > 0) {
      out += "<span class=\"flag\">" + std::string(rest.substr(0, flag)) + "</span>";
      i += flag;
      continue;
    }
    // "99 %" and "1 x 244" stay on one line, but not "dp 4 x tp 4".
    const bool space = i > 0 && text[i] == ' ';
    const bool after_number = space && is_digit(text[i - 1]);
    const bool before_cross = after_number && rest.substr(1).starts_with(cross) &&
                              rest.size() > cross.size() + 2 && is_digit(rest[cross.size() + 2]);
    const bool after_cross =
        space && text.substr(0, i).ends_with(cross) && rest.size() > 1 && is_digit(rest[1]);
    const bool keeps = (after_number && is_unit(rest.substr(1))) || before_cross || after_cross;
    out += keeps ? std::string(kept) : html_text(rest.substr(0, 1));
    ++i;
  }
  return out;
}

std::string html_command(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t next = text.find(" --");
    out += "<span>" + html_text(text.substr(0, next)) + "</span>";
    if (next == std::string_view::npos) break;
    out += ' ';
    text.remove_prefix(next + 1);
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
