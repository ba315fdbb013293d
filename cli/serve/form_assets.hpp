#pragma once
// Private to serve: style and script of the form.

#include <string_view>

namespace zeroplan {

/// Beside the page's own style, whose colors it takes.
std::string_view form_style();

/// Keeps the questions of this visitor in the browser (localStorage), lists them to ask again, and
/// lays two beside each other. Nothing else is missing without it.
std::string_view form_script();

}  // namespace zeroplan
