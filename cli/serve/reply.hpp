#pragma once
// The answer to a request: the document of --json, or the page of --html with the form above it.

#include <functional>
#include <string>

#include "cli/serve/question.hpp"

namespace zeroplan {

/// As the command prints it with --json. A search ends after 20 seconds, or when `goes_on` says so,
/// with the best so far. Throws InputError where the question cannot be used, and
/// std::runtime_error where nothing was found by then.
std::string json_reply(const std::string& command,
                       const Parameters& parameters,
                       const std::function<bool()>& goes_on);

/// A whole page; of fit, sweep and compare. Ends and throws likewise.
std::string page_reply(const std::string& command,
                       const Parameters& parameters,
                       const std::function<bool()>& goes_on);

/// The form alone, with what was typed in it, under one line that says what was wrong, if anything.
std::string form_reply(const Parameters& parameters, const std::string& error = "");

}  // namespace zeroplan
