// What was recorded? Front door: read_recorded_step.
#include "presets/recorded_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cost_model/runtime/recorded/code.hpp"
#include "presets/configuration/plan_layout.hpp"
#include "presets/recorded_events.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view schema = "zeroplan.program/1";
constexpr Range any_degree{1, 10'000'000};

// "torchtitan 0.3.0, torch 2.14.1"
std::string versions_of(const JsonObject& runtime) {
  runtime.allow_only({"name", "versions", "expandable_segments"});
  std::vector<std::string> versions;
  const JsonObject packages = runtime.object("versions");
  for (const auto& [package, value] : packages.value().items()) {
    versions.push_back(fmt::format("{} {}", package, packages.string(package)));
  }
  std::string text = runtime.string("name");
  if (!versions.empty()) text += fmt::format(" ({})", fmt::join(versions, ", "));
  constexpr std::size_t longest = 500;
  const bool plain = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!plain || text.size() > longest) runtime.fail("not names and versions");
  return text;
}

// As large as was recorded, in one tensor: nothing else of its shape is known, or asked.
ModelSpec read_model(const JsonObject& json) {
  json.allow_only({"name", "parameters", "layers"});
  ModelSpec model{.name = json.string("name"), .family = "recorded"};
  const bool plain = std::ranges::none_of(
      model.name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!plain || model.name.empty()) json.fail("'name' is not a name");
  model.layers = json.integer("layers", {1, 1'000'000});
  model.vocab_size = json.integer("parameters", {1, 1'000'000'000'000'000});
  model.hidden_size = 1;
  model.norms_per_layer = 0;
  model.tied_embeddings = true;
  model.final_norm = false;
  model.attention.heads = model.attention.kv_heads = 1;
  return model;
}

// GPUs that it ran on.
std::int64_t gpus_of(const JsonObject& layout) {
  std::int64_t gpus = 1;
  for (const std::string_view degree : {"dp", "tp", "cp"}) {
    gpus *= layout.integer(degree, any_degree);
    if (gpus > any_degree.most) layout.fail(fmt::format("more than {} GPUs", any_degree.most));
  }
  for (const std::string_view degree : {"pp", "vpp"}) {
    if (layout.integer(degree, any_degree) != 1) {
      layout.fail(
          fmt::format("'{}' must be 1: a record is of one rank, not of a pipeline", degree));
    }
  }
  return gpus;
}

// Sharding groups are parts of the data-parallel ones.
void check_groups(const JsonObject& layout) {
  const auto width = layout.find_integer("hsdp", any_degree);
  if (width && layout.integer("dp", any_degree) % *width != 0)
    layout.fail("'hsdp' does not divide dp");
}

std::vector<TypedOption> read_layout(const JsonObject& layout) {
  layout.allow_only({"dp", "tp", "pp", "vpp", "cp", "ep", "etp", "zero", "hsdp",
                     "sequence_parallel", "micro_batch", "global_batch", "sequence_length",
                     "schedule", "recompute", "precision", "optimizer", "attention", "offload"});
  for (const std::string_view key :
       {"ep", "etp", "zero", "sequence_parallel", "micro_batch", "global_batch", "sequence_length",
        "schedule", "recompute", "precision", "optimizer", "attention", "offload"}) {
    if (!layout.has(key)) layout.fail(fmt::format("'{}' is missing", key));
  }
  check_groups(layout);
  return layout_of_plan(layout);
}

void check_batch(const JsonObject& layout, std::int64_t micro_batches) {
  const std::int64_t samples =
      layout.integer("dp", any_degree) * layout.integer("micro_batch", any_degree);
  if (layout.integer("global_batch", {1, 100'000'000}) != samples * micro_batches) {
    layout.fail(
        fmt::format("'global_batch' is not dp x micro_batch x the {} micro-batches of "
                    "'passes'",
                    micro_batches));
  }
}

}  // namespace

bool is_recorded_step(std::string_view text) {
  return text.find("\"zeroplan.program/") != std::string_view::npos;
}

RecordedStep read_recorded_step(std::string_view text, std::string_view where) {
  const nlohmann::json json = parse_json(text, where);
  const JsonObject document(json, std::string(where));
  if (document.string("schema") != schema) {
    document.fail(fmt::format("'schema' must be '{}': record it with this version", schema));
  }
  document.allow_only({"schema", "model", "runtime", "rank", "layout", "groups", "tensors", "calls",
                       "operators", "resident", "passes"});
  const JsonObject layout = document.object("layout");
  RecordedStep step{.model = read_model(document.object("model")),
                    .runtime = {},
                    .gpus = gpus_of(layout),
                    .layout = read_layout(layout)};
  const auto program = std::make_shared<RecordedProgram>();
  program->runtime = versions_of(document.object("runtime"));
  program->expandable_segments = document.object("runtime").boolean("expandable_segments");
  program->rank = document.integer("rank", {0, step.gpus - 1});
  read_events(document, step.gpus, *program);
  check_batch(layout, program->micro_batches());
  step.runtime = recorded_runtime(program);
  return step;
}

}  // namespace zeroplan
