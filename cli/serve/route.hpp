#pragma once
// From what a request names to what it gets.

#include <functional>
#include <string>
#include <string_view>

#include "cli/serve/question.hpp"

namespace zeroplan {

struct HttpReply {
  int status = 200;
  std::string type;
  std::string body;
};

/// `target` is the path with its query, as sent: / is the form; /fit, /sweep and /compare with a
/// question are pages, /fit.json and so on, /explain.json too, documents. 400 says in one line what
/// cannot be used, as the page or as {"error": ...}. `goes_on` is asked while a search runs.
HttpReply reply_to(std::string_view target, const std::function<bool()>& goes_on);

/// A refusal before that.
HttpReply refusal(int status, std::string_view why);

/// The parameters of a query, with escapes undone. Throws InputError where one is malformed.
Parameters parameters_of(std::string_view query);

/// Whether a Host header names this machine's loopback, or `own`, the address that is served.
bool names_this_machine(std::string_view host, std::string_view own);

}  // namespace zeroplan
