// Which questions were typed at once? Front door: variants.
#include "cli/request/variants.hpp"

#include <fmt/format.h>

#include <functional>

#include "cli/request/plan_file.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_variants = 256;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> list;
  std::size_t start = 0;
  for (std::size_t comma = text.find(','); comma != std::string::npos;
       comma = text.find(',', start)) {
    list.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  list.push_back(text.substr(start));
  return list;
}

// Where every option that may be a list keeps its text.
struct ListPlace {
  std::string flag;
  std::string text;
  std::function<void(LayoutArguments&, std::string)> put;
};

std::vector<ListPlace> lists_in(const LayoutArguments& a) {
  std::vector<ListPlace> places;
  const auto add = [&](std::string flag, const std::string& text, auto put) {
    if (text.find(',') != std::string::npos) places.push_back({std::move(flag), text, put});
  };
  // A path may hold commas.
  if (!names_file(a.model)) {
    add("MODEL", a.model, [](LayoutArguments& to, std::string v) { to.model = std::move(v); });
  }
  add("--gpus", a.gpus, [](LayoutArguments& to, std::string v) { to.gpus = std::move(v); });
  if (a.nodes) {
    add("--nodes", *a.nodes, [](LayoutArguments& to, std::string v) { to.nodes = std::move(v); });
  }
  if (a.runtime) {
    add("--runtime", *a.runtime,
        [](LayoutArguments& to, std::string v) { to.runtime = std::move(v); });
  }
  for (const LayoutOption& option : layout_options()) {
    const auto& text = a.*option.text;
    if (!text) continue;
    add(option.flag, *text,
        [field = option.text](LayoutArguments& to, std::string v) { to.*field = std::move(v); });
  }
  return places;
}

}  // namespace

std::vector<Variant> variants(const LayoutArguments& arguments) {
  std::vector<Variant> list{{arguments, {}}};
  for (const ListPlace& place : lists_in(arguments)) {
    std::vector<Variant> longer;
    const std::vector<std::string> values = split(place.text);
    if (list.size() * values.size() > most_variants) {
      throw InputError(
          fmt::format("{}: the lists make more than {} questions", place.flag, most_variants));
    }
    for (const std::string& value : values) {
      if (value.empty()) {
        throw InputError(fmt::format("{}: a value of the list is empty", place.flag));
      }
    }
    for (const Variant& variant : list) {
      for (const std::string& value : values) {
        longer.push_back(variant);
        place.put(longer.back().question, value);
        longer.back().values.push_back({place.flag, value});
      }
    }
    list = std::move(longer);
  }
  return list;
}

}  // namespace zeroplan
