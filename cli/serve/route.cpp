// What does a request get? Front door: reply_to.
#include "cli/serve/route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/serve/reply.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view html = "text/html; charset=utf-8";
constexpr std::string_view json = "application/json; charset=utf-8";
constexpr std::string_view plain = "text/plain; charset=utf-8";

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == '+' ? ' ' : text[i];
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) throw InputError("the query has a malformed escape");
      c = static_cast<char>(16 * high + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < ' ') throw InputError("the query has a control character");
    out += c;
  }
  return out;
}

HttpReply failed(bool document, int status, const Parameters& parameters, const std::string& why) {
  if (!document) return {status, std::string(html), form_reply(parameters, why)};
  const nlohmann::json error{{"error", why}};
  return {status, std::string(json),
          error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace

Parameters parameters_of(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const std::size_t sign = std::min(one.find('='), one.size());
    if (sign == 0) continue;
    parameters.emplace_back(without_escapes(one.substr(0, sign)),
                            without_escapes(one.substr(std::min(sign + 1, one.size()))));
  }
  return parameters;
}

bool names_this_machine(std::string_view host, std::string_view own) {
  for (const std::string_view name : {std::string_view("localhost"), std::string_view("127.0.0.1"),
                                      std::string_view("[::1]"), own}) {
    if (!host.starts_with(name)) continue;
    const std::string_view port = host.substr(name.size());
    if (port.empty()) return true;
    return port.front() == ':' && port.size() <= 6 &&
           std::all_of(port.begin() + 1, port.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

HttpReply refusal(int status, std::string_view why) {
  return {status, std::string(plain), std::string(why) + "\n"};
}

HttpReply reply_to(std::string_view target, const std::function<bool()>& goes_on) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, mark);
  if (!path.starts_with('/')) return refusal(400, "the target is no path");
  path.remove_prefix(1);
  const bool document = path.ends_with(".json");
  if (document) path.remove_suffix(5);
  const std::string command(path);
  if (!command.empty() || document) {
    if (std::ranges::find(served_commands(), command) == served_commands().end()) {
      return refusal(404,
                     "there are /, /fit, /sweep and /compare, and /fit.json, /sweep.json, "
                     "/compare.json, /explain.json");
    }
  }
  Parameters parameters;
  try {
    parameters = parameters_of(target.substr(std::min(mark + 1, target.size())));
    if (command.empty()) return {200, std::string(html), form_reply(parameters)};
    if (document) return {200, std::string(json), json_reply(command, parameters, goes_on)};
    return {200, std::string(html), page_reply(command, parameters, goes_on)};
  } catch (const InputError& error) {
    return failed(document, 400, parameters, error.what());
  } catch (const std::exception& error) {
    return failed(document, 503, parameters, error.what());
  }
}

}  // namespace zeroplan
