// What does one side of a comparison ask? Front door: read_side.
#include "cli/compare/side.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/request/plan_file.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

LayoutArguments from_options(std::string_view label, const std::string& text) {
  LayoutArguments arguments;
  CLI::App side;
  side.set_help_flag();
  side.add_option("MODEL", arguments.model);
  add_options_beside_model(side, arguments);
  try {
    side.parse(text);
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("{} {}: {}", label, in_quotes(text), error.what()));
  }
  return arguments;
}

// Takes what the common part says where the side says nothing; both must say the same.
class Merging {
 public:
  explicit Merging(std::string_view label) : label_(label) {}

  void operator()(std::string_view what, const std::string& common, std::string& side) const {
    if (common.empty() || common == side) return;
    if (!side.empty()) fail(what, common, side);
    side = common;
  }
  void operator()(std::string_view what,
                  const std::optional<std::string>& common,
                  std::optional<std::string>& side) const {
    if (!common || common == side) return;
    if (side) fail(what, *common, *side);
    side = common;
  }

 private:
  [[noreturn]] void fail(std::string_view what,
                         const std::string& common,
                         const std::string& side) const {
    throw InputError(fmt::format("{} is {} for both sides and {} in {}: say it once", what,
                                 in_quotes(common), in_quotes(side), label_));
  }

  std::string_view label_;
};

}  // namespace

LayoutArguments read_side(const LayoutArguments& common,
                          std::string_view label,
                          const std::string& text) {
  // A path may have blanks.
  LayoutArguments side;
  if (!common.names_only && names_file(text)) {
    side.model = text;
  } else {
    side = from_options(label, text);
  }
  side.names_only = common.names_only;
  const Merging merge(label);
  merge("MODEL", common.model, side.model);
  if (side.model == common.model) side.model_config = common.model_config;
  merge("--gpus", common.gpus, side.gpus);
  merge("--config", common.config, side.config);
  merge("--as", common.as, side.as);
  merge("--nodes", common.nodes, side.nodes);
  merge("--cluster", common.cluster, side.cluster);
  merge("--runtime", common.runtime, side.runtime);
  for (const LayoutOption& option : layout_options()) {
    merge(option.flag, common.*option.text, side.*option.text);
  }
  side.set.insert(side.set.begin(), common.set.begin(), common.set.end());
  if (side.model.empty()) throw InputError(fmt::format("{}: MODEL is missing", label));
  return side;
}

void give(LayoutArguments& arguments, const TypedOption& option) {
  if (option.flag == "--gpus") {
    arguments.gpus = option.value;
  } else if (option.flag == "--runtime") {
    arguments.runtime = option.value;
  } else if (option.flag == "--set") {
    arguments.set.push_back(option.value);
  } else {
    for (const LayoutOption& known : layout_options()) {
      if (known.flag != option.flag) continue;
      arguments.*known.text = option.value;
      return;
    }
    throw InputError(fmt::format("no option {}", in_quotes(option.flag)));
  }
}

}  // namespace zeroplan
