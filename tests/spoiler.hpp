#pragma once
// Texts that are nearly right.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace zeroplan::tests {

/// Changes a text at a few places: bytes, words that break readers, pieces of itself, what opens
/// and never ends.
class Spoiler {
 public:
  explicit Spoiler(unsigned seed) : random_(seed) {}

  std::string spoiled(std::string text) {
    for (std::size_t i = 0, times = 1 + at_most(3); i < times && !text.empty(); ++i) once(text);
    return text;
  }

 private:
  std::size_t at_most(std::size_t most) { return random_() % (most + 1); }

  void once(std::string& text) {
    static const std::vector<std::string> words{
        "inf",  "nan",      "-1",     "0",    "1e999", "99999999999999999999",
        "null", "\x1b[31m", "\xff",   "{",    "}",     "[",
        "]",    "\"",       "\n",     ",",    ":",     "=",
        "--",   "$(x)",     "${A",    "auto", "true",  "4294967296",
        "-0.0", "\\u0000",  "\"a\":", "#",    "\t",    "\xe2\x80"};
    const std::size_t at = at_most(text.size() - 1);
    const std::size_t length = std::min(at_most(30), text.size() - at);
    switch (at_most(6)) {
      case 0:
        text[at] = static_cast<char>(1 + at_most(254));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, words[at_most(words.size() - 1)]);
        break;
      case 4: {  // a whole value
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        text.replace(digit, end - digit, words[at_most(words.size() - 1)]);
        break;
      }
      case 5:
        text.insert(at, std::string(at_most(300), "[{\"\x80(\x8d\xff"[at_most(6)]));
        break;
      default:
        text.resize(at);
    }
  }

  std::mt19937 random_;
};

}  // namespace zeroplan::tests
