// What is typed to ask this again? Front doors: typed_line, command_of.
#include "cli/page/typed_line.hpp"

#include <fmt/format.h>

#include "cli/request/shell_word.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {
namespace {

void add(std::string& line, std::string_view flag, std::string_view value) {
  line += fmt::format(" {} {}", flag, shell_word(value));
}

void add_options(std::string& line, const LayoutArguments& a) {
  if (!a.as.empty()) add(line, "--as", a.as);
  if (!a.config.empty()) add(line, "--config", a.config);
  if (!a.gpus.empty()) add(line, "--gpus", a.gpus);
  if (a.nodes) add(line, "--nodes", *a.nodes);
  if (!a.cluster.empty()) add(line, "--cluster", a.cluster);
  if (a.runtime) add(line, "--runtime", *a.runtime);
  for (const LayoutOption& option : layout_options()) {
    if (const auto& value = a.*option.text) add(line, option.flag, *value);
  }
  for (const std::string& setting : a.set) add(line, "--set", setting);
}

}  // namespace

std::string typed_line(std::string_view command, const LayoutArguments& asked) {
  std::string line = fmt::format("zeroplan {}", command);
  if (!asked.model.empty()) line += " " + shell_word(asked.model);
  add_options(line, asked);
  return line;
}

std::string typed_line(const SweepArguments& asked) {
  std::string line = typed_line("sweep", asked.layout) + typed_cost(asked.cost);
  if (asked.top) add(line, "--top", *asked.top);
  if (asked.objective) add(line, "--objective", *asked.objective);
  if (asked.max_memory) add(line, "--max-memory", *asked.max_memory);
  if (asked.tp_within_node) line += " --tp-within-node";
  if (asked.exhaustive) line += " --exhaustive";
  if (asked.front) line += " --front";
  if (asked.all) line += " --all";
  return line;
}

std::string typed_line(const CompareArguments& asked) {
  std::string line = "zeroplan compare";
  for (const std::string& subject : asked.subjects) line += " " + shell_word(subject);
  if (asked.a) add(line, "--a", *asked.a);
  if (asked.b) add(line, "--b", *asked.b);
  if (asked.each) line += " --each";
  add_options(line, asked.common);
  return line;
}

std::string typed_cost(const CostArguments& asked) {
  std::string line;
  if (asked.tokens) add(line, "--tokens", *asked.tokens);
  if (asked.price) add(line, "--price", *asked.price);
  return line;
}

std::string command_of(const FitAnswer& answer, const LayoutArguments& asked) {
  const Problem& p = answer.problem;
  const Origin& origin = answer.origin;
  // A file is named as it was typed; what came through a pipe has no name to type.
  std::string line = "zeroplan fit " + shell_word(origin.model_config.empty() ? p.model.name
                                                  : asked.model.empty()       ? "-"
                                                                              : asked.model);
  if (!origin.as.empty()) add(line, "--as", origin.as);
  const bool own_nodes = !origin.cluster_preset.empty() || !origin.cluster_config.empty();
  if (own_nodes) {
    add(line, "--cluster", asked.cluster.empty() ? origin.cluster_preset : asked.cluster);
    add(line, "--gpus", std::to_string(p.cluster.gpus));
  } else {
    add(line, "--gpus", fmt::format("{}x{}", p.cluster.gpus, p.cluster.gpu.name));
  }
  for (const auto& [flag, value] : options_of(p)) add(line, flag, value);
  if (asked.margin) add(line, "--margin", *asked.margin);
  return line;
}

}  // namespace zeroplan
