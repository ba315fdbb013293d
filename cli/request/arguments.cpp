// Which options are there? Front door: add_layout_options.
#include "cli/request/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cost_model/question/layout.hpp"
#include "cost_model/question/runtime_settings.hpp"
#include "cost_model/question/training.hpp"
#include "planner/sweep/ranking.hpp"

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

const std::vector<LayoutOption>& layout_options() {
  using A = LayoutArguments;
  const std::string layout = "Layout (what is not given is chosen)";
  const std::string training = "Training";
  static const std::vector<LayoutOption> all{
      {"--tp", &A::tp, "tensor parallel", layout},
      {"--pp", &A::pp, "pipeline stages", layout},
      {"--vpp", &A::vpp, "model chunks a pipeline rank", layout},
      {"--cp", &A::cp, "context parallel", layout},
      {"--ep", &A::ep, "expert parallel", layout},
      {"--etp", &A::etp, "tensor parallel inside an expert", layout},
      {"--zero", &A::zero, one_of<ZeroStage>(), layout},
      {"--hsdp", &A::hsdp, "ranks of a sharding group, or dp/GROUPS; the rest of dp replicates it",
       layout},
      {"--sequence-parallel", &A::sequence_parallel, "on|off", layout},
      {"--micro-batch", &A::micro_batch, "samples a forward pass, or max: the most that fit",
       layout},
      {"--schedule", &A::schedule, one_of<Schedule>(), layout},
      {"--recompute", &A::recompute, one_of<Recompute>(), layout},
      {"--offload", &A::offload, one_of<Offload>(), layout},
      {"--margin", &A::margin, "memory of a GPU that stays free: 4GiB or 5%", layout},
      {"--tie", &A::tie,
       "per cent by which a simpler layout may be slower than the fastest (default 3)", layout},
      {"--global-batch", &A::global_batch,
       "samples an optimizer step, or '4M tokens' (default: near four million tokens)", training},
      {"--gradient-accumulation", &A::gradient_accumulation,
       "micro-batches an optimizer step, which say the global batch: this x micro-batch x dp",
       training},
      {"--seq", &A::seq,
       "tokens a sample, 8k being 8192, or max: the most that fit (default: 4096, or the "
       "model's maximum if smaller)",
       training},
      {"--precision", &A::precision, one_of<Precision>(), training},
      {"--optimizer", &A::optimizer, one_of<OptimizerKind>(), training},
      {"--attention", &A::attention, one_of<AttentionKernel>(), training},
      {"--attention-flops", &A::attention_flops, one_of<ScoreCount>(), training},
  };
  return all;
}

void add_layout_options(CLI::App& command, LayoutArguments& a) {
  command.add_option(
      "MODEL", a.model,
      "catalog name, Hugging Face id, config.json, a plan (FILE of fit --json, FILE#N of "
      "sweep's), or - for standard input");
  add_options_beside_model(command, a);
}

void add_options_beside_model(CLI::App& command, LayoutArguments& a) {
  command.add_option(
      "--gpus", a.gpus,
      "COUNTxGPU, e.g. 128xA100-80GB; GPU alone: how many; COUNT alone with --cluster");
  command.add_option("--nodes", a.nodes, "nodes, where --gpus or --cluster says no number");
  command.add_option("--cluster", a.cluster,
                     "node type by name, or a FILE.json with its own topology");
  command.add_option("--as", a.as, "read a config.json as this model_type, e.g. llama");
  command.add_option("--config", a.config,
                     "FILE that import reads: its options stand under those typed");
  command.add_option("--runtime", a.runtime,
                     fmt::format("{} (default: {})", one_of<Runtime>(), default_runtime));
  command
      .add_option("--set", a.set, "KEY=VALUE,...: settings of the runtime under their own names")
      ->allow_extra_args(false);
  for (const LayoutOption& option : layout_options()) {
    command.add_option(option.flag, a.*option.text, option.meaning)->group(option.group);
  }
}

