// Where does a line end? Front doors: letters, folded.
#include "cli/out/fold.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

constexpr std::size_t after_indent = 2;

// Where the second column begins: what follows the first gap. Late in the line, it is no column to
// go on under.
std::size_t hanging(std::string_view line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t usual = indent + after_indent;
  const std::size_t gap = line.find("  ", indent);
  if (gap == std::string_view::npos) return usual;
  const std::size_t second = letters(line.substr(0, line.find_first_not_of(' ', gap)));
  return second <= width * 3 / 5 ? second : usual;
}

std::string folded_line(std::string_view line, std::size_t width) {
  if (letters(line) <= width) return std::string(line);
  const std::size_t hang = hanging(line, width);
  std::string out;
  std::size_t column = 0;
  bool empty = true;  // nothing but the indentation yet
  while (!line.empty()) {
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    std::size_t end = std::min(line.find(' ', spaces), line.size());
    if (line.substr(spaces, end - spaces) == "=") {  // begins what it says
      end = std::min(line.find(' ', end + 1), line.size());
    }
    const std::string_view word = line.substr(spaces, end - spaces);
    const std::size_t long_ = letters(word);
    if (!empty && column + spaces + long_ > width) {
      out += "\n" + std::string(hang, ' ');
      column = hang;
    } else {
      out.append(spaces, ' ');
      column += spaces;
    }
    out += word;
    column += long_;
    empty = false;
    line.remove_prefix(end);
  }
  return out;
}

}  // namespace

std::size_t letters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {  // up to the letter that ends the code
      while (i + 1 < text.size() &&
             !((text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= 'a' && text[i] <= 'z'))) {
        ++i;
      }
    } else {
      count += (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U ? 1 : 0;
    }
  }
  return count;
}

std::string folded(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += folded_line(text.substr(0, end), width);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace zeroplan
