// zeroplan-gpu: the commands of zeroplan that need a device. zeroplan itself starts it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cli/gpu/probe.hpp"
#include "cli/gpu/validate.hpp"
#include "cli/out/exit_code.hpp"
#include "cli/request/quantity.hpp"
#include "presets/input_error.hpp"

int main(int argc, char** argv) {
  using namespace zeroplan;
  CLI::App app{"The part of zeroplan that talks to GPUs.", "zeroplan-gpu"};
  app.require_subcommand(1);
  ProbeOutput output;
  CLI::App* probe = app.add_subcommand("probe", "Measures this machine");
  probe->add_flag("--json", output.json, "the cluster preset on standard output");
  probe->add_flag("--quiet", output.quiet, "no progress");
  probe->add_flag("--devices", output.devices, "list the GPUs, measure nothing");
  probe->add_option("--output", output.file, "write the cluster preset here");
  std::optional<std::string> timeout;
  probe->add_option("--timeout", timeout, "seconds without an answer of a GPU");
  ValidateArguments validation;
  OutputOptions validate_output;
  CLI::App* validate = app.add_subcommand("validate", "A real step, measured beside predicted");
  add_validate_options(*validate, validation);
  add_output_options(*validate, validate_output);
  try {
    app.parse(argc, argv);
    if (validate->parsed()) return static_cast<int>(validate_here(validation, validate_output));
    if (timeout) output.patience = read_whole("--timeout", *timeout, 1, 86'400);
    probe_here(output);
    return static_cast<int>(ExitCode::yes);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error)
                                      : (app.exit(error), static_cast<int>(ExitCode::bad_input));
  } catch (const InputError& error) {
    fmt::print(stderr, "zeroplan: error: {}\n", error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    fmt::print(stderr, "zeroplan: error: {}\n", error.what());
    std::fflush(nullptr);
    // Without destructors of libraries: a driver or NCCL that failed may also hang in them.
    std::_Exit(static_cast<int>(ExitCode::environment));
  }
}
