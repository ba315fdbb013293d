// What is to be validated, and where? Front door: read_validation.
#include "cli/validate/validate_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/out/answer.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/quantity.hpp"
#include "cli/request/read_request.hpp"
#include "cost_model/legality/legality.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

using engine::Shrunk;

// A plan says its own runtime.
LayoutArguments question(const LayoutArguments& typed) {
  std::vector<std::string> notes;
  LayoutArguments arguments = with_plan(typed, notes);
  if (!arguments.runtime) arguments.runtime = name_of(Runtime::zeroplan);
  return arguments;
}

// What of the plan the engine can execute.
Shrunk executable(const Problem& plan) {
  Shrunk full = engine::for_engine(plan);
  if (const auto violation = first_violation(full.problem)) {
    throw InputError(fmt::format("validate: {}", violation->reason));
  }
  return full;
}

// --as-rank stage=S
std::int64_t stage_to_count(const std::string& text, const Problem& problem) {
  constexpr std::string_view key = "stage=";
  if (text.rfind(key, 0) != 0) {
    throw InputError(fmt::format("--as-rank {}: must be stage=S", in_quotes(text)));
  }
  return read_whole("--as-rank", text.substr(key.size()), 0, problem.layout.pp - 1);
}

// Ranks can be processes where each has a device of its own, and there are several of them.
void check_spawn(const ValidateRequest& r, const ValidateArguments& a) {
  if (!r.spawn) return;
  if (a.as_rank) throw InputError("--spawn: --as-rank is one rank alone, in this process");
  if (r.backend == Backend::loopback) {
    throw InputError("--spawn: --backend loopback has its ranks in one process; host or nccl");
  }
  if (r.ranks && *r.ranks != *r.spawn) {
    throw InputError(fmt::format("--ranks {}: --spawn starts {}", *r.ranks, *r.spawn));
  }
}

// Asking for it is asking for NCCL.
void read_share_gpus(ValidateRequest& r, const ValidateArguments& a) {
  if (!a.share_gpus) return;
  if (a.as_rank) throw InputError("--share-gpus: --as-rank is one rank alone, in this process");
  if (r.backend.value_or(Backend::nccl) != Backend::nccl) {
    throw InputError(
        fmt::format("--share-gpus: with --backend {} no rank has a GPU of its own; nccl would do",
                    name_of(*r.backend)));
  }
  r.backend = Backend::nccl;
  r.share_gpus = true;
}

engine::RunOptions read_options(const ValidateArguments& a) {
  constexpr std::int64_t most_steps = 1'000'000;
  constexpr std::int64_t longest = 86'400;  // a day
  engine::RunOptions options;
  if (a.steps) options.steps = read_whole("--steps", *a.steps, 1, most_steps);
  if (a.timeout) {
    options.patience = std::chrono::seconds(read_whole("--timeout", *a.timeout, 1, longest));
  }
  if (a.max_memory) options.capacity = read_size("--max-memory", *a.max_memory);
  return options;
}

}  // namespace

std::optional<Backend> read_backend(const std::optional<std::string>& asked) {
  if (!asked) return std::nullopt;
  const auto& known = names<Backend>();
  const auto found = std::find(known.begin(), known.end(), *asked);
  if (found != known.end()) return static_cast<Backend>(found - known.begin());
  const std::vector<std::string> all(known.begin(), known.end());
  throw InputError(fmt::format("--backend {}: must be one of host, loopback, nccl; nearest is {}",
                               in_quotes(*asked), nearest(*asked, all)));
}

ValidateRequest read_validation(const ValidateArguments& arguments) {
  constexpr std::int64_t most_ranks = 64;  // threads of this process
  ValidateRequest request{.backend = read_backend(arguments.backend)};
  if (arguments.ranks) request.ranks = read_whole("--ranks", *arguments.ranks, 1, most_ranks);
  if (arguments.spawn) request.spawn = read_whole("--spawn", *arguments.spawn, 1, most_ranks);
  check_spawn(request, arguments);
  read_share_gpus(request, arguments);
  request.options = read_options(arguments);
  request.full = executable(answer_of(question(arguments.layout)).problem);
  if (arguments.as_rank) {
    request.stage = stage_to_count(*arguments.as_rank, request.full.problem);
  }
  return request;
}

}  // namespace zeroplan
