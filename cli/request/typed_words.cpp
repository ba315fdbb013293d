// What does the parser read? Front door: typed_words.
#include "cli/request/typed_words.hpp"

namespace zeroplan {

std::vector<std::string> typed_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  bool after_set = false;  // its first value has come
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool option = word.rfind('-', 0) == 0;
    const bool setting = !option && word.find('=') != std::string::npos;
    const bool first = !words.empty() && words.back() == "--set";
    if (after_set && setting) words.emplace_back("--set");
    after_set = !option && (first || (after_set && setting));
    words.push_back(word);
  }
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.resize(words.empty() ? 0 : 1);
  words.emplace_back("--help");
  return words;
}

}  // namespace zeroplan
