#pragma once
// What was typed, as text, before it means anything.

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace zeroplan {

enum class Output { text, json, csv };

/// How an answer is written; the same for every command.
struct OutputOptions {
  bool json = false;
  bool csv = false;
  bool quiet = false;          // the verdict alone
  std::string color = "auto";  // auto, always, never

  Output form() const { return json ? Output::json : csv ? Output::csv : Output::text; }
};

/// The question: a model, GPUs and a layout.
struct LayoutArguments {
  std::string model;
  std::string gpus;
  std::string cluster;
  std::optional<std::string> tp, pp, vpp, cp, ep, etp, hsdp, micro_batch, global_batch, seq;
  std::optional<std::string> zero, sequence_parallel, schedule, recompute, precision, optimizer;
  std::optional<std::string> attention, offload;
  std::string runtime = "megatron";
  std::vector<std::string> set;
};

/// Which rank of the layout, and files to write besides.
struct TimelineArguments {
  LayoutArguments layout;
  std::optional<std::string> stage;
  std::string chrome_trace;
  std::string snapshot;
};

void add_output_options(CLI::App& command, OutputOptions& output);
void add_layout_options(CLI::App& command, LayoutArguments& arguments);

}  // namespace zeroplan
