// Which measured steps are fitted on, and which are held out together? Front door: samples_of.
#include "tests/holdout/sample.hpp"

#include <fmt/format.h>

#include "cost_model/answer/step_time.hpp"
#include "tests/accuracy/prediction.hpp"
#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::holdout {
namespace {

using accuracy::Row;

// torchtitan's documents: the file, or the commit that reports the runs.
std::string document(const Row& row) {
  constexpr std::string_view project = "pytorch/torchtitan ";
  const std::string text =
      row.source.starts_with(project) ? row.source.substr(project.size()) : row.source;
  const std::size_t word = text.find(' ');
  return text.substr(0, text.find_first_of(" ,", word == std::string::npos ? 0 : word + 1));
}

// What shares a cause of error: one table of a paper, one size of model of vTrain's campaigns, one
// GPU of llm-foundry, one document of torchtitan, one number of nodes of nanotron, one model of
// SimuMax's, one model on one GPU of NVIDIA's tables or of its DGX Cloud's Blackwell. GPT-OSS and
// Grok-1 are not among these: of what makes the one slower than others and the other faster, a part
// is not known. Other families are not fitted on: their host or their code is not modelled, or they
// are recalled and not read.
std::string group_of(const Row& row) {
  const std::string& family = row.family;
  const std::string& model = row.model.name;
  if (model.starts_with("gpt-oss") || model == "grok-1") return {};
  if (family == "megatron-papers") {
    return row.id.starts_with("sc21") ? "Narayanan et al. 2021, Table 1"
                                      : "Korthikanti et al. 2022, Table 5";
  }
  if (family.starts_with("vtrain")) return fmt::format("width {}", *row.model.hidden);
  if (!row.completed.empty()) return fmt::format("{} on {}", model, *row.gpu);
  if (family.starts_with("nvidia-dgxc-blackwell")) {
    return fmt::format("{} on {}, DGX Cloud", model, *row.gpu);
  }
  if (family == "llm-foundry") return *row.gpu;
  if (family == "torchtitan") return document(row);
  if (family == "nanotron") return fmt::format("{} nodes", *row.gpus / 8);
  if (family == "simumax-b200") {
    if (*row.cp > 1) return "Llama, context parallel";
    return row.model.experts ? "DeepSeek" : fmt::format("Llama, tp {}", *row.tp);
  }
  return {};
}

}  // namespace

std::vector<Sample> samples_of(const std::vector<Row>& rows) {
  std::vector<Sample> samples;
  for (const Row& row : rows) {
    if (row.outcome != accuracy::Outcome::ran || !row.throughput.published()) continue;
    if (row.family == "paper-recalled") continue;
    try {
      accuracy::Case question = accuracy::problem_of(row);
      const double measured = accuracy::measured_step_seconds(row, question.problem);
      samples.push_back(
          {row.id, question.family, group_of(row), std::move(question.problem), measured});
    } catch (const accuracy::Skip&) {
    }
  }
  return samples;
}

double predicted_seconds(const Sample& sample, const TimeConstants& constants) {
  Problem problem = sample.problem;
  problem.cluster.gpu.constants = &constants;
  return step_seconds(problem, Evaluator(problem));
}

}  // namespace zeroplan::holdout
