#pragma once
// Private to the page: its stylesheet and its script.

#include <string_view>

namespace zeroplan {

/// Light, dark, phone, desk and print. Colors of Okabe and Ito (2008), which people with any color
/// vision tell apart; what is drawn is also named, and the verdict has a sign.
std::string_view page_style();

/// Buttons that copy commands; folded tables open to be printed. Without it nothing is missing.
std::string_view page_script();

}  // namespace zeroplan
