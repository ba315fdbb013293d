// zeroplan-gpu: the commands of zeroplan that need a device. zeroplan itself starts it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/exit_code.hpp"
#include "cli/gpu/probe.hpp"

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
  try {
    app.parse(argc, argv);
    probe_here(output);
    return static_cast<int>(ExitCode::yes);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error)
                                      : (app.exit(error), static_cast<int>(ExitCode::bad_input));
  } catch (const std::exception& error) {
    fmt::print(stderr, "zeroplan: error: {}\n", error.what());
    return static_cast<int>(ExitCode::environment);
  }
}
