#pragma once
// What people type for what zeroplan calls otherwise.

#include <string>
#include <string_view>

namespace zeroplan {

/// A choice of this option as zeroplan spells it: in lower case, other programs' words put into its
/// own. What is not known comes back in lower case. Throws InputError for a word that means
/// several.
std::string usual_word(std::string_view flag, std::string_view typed);

/// What to say where a command has no such option: "; it is --tp here". Empty where nothing is
/// meant by it that is known.
std::string option_meant(std::string_view typed);

/// COUNTxGPU however it is written: 8xH100-80G, 8 x H100, H100x8, H100. Empty where there is none.
struct GpuText {
  std::string count;
  std::string gpu;
};
GpuText read_gpu_text(std::string_view typed);

}  // namespace zeroplan
