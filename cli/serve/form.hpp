#pragma once
// Private to serve: the options as a form, with what was typed in it.

#include "cli/page/page.hpp"
#include "cli/serve/question.hpp"

namespace zeroplan {

/// What a page has besides, where it is served: the form, the history of the visitor's own plans,
/// which stays in the browser, and their styles and script.
PageControls live_form(const Parameters& typed, const std::string& error);

}  // namespace zeroplan
