// zeroplan presets: what can be named? Front door: run_presets.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/out/report.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/terminal.hpp"
#include "cli/out/text_table.hpp"
#include "cost_model/rank/weights.hpp"
#include "presets/catalog.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// The columns of a kind's list: what tells its members apart.
Json summary(std::string_view kind, const std::string& name) {
  if (kind == "models") {
    const CatalogModel model = find_model(name);
    return {{"name", name},
            {"parameters", parameter_count(model.spec)},
            {"active_parameters", active_parameter_count(model.spec)},
            {"layers", model.spec.layers},
            {"hidden_size", model.spec.hidden_size},
            {"huggingface", model.huggingface}};
  }
  if (kind == "gpus") {
    const GpuSpec gpu = find_gpu(name);
    return {{"name", name},
            {"memory_bytes", gpu.memory.count()},
            {"bf16_tflops", gpu.bf16_flops / 1e12},
            {"memory_gigabytes_per_second", gpu.memory_bandwidth / giga}};
  }
  if (kind == "clusters") {
    const ClusterSpec cluster = find_cluster(name);
    return {{"name", name},
            {"gpu", cluster.gpu.name},
            {"gpus_per_node", cluster.gpus_per_node},
            {"intra_node_gigabytes_per_second", cluster.intra_node_bandwidth / giga},
            {"inter_node_gigabytes_per_second", cluster.inter_node_bandwidth / giga}};
  }
  const Json runtime = Json::parse(preset_json(kind, name));
  return {{"name", name}, {"zero", runtime.at("zero")}, {"title", runtime.at("title")}};
}

std::string cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return with_thousands(value.get<std::int64_t>());
  return fmt::format("{:g}", value.get<double>());
}

// Numbers to the right, text to the left.
std::string table(const Json& rows, std::size_t width) {
  TextTable columns(1);
  for (const auto& [key, value] : rows.front().items()) {
    std::vector<std::string> cells;
    for (const Json& row : rows) cells.push_back(cell(row.at(key)));
    columns.add(key, std::move(cells), value.is_number() ? Align::right : Align::left);
  }
  return columns.text(width);
}

std::string csv(const Json& rows) {
  std::string out;
  const auto line = [&](const Json& row, bool header) {
    std::string separator;
    for (const auto& [key, value] : row.items()) {
      out += separator + (header              ? key
                          : value.is_string() ? '"' + value.get<std::string>() + '"'
                                              : value.dump());
      separator = ",";
    }
    out += "\n";
  };
  line(rows.front(), true);
  for (const Json& row : rows) line(row, false);
  return out;
}

}  // namespace

ExitCode run_presets(std::string_view kind, std::string_view name, const OutputOptions& output) {
  if (!name.empty()) {
    Json preset = Json::parse(preset_json(kind, name));
    if (kind == "models") {
      const ModelSpec spec = find_model(name).spec;
      preset["parameters"] = parameter_count(spec);
      preset["active_parameters"] = active_parameter_count(spec);
      preset["mtp_parameters"] = mtp_parameter_count(spec);
    }
    write_answer(preset.dump(2) + "\n");
    return ExitCode::yes;
  }
  Json rows = Json::array();
  for (const std::string& member : preset_names(kind)) rows.push_back(summary(kind, member));
  write_in_form(
      output, [&] { return rows.dump(2) + "\n"; }, [&] { return csv(rows); },
      [&] { return table(rows, terminal_width()); });
  return ExitCode::yes;
}

}  // namespace zeroplan
