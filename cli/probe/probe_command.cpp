// zeroplan probe: what does this machine have? Front door: run_probe.
#include "cli/commands.hpp"
#include "cli/probe/gpu_program.hpp"

namespace zeroplan {

ExitCode run_probe(const ProbeArguments& arguments, const OutputOptions& output) {
  std::vector<std::string> words{"probe"};
  if (output.form() == Output::json) words.emplace_back("--json");
  if (output.quiet) words.emplace_back("--quiet");
  if (arguments.devices) words.emplace_back("--devices");
  if (arguments.timeout) words.insert(words.end(), {"--timeout", *arguments.timeout});
  if (!arguments.output.empty()) words.insert(words.end(), {"--output", arguments.output});
  become_gpu_program(std::move(words));
}

}  // namespace zeroplan