namespace {

void add_cost_options(CLI::App& command, CostArguments& a) {
  const std::string group = "Training";
  command.add_option("--tokens", a.tokens, "days and GPU hours of so many tokens, e.g. 1T")
      ->group(group);
  command.add_option("--price", a.price, "of a GPU an hour, e.g. 2.5/h: what they cost")
      ->group(group);
}

}  // namespace

namespace {

void add_batch_option(CLI::App& command, std::string& file) {
  command
      .add_option("--batch", file,
                  "FILE with a question a line, options or JSON, or - for standard input: answers "
                  "as lines of JSON")
      ->group("Many questions");
}

}  // namespace

void add_page_options(CLI::App& command, PageArguments& a) {
  const std::string group = "Page";
  command.add_option("--html", a.html, "also write a page to send to FILE; it needs no network")
      ->group(group);
  command.add_option("--markdown", a.markdown, "also write the page to FILE as Markdown")
      ->group(group);
}

void add_fit_options(CLI::App& command, FitArguments& a) {
  add_layout_options(command, a.layout);
  command
      .add_option("--host-memory", a.host_memory,
                  "of a node, e.g. 2TiB: whether what is offloaded there fits")
      ->group("Layout (what is not given is chosen)");
  add_cost_options(command, a.cost);
  add_page_options(command, a.page);
  add_batch_option(command, a.batch);
}

void add_validate_options(CLI::App& command, ValidateArguments& a) {
  add_layout_options(command, a.layout);
  const std::string group = "Run";
  command
      .add_option(
          "--backend", a.backend,
          "host: no GPU; loopback: ranks share one; nccl: one each (default: what is there)")
      ->group(group);
  command.add_option("--ranks", a.ranks, "ranks to run at most (default 8)")->group(group);
  command
      .add_option("--as-rank", a.as_rank,
                  "stage=S: one rank of the full layout, its peers absent, counted alone")
      ->group(group);
  command.add_option("--spawn", a.spawn, "start so many ranks as processes of this node")
      ->group(group);
  command
      .add_flag(
          "--share-gpus", a.share_gpus,
          "with nccl: more ranks than GPUs, which then take turns; to exercise NCCL, not for speed")
      ->group(group);
  command.add_option("--steps", a.steps, "training steps (default 5)")->group(group);
  command
      .add_option("--timeout", a.timeout,
                  "seconds a rank waits for its peers (default 60), or a trace takes (600)")
      ->group(group);
  command.add_option("--max-memory", a.max_memory, "of a rank's tensors, with its unit: 1GiB")
      ->group(group);
  command
      .add_option("--with", a.with,
                  "torchtitan, transformers, megatron, deepspeed or nanotron: trace that runtime's "
                  "own code instead, from your Python, without a GPU; --as-rank says which stage's "
                  "rank")
      ->group(group);
  command.add_option("--python", a.python, "the interpreter that has it (default python3)")
      ->group(group);
}

void add_sweep_options(CLI::App& command, SweepArguments& a) {
  add_layout_options(command, a.layout);
  add_cost_options(command, a.cost);
  const std::string group = "Search";
  command.add_option("--top", a.top, "plans to show (default 10)")->group(group);
  command.add_option("--objective", a.objective, one_of<Objective>() + " (default step)")
      ->group(group);
  command.add_option("--max-memory", a.max_memory, "of a GPU, with its unit: 70GiB")->group(group);
  command.add_flag("--tp-within-node", a.tp_within_node, "tensor parallelism stays inside nodes")
      ->group(group);
  command.add_flag("--exhaustive", a.exhaustive, "evaluate every legal layout, bound none")
      ->group(group);
  command
      .add_flag("--front", a.front,
                "find the whole Pareto front of step time against memory; takes longer")
      ->group(group);
  command.add_option("--save", a.save, "also write all plans to FILE, each a MODEL as FILE#N")
      ->group(group);
  command.add_flag("--all", a.all, "every shape of a layout, not one a family of tp, pp and ep")
      ->group(group);
  command.add_option("--threads", a.threads, "default: all cores")->group(group);
  add_page_options(command, a.page);
  add_batch_option(command, a.batch);
}

}  // namespace zeroplan
