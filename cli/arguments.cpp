// Which options are there? Front door: add_layout_options.
#include "cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cost_model/layout.hpp"
#include "cost_model/runtime_spec.hpp"
#include "cost_model/training_spec.hpp"

namespace zeroplan {
namespace {

template <class Enum>
std::string one_of() {
  return fmt::format("{}", fmt::join(names<Enum>(), "|"));
}

}  // namespace

void add_output_options(CLI::App& command, OutputOptions& output) {
  auto* json = command.add_flag("--json", output.json, "one JSON document on standard output");
  command.add_flag("--csv", output.csv, "rows as comma-separated values")->excludes(json);
  command.add_flag("--quiet", output.quiet, "the verdict line alone");
  command.add_option("--color", output.color, "auto, always or never (NO_COLOR is honoured)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_layout_options(CLI::App& command, LayoutArguments& a) {
  command
      .add_option("MODEL", a.model,
                  "catalog name, Hugging Face id, config.json, or - for standard input")
      ->required();
  command.add_option("--gpus", a.gpus, "COUNTxGPU, e.g. 128xA100-80GB; COUNT alone with --cluster");
  command.add_option("--cluster", a.cluster,
                     "node type by name, or a FILE.json with its own topology");
  command.add_option("--runtime", a.runtime, one_of<Runtime>())->capture_default_str();
  command.add_option("--set", a.set, "KEY=VALUE: a setting of the runtime under its own name")
      ->allow_extra_args(false);

  const auto layout = [&](const char* flag, std::optional<std::string>& field,
                          const std::string& text) {
    command.add_option(flag, field, text)->group("Layout (what is not given is chosen)");
  };
  layout("--tp", a.tp, "tensor parallel");
  layout("--pp", a.pp, "pipeline stages");
  layout("--vpp", a.vpp, "model chunks a pipeline rank");
  layout("--cp", a.cp, "context parallel");
  layout("--ep", a.ep, "expert parallel");
  layout("--etp", a.etp, "tensor parallel inside an expert");
  layout("--zero", a.zero, one_of<ZeroStage>());
  layout("--hsdp", a.hsdp, "ranks of a sharding group; the rest of dp replicates it");
  layout("--sequence-parallel", a.sequence_parallel, "on|off");
  layout("--micro-batch", a.micro_batch, "samples a forward pass");
  layout("--schedule", a.schedule, one_of<Schedule>());
  layout("--recompute", a.recompute, one_of<Recompute>());
  layout("--offload", a.offload, one_of<Offload>());

  const auto training = [&](const char* flag, std::optional<std::string>& field,
                            const std::string& text) {
    command.add_option(flag, field, text)->group("Training");
  };
  training("--global-batch", a.global_batch,
           "samples an optimizer step (default: near four million tokens)");
  training("--seq", a.seq, "tokens a sample (default: 4096, or the model's maximum if smaller)");
  training("--precision", a.precision, one_of<Precision>());
  training("--optimizer", a.optimizer, one_of<OptimizerKind>());
  training("--attention", a.attention, one_of<AttentionKernel>());
}

}  // namespace zeroplan
