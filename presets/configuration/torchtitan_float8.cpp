// What does torchtitan's configuration multiply in 8 bits? Front doors: said_recipe,
// read_converters.
#include "presets/configuration/torchtitan_float8.hpp"

#include <regex>

#include <fmt/format.h>

#include "presets/nearest_name.hpp"

namespace zeroplan::titan_float8 {
namespace {

constexpr std::string_view recipe = "float8.recipe_name";

// A file that names its converter is read by no code that scales rows where nothing is said, nor
// by any that came later.
void read_named_recipe(Entries& entries, Meaning& meaning) {
  std::optional<std::string> said;
  for (const std::string_view key : {recipe_key, recipe}) {
    const auto here = entries.take_if(key, {"tensorwise", "rowwise", "rowwise_with_gw_hp"});
    if (here) said = here;
  }
  meaning.set_if(recipe, said);
  if (!said || said == "tensorwise") meaning.set("recipe_date", "2026-02-22");
}

// In Python it is a keyword of the converter's class, which is read as text.
void read_built_recipe(const std::string& built, Meaning& meaning) {
  static const std::regex keyword(
      R"(recipe_name\s*=\s*["'](tensorwise|rowwise|rowwise_with_gw_hp)["'])");
  std::smatch found;
  if (std::regex_search(built, found, keyword)) meaning.set(recipe, found[1].str());
}

}  // namespace

std::string said_recipe(const Problem& problem) {
  const Float8Recipe set = problem.runtime.fsdp2.float8_recipe;
  const bool is_torchao = set != Float8Recipe::recipe && set != Float8Recipe::delayed;
  return is_torchao && problem.training.precision == Precision::fp8 ? std::string(name_of(set))
                                                                    : std::string();
}

bool read_converters(Entries& entries, Meaning& meaning) {
  const std::string named = entries.take("model.converters").value_or("");
  std::string built = entries.take("model_converters.converters").value_or("");
  if (built.empty()) built = entries.take("model_spec.converters").value_or("");
  if (named.empty() && built.empty()) return false;
  const bool by_name = named == "float8" || named == converter ||
                       named == "quantize.linear.float8,quantize.grouped_mm.float8";
  const bool by_class = built.find("Float8") != built.npos && built.find("MX") == built.npos &&
                        built.find("LoRA") == built.npos;
  if (named.empty() ? !by_class : !by_name) {
    entries.fail(fmt::format("converters {}: float8 alone is read",
                             in_quotes(named.empty() ? built : named)));
  }
  if (const auto all = entries.take_if(gather_key, {"true", "false"})) entries.put(gather, *all);
  named.empty() ? read_built_recipe(built, meaning) : read_named_recipe(entries, meaning);
  return true;
}

}  // namespace zeroplan::titan_float8
