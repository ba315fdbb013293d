#pragma once
// Text that a shell reads back as it is.

#include <string>
#include <string_view>

namespace zeroplan {

/// `text` as a shell takes it for one word: in quotes where it needs them.
std::string shell_word(std::string_view text);

}  // namespace zeroplan
