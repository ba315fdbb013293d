// Is that true on a GPU? Front door: validate_here.
#include "cli/gpu/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/validate/validate_output.hpp"
#include "cli/validate/validate_request.hpp"
#include "gpu_probe/devices.hpp"
#include "presets/input_error.hpp"
#include "validator/cuda/gpu_validation.hpp"
#include "validator/cuda/meter.hpp"
#include "validator/cuda/nccl_run.hpp"
#include "validator/cuda/run.hpp"
#include "validator/launch/spawn.hpp"

namespace zeroplan {
namespace {

using engine::GpuRun;
using engine::GpuValidation;
using engine::Shrunk;

// What a question to the driver returns; one that hangs ends the program.
template <class Question>
auto asked_in_time(const engine::RunOptions& options, Question question) {
  const Watchdog watchdog = engine::watching(options);
  return question();
}

int gpus_for(const std::optional<Backend>& asked, const engine::RunOptions& options) {
  try {
    return asked_in_time(options, device_count);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("{}here the engine runs on the host alone: {}",
                                       asked ? fmt::format("--backend {}: ", name_of(*asked)) : "",
                                       error.what()));
  }
}

// Half of what is free: what a step needs beside tensors is not known before.
engine::Room room_on(std::int64_t gpu, std::int64_t ranks, const engine::RunOptions& options) {
  constexpr double about_a_second = 2e13;  // of a GPU, in floating-point operations
  return {.ranks = ranks,
          .memory = Bytes{asked_in_time(options, [&] { return engine::free_on(gpu); }).count() / 2},
          .step_flops = about_a_second};
}

// This program, as it was started.
std::vector<std::string> typed_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.front() = std::filesystem::read_symlink("/proc/self/exe");
  return words;
}

// What the first rank has, times the ranks: all must run the same.
Bytes agreed_memory(Bytes of_one, const Launch& launch, Rendezvous& star) {
  Blob blob(sizeof of_one);
  std::memcpy(blob.data(), &of_one, sizeof of_one);
  blob = star.broadcast(std::move(blob));
  std::memcpy(&of_one, blob.data(), sizeof of_one);
  return launch.world * of_one;
}

ExitCode report(const GpuValidation& result,
                const ChosenBackend& chosen,
                const OutputOptions& output,
                Predicted predicted) {
  return write_validation(result.validation,
                          {.backend = name_of(chosen.backend),
                           .reason = chosen.reason,
                           .closings = result.closings,
                           .time = result.validation.time,
                           .predicted = predicted},
                          output);
}

// Every micro-batch beyond those that fill the pipeline needs time and no memory.
Shrunk few_micro_batches(Shrunk full) {
  Problem& p = full.problem;
  const std::int64_t few = std::min(micro_batches(p), 2 * p.layout.pp);
  const std::int64_t batch = few * p.layout.dp * p.layout.micro_batch;
  if (batch != p.training.global_batch) {
    full.changes.push_back(fmt::format("global batch {} -> {}", p.training.global_batch, batch));
    p.training.global_batch = batch;
  }
  return full;
}

ExitCode measure_rank(const ValidateRequest& request,
                      const ChosenBackend& chosen,
                      const OutputOptions& output) {
  const Shrunk full = few_micro_batches(request.full);
  const std::int64_t stage = *request.stage;
  engine::RunOptions options = request.options;
  options.steps = 2;  // the first loads what libraries put off
  if (!output.quiet) {
    options.before_step = [&](std::int64_t, std::int64_t step) {
      fmt::print(stderr, "step {} of {} ...\n", step, options.steps);
    };
  }
  const GpuRun run = engine::run_as_rank(full.problem, {.tp = 0, .dp = 0, .pp = stage}, options);
  const Evaluator evaluator(full.problem);
  const engine::ComparedRank rank =
      engine::compared(full.problem, evaluator, run.report.ranks.front());
  const GpuRun timed = engine::run_as_rank(full.problem, {.tp = 0, .dp = 0, .pp = stage},
                                           engine::timed_where(options, engine::Asked::seconds));
  return write_rank(full, rank,
                    {.backend = "loopback",
                     .reason = chosen.reason,
                     .closings = run.closings,
                     .time = engine::compared_seconds(full.problem, evaluator, timed.report),
                     .predicted = Predicted::products},
                    output);
}

