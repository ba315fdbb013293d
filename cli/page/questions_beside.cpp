// What if one thing were different? Front doors: sensitivity, zero_stages.
#include "cli/page/questions_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/compare/side.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/report_fields.hpp"
#include "presets/configuration.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json answered(const LayoutArguments& question, const std::optional<CostQuestion>& cost) {
  try {
    const FitAnswer answer = answer_of(question);
    Json fit = fit_fields(answer);
    if (cost) fit["training"] = cost_json(answer, *cost);
    return {{"fit", std::move(fit)}};
  } catch (const InputError& error) {
    return {{"refused", error.what()}};
  }
}

class Strip {
 public:
  explicit Strip(const std::optional<CostQuestion>& cost) : cost_(cost) {}

  void add(const char* axis, std::string value, bool same, const LayoutArguments& question) {
    Json cell{{"axis", axis}, {"value", std::move(value)}, {"same", same}};
    if (same && same_.is_null()) same_ = answered(question, cost_);  // on each axis once
    cell.update(same ? same_ : answered(question, cost_));
    cells_.push_back(std::move(cell));
  }

  Json take() { return std::move(cells_); }

 private:
  std::optional<CostQuestion> cost_;
  Json same_;
  Json cells_ = Json::array();
};

}  // namespace

LayoutArguments on_gpus(LayoutArguments question, const FitAnswer& answer, std::int64_t count) {
  const Origin& origin = answer.origin;
  const bool own = !origin.cluster_preset.empty() || !origin.cluster_config.empty();
  question.gpus =
      own ? std::to_string(count) : fmt::format("{}x{}", count, answer.problem.cluster.gpu.name);
  question.nodes.reset();
  return question;
}

Json sensitivity(const FitAnswer& answer,
                 const LayoutArguments& asked,
                 const std::optional<CostQuestion>& cost) {
  const ClusterSpec& cluster = answer.problem.cluster;
  const std::int64_t length = answer.problem.training.sequence_length;
  Strip strip(cost);
  const LayoutArguments same = on_gpus(asked, answer, cluster.gpus);
  if (cluster.gpus % 2 == 0) {
    strip.add("GPUs", std::to_string(cluster.gpus / 2), false,
              on_gpus(asked, answer, cluster.gpus / 2));
  }
  strip.add("GPUs", std::to_string(cluster.gpus), true, same);
  strip.add("GPUs", std::to_string(2 * cluster.gpus), false,
            on_gpus(asked, answer, 2 * cluster.gpus));
  if (answer.problem.model.layers > 0) {
    for (const std::int64_t tokens : {length / 2, length, 2 * length}) {
      if (tokens == 0) continue;
      LayoutArguments question = same;
      question.seq = std::to_string(tokens);
      strip.add("length", std::to_string(tokens), tokens == length, question);
    }
  }
  std::vector<std::string> kinds{"A100-80GB", "H100-80GB", "H200", "B200"};
  if (std::find(kinds.begin(), kinds.end(), cluster.gpu.name) == kinds.end()) {
    kinds.insert(kinds.begin(), cluster.gpu.name);
  }
  for (const std::string& kind : kinds) {
    const bool own = kind == cluster.gpu.name;
    LayoutArguments question = same;
    if (!own) {
      question.cluster.clear();
      question.gpus = fmt::format("{}x{}", cluster.gpus, kind);
    }
    strip.add("GPU", kind, own, question);
  }
  return strip.take();
}

Json zero_stages(const FitAnswer& answer, const LayoutArguments& asked) {
  // What says where layers and samples go, and, where the stage allows it, in which order.
  constexpr std::array<std::string_view, 10> kept{
      "--tp",          "--pp",  "--cp",        "--ep",           "--etp",
      "--micro-batch", "--seq", "--recompute", "--global-batch", "--offload"};
  constexpr std::array<std::string_view, 2> ordered{"--vpp", "--schedule"};
  LayoutArguments question = on_gpus(asked, answer, answer.problem.cluster.gpus);
  question.gradient_accumulation.reset();
  for (const TypedOption& option : options_of(answer.problem)) {
    if (std::find(kept.begin(), kept.end(), option.flag) != kept.end()) give(question, option);
  }
  LayoutArguments in_order = question;
  for (const TypedOption& option : options_of(answer.problem)) {
    if (std::find(ordered.begin(), ordered.end(), option.flag) != ordered.end()) {
      give(in_order, option);
    }
  }
  Json list = Json::array();
  for (const char* stage : {"0", "1", "2", "3"}) {
    question.zero = in_order.zero = stage;
    Json row{{"stage", stage}};
    Json same = answered(in_order, std::nullopt);
    row.update(same.contains("fit") ? same : answered(question, std::nullopt));
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace zeroplan
