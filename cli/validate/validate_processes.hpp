#pragma once
// zeroplan validate with processes of the host as ranks.

#include "cli/commands.hpp"
#include "cli/validate/backend.hpp"
#include "cli/validate/validate_request.hpp"
#include "validator/launch/launch.hpp"

namespace zeroplan {

/// Starts this program again as each of the ranks, and waits for them. Throws InputError where the
/// plan shrinks to other ranks, and EnvironmentError as spawn_ranks.
ExitCode spawn_validation(const ValidateRequest& request);

/// Is one of the ranks that a launcher started. Rank 0 answers. Throws EnvironmentError with the
/// rank and what happened to it.
ExitCode join_validation(ValidateRequest request,
                         const Launch& launch,
                         const ChosenBackend& chosen,
                         const OutputOptions& output);

/// The words of this program's command line, without its name.
std::vector<std::string> typed_words();

}  // namespace zeroplan
