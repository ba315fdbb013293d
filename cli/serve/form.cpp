// Which options can be filled in? Front door: live_form.
#include "cli/serve/form.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/completions/option_table.hpp"
#include "cli/page/html.hpp"
#include "cli/serve/form_assets.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

struct FormField {
  std::string name;  // of the parameter
  std::string label;
  std::string hint;
  std::string list = {};  // of what may be typed
};

std::string value_of(const Parameters& typed, const std::string& name) {
  const auto found = std::ranges::find(typed, name, &Parameters::value_type::first);
  return found == typed.end() ? "" : found->second;
}

std::string field_html(const FormField& field, const Parameters& typed) {
  const std::string list =
      field.list.empty() ? "" : fmt::format(" list=\"{}\"", html_text(field.list));
  return fmt::format(
      "<label>{}<input name=\"{}\" value=\"{}\" placeholder=\"{}\" title=\"{}\" "
      "autocomplete=\"off\" spellcheck=\"false\"{}></label>\n",
      html_text(field.label), html_text(field.name), html_text(value_of(typed, field.name)),
      html_text(field.hint), html_text(field.hint), list);
}

std::string list_html(const std::string& id, const std::vector<std::string>& names) {
  std::string out = fmt::format("<datalist id=\"{}\">", html_text(id));
  for (const std::string& name : names)
    out += fmt::format("<option value=\"{}\">", html_text(name));
  return out + "</datalist>\n";
}

std::vector<FormField> first_fields() {
  return {{"model", "model", "llama3-70b, Qwen/Qwen2.5-72B", "models"},
          {"gpus", "GPUs", "64xH100-80GB, or H100: how many", "gpus"},
          {"runtime", "runtime", "megatron", "runtimes"},
          {"zero", "ZeRO", "chosen", "list-zero"},
          {"tp", "tp", "chosen"},
          {"pp", "pp", "chosen"},
          {"micro-batch", "micro-batch", "chosen"},
          {"seq", "sequence", "4096"}};
}

bool stands_first(const std::string& name) {
  return std::ranges::any_of(first_fields(), [&](const FormField& f) { return f.name == name; });
}

std::string more_html(const Parameters& typed) {
  std::string out;
  for (const LayoutOption& option : layout_options()) {
    const std::string name = option.flag.substr(2);
    const std::vector<std::string> words = listed_words(option.meaning);
    const std::string list = words.empty() ? "" : "list-" + name;
    if (!words.empty()) out += list_html(list, words);
    if (!stands_first(name)) out += field_html({name, name, option.meaning, list}, typed);
  }
  out += field_html({"cluster", "cluster", "node type by name", "clusters"}, typed);
  out += field_html({"tokens", "tokens", "1T: days and GPU hours"}, typed);
  out += field_html({"price", "price", "2.5/h: what they cost"}, typed);
  return out + field_html({"more", "further options", "--set KEY=VALUE --top 20"}, typed);
}

// Open where there is something to compare.
std::string sides_html(const Parameters& typed) {
  const bool asked = !value_of(typed, "a").empty() || !value_of(typed, "b").empty();
  return fmt::format(
      "<details{}><summary>two sides to compare</summary>\n<div class=\"fields\">\n{}{}</div>\n"
      "<p class=\"buttons\"><button formaction=\"compare\">Compare a and "
      "b</button></p></details>\n",
      asked ? " open" : "", field_html({"a", "what a alone has", "--tp 4"}, typed),
      field_html({"b", "what b alone has", "--tp 8"}, typed));
}

std::string form_html(const Parameters& typed, const std::string& error) {
  std::string out = "<form class=\"ask\" action=\"fit\" method=\"get\">\n<div class=\"fields\">\n";
  for (const FormField& field : first_fields()) out += field_html(field, typed);
  out += "</div>\n<details><summary>all options</summary>\n<div class=\"fields\">\n" +
         more_html(typed) + "</div>\n</details>\n";
  out +=
      "<p class=\"buttons\"><button class=\"first\">Does it fit?</button>\n"
      "<button formaction=\"sweep\">Which layout?</button></p>\n" +
      sides_html(typed);
  for (const char* kind : {"models", "gpus", "runtimes", "clusters"}) {
    out += list_html(kind, preset_names(kind));
  }
  out += "</form>\n";
  if (!error.empty())
    out += fmt::format("<p class=\"error\" role=\"alert\">{}</p>\n", html_text(error));
  return out +
         "<details class=\"history\" hidden><summary>plans asked before</summary>"
         "<ol></ol><p><button type=\"button\" class=\"both\" disabled>compare two</button> "
         "<button type=\"button\" class=\"forget\">forget them</button></p></details>\n";
}

}  // namespace

PageControls live_form(const Parameters& typed, const std::string& error) {
  return {.above = form_html(typed, error), .style = form_style(), .script = form_script()};
}

}  // namespace zeroplan
