#pragma once
// What was typed, as text, before it means anything.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace zeroplan {

struct RecordedStep;  // presets/recorded_program.hpp

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
  bool names_only = false;  // of the catalog: no path is opened, as for a visitor of serve
  std::string gpus;
  std::optional<std::string> nodes;
  std::string cluster;
  std::string config;          // a file of options that stand under those typed
  std::string as;              // model_type that a config.json is read as
  std::string model_config;    // what a config.json says, where MODEL is no name but its text
  std::string cluster_config;  // what a cluster file says, where a plan brings its text
  std::shared_ptr<const RecordedStep> recorded = {};  // where MODEL is a file of one
  bool whole = false;  // a plan as it is: what it does not say is at the runtime's default
  std::optional<std::string> tp, pp, vpp, cp, ep, etp, hsdp, micro_batch, global_batch, seq;
  std::optional<std::string> gradient_accumulation;
  std::optional<std::string> zero, sequence_parallel, schedule, recompute, precision, optimizer;
  std::optional<std::string> attention, attention_flops, offload;
  std::optional<std::string> margin;   // memory of a GPU that stays free
  std::optional<std::string> tie;      // per cent of time for which a simpler layout is taken
  std::optional<std::string> runtime;  // default_runtime where not given
  std::vector<std::string> set;
};

inline constexpr std::string_view default_runtime = "megatron";

/// An option that says one thing about the layout or the training, and where its text goes.
struct LayoutOption {
  std::string flag;  // "--tp"
  std::optional<std::string> LayoutArguments::*text;
  std::string meaning;
  std::string group;  // its heading in --help
};

/// Every option of the layout and the training, in the order of --help.
const std::vector<LayoutOption>& layout_options();

/// What a whole training takes: its tokens, and the price of a GPU and hour.
struct CostArguments {
  std::optional<std::string> tokens, price;
};

/// Files for people who were not there, beside the answer.
struct PageArguments {
  std::string html;
  std::string markdown;

  bool wanted() const { return !html.empty() || !markdown.empty(); }
};

/// A question, and what to say beside its answer.
struct FitArguments {
  LayoutArguments layout;
  CostArguments cost;
  PageArguments page;
  std::optional<std::string> host_memory;  // of a node, for what is offloaded
  std::string batch;                       // file of questions, a line each
};

/// Which rank of the layout, and files to write besides.
struct TimelineArguments {
  LayoutArguments layout;
  std::optional<std::string> stage;
  std::string chrome_trace;
  std::string snapshot;
  bool story = false;
};

/// Which rank of the layout.
struct StoryArguments {
  LayoutArguments layout;
  std::optional<std::string> stage;
};

/// A layout, and what a run of it left.
struct OverlayArguments {
  LayoutArguments layout;
  std::optional<std::string> stage;
  std::string trace;      // of torch.profiler
  std::string snapshot;   // of torch.cuda.memory
  std::string calibrate;  // file of the cluster preset to write
};

/// Which rank of the layout, and which row of its answer.
struct ExplainArguments {
  LayoutArguments layout;
  std::optional<std::string> stage;
  std::optional<std::string> row;
  bool ranks = false;  // where each sits instead
};

/// Two sides: plan files as subjects, or a model as the one subject and text for each side.
struct CompareArguments {
  LayoutArguments common;
  std::vector<std::string> subjects;
  std::optional<std::string> a, b;
  bool each = false;  // choose for each side what neither gives
  PageArguments page;
};

/// A layout, and what to write it as.
struct ExportArguments {
  LayoutArguments layout;
  std::optional<std::string> format;
};

/// Which layouts to look for, and how.
struct SweepArguments {
  LayoutArguments layout;
  CostArguments cost;
  std::optional<std::string> top, objective, max_memory, threads;
  bool exhaustive = false;
  bool front = false;
  bool all = false;
  bool tp_within_node = false;
  std::string save;   // file for all plans, rows of which are a MODEL
  std::string batch;  // file of questions, a line each
  PageArguments page;
};

/// What to do with a machine.
struct ProbeArguments {
  bool devices = false;  // list its GPUs, measure nothing
  std::string output;    // file of the cluster preset
  std::optional<std::string> timeout;
};

/// A layout to run at reduced scale, and where.
struct ValidateArguments {
  LayoutArguments layout;
  std::optional<std::string> backend, ranks, as_rank, spawn, steps, timeout, max_memory;
  std::optional<std::string> with, python;
  bool share_gpus = false;
};

/// Where to answer over the network.
struct ServeArguments {
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;  // 0: any that is free
};

void add_output_options(CLI::App& command, OutputOptions& output);

/// --html and --markdown.
void add_page_options(CLI::App& command, PageArguments& arguments);

/// MODEL and every option of a question.
void add_layout_options(CLI::App& command, LayoutArguments& arguments);
void add_fit_options(CLI::App& command, FitArguments& arguments);
void add_sweep_options(CLI::App& command, SweepArguments& arguments);
void add_validate_options(CLI::App& command, ValidateArguments& arguments);

/// Every option of a question, without MODEL.
void add_options_beside_model(CLI::App& command, LayoutArguments& arguments);

}  // namespace zeroplan