ExitCode share_one_gpu(ValidateRequest request,
                       const ChosenBackend& chosen,
                       const OutputOptions& output) {
  constexpr std::int64_t usual_ranks = 4;
  Shrunk small = engine::shrunk(request.full.problem,
                                room_on(0, request.ranks.value_or(usual_ranks), request.options));
  const GpuValidation result = engine::validate_on_gpus(
      std::move(request.full), std::move(small), [&](const Problem& problem, engine::Asked asked) {
        return engine::run_on_one_gpu(problem, engine::timed_where(request.options, asked));
      });
  return report(result, chosen, output, Predicted::nothing);
}

// One rank alone would agree without a call of NCCL.
void check_several(std::int64_t ranks) {
  if (ranks > 1) return;
  throw EnvironmentError(
      "--backend nccl: one rank alone calls no collective, so nothing would be shown of NCCL; "
      "--backend loopback runs it");
}

// Starts a rank for each GPU of this node, or as many as asked where they may share.
ExitCode spawn(const ValidateRequest& request) {
  constexpr std::chrono::minutes limit{30};
  const std::int64_t gpus = asked_in_time(request.options, device_count);
  const std::int64_t least = request.share_gpus ? 2 : 1;
  const std::int64_t ranks = request.spawn.value_or(request.ranks.value_or(std::max(gpus, least)));
  if (ranks > gpus && !request.share_gpus) {
    throw EnvironmentError(fmt::format(
        "--ranks {}: nccl needs a GPU for each rank, and here are {}; --share-gpus lets them share",
        ranks, gpus));
  }
  check_several(ranks);
  return static_cast<ExitCode>(
      spawn_ranks({.command = typed_command(), .ranks = ranks, .limit = limit}));
}

// One of the ranks that a launcher started: this one, or torchrun, Slurm, Open MPI.
ExitCode use_all_gpus(ValidateRequest request,
                      const Launch& launch,
                      const ChosenBackend& chosen,
                      const OutputOptions& output) {
  if (launch.launcher.empty()) return spawn(request);
  check_several(launch.world);
  const std::int64_t gpus = asked_in_time(request.options, device_count);
  const bool shared = request.share_gpus && launch.local_world > gpus;
  const std::int64_t gpu = shared ? shared_gpu_of(launch, gpus) : gpu_of(launch, gpus);
  if (shared) {
    for (const auto& [name, value] : sharing_variables(launch))
      setenv(name.c_str(), value.c_str(), 1);
  }
  engine::Room room = room_on(gpu, launch.world, request.options);
  if (shared) room.memory = Bytes{room.memory.count() / ceil_div(launch.local_world, gpus)};
  const engine::RunOptions& options = request.options;
  Rendezvous star(launch, options.patience);
  room.memory = agreed_memory(room.memory, launch, star);
  Shrunk small = engine::shrunk(request.full.problem, room);
  const std::int64_t world = world_size(small.problem.layout);
  if (world != launch.world) {
    throw InputError(fmt::format(
        "--backend nccl: the plan shrinks to {} ranks, and {} were started", world, launch.world));
  }
  GpuValidation result = engine::validate_on_gpus(
      std::move(request.full), std::move(small), [&](const Problem& problem, engine::Asked asked) {
        return engine::run_over_nccl(problem, engine::timed_where(options, asked), launch, gpu,
                                     star);
      });
  star.barrier();  // nobody goes while another still needs it
  if (launch.rank > 0) return ExitCode::yes;
  if (!shared) return report(result, chosen, output, Predicted::everything);
  result.closings.clear();  // what the driver says is used is all ranks' on the GPU
  return report(
      result,
      {chosen.backend,
       fmt::format(
           "{}, shared: {} ranks on {} GPU{}, so their memory is not told apart by the driver",
           chosen.reason, launch.local_world, gpus, gpus == 1 ? "" : "s")},
      output, Predicted::nothing);
}

}  // namespace

ExitCode validate_here(const ValidateArguments& arguments, const OutputOptions& output) {
  ValidateRequest request = read_validation(arguments);
  const Launch launch = read_launch(process_variables());
  const AtHand at_hand{.gpus = gpus_for(request.backend, request.options),
                       .ranks = std::max(launch.world, request.spawn.value_or(1))};
  const ChosenBackend chosen = chosen_backend(request.backend, at_hand);
  if (chosen.backend == Backend::host) {
    throw InputError("--backend host: that is plain zeroplan's; here: loopback, nccl");
  }
  if (request.stage) return measure_rank(request, chosen, output);
  if (chosen.backend == Backend::nccl) {
    return use_all_gpus(std::move(request), launch, chosen, output);
  }
  return share_one_gpu(std::move(request), chosen, output);
}

}  // namespace zeroplan
