#pragma once
// Answers questions over HTTP, within bounds: of a request's size and time, of connections, and of
// questions that wait.

#include <cstdint>
#include <functional>

#include "cli/request/arguments.hpp"

namespace zeroplan {

/// Answers until SIGINT or SIGTERM. Only GET and HEAD are taken, requests of 16 KiB at most, whole
/// within five seconds; 64 connections at once, beyond which one is closed unanswered; one question
/// is worked on at a time, 32 wait, and the next is told 503. While `host` is loopback, only
/// requests that name it are answered, so that no page of another site can ask. `ready` is told the
/// port once it listens. Throws InputError where `host` is no address, std::runtime_error where the
/// port cannot be had.
void serve(const ServeArguments& arguments, const std::function<void(std::int64_t)>& ready);

}  // namespace zeroplan
