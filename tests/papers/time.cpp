// How long does a published case take? Front door: time_answer.
#include <algorithm>
#include <map>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/pipeline/pipeline.hpp"
#include "presets/catalog.hpp"
#include "tests/papers/inputs.hpp"

namespace zeroplan::papers {
namespace {

// The GPT of Megatron's papers, in the whole score matrix's FLOPs.
Problem megatron_run(const Json& in, Recompute recompute) {
  Json shape = in;
  shape["vocab"] = in.value("vocab", 51200);
  Problem p = problem(Runtime::megatron, gpt(shape));
  p.training.sequence_length = whole_or(in, "seq", 2048);
  p.training.global_batch = whole_or(in, "global_batch", 1);
  p.layout.recompute = recompute;
  p.runtime.megatron.recompute_modules = 1U << static_cast<unsigned>(RecomputeModule::core_attn);
  return p;
}

double percent_of_peak(double flops, const Json& in) {
  return 100 * flops /
         (in.at("iteration_time_s").get<double>() * in.at("gpus").get<double>() *
          in.at("peak_flops").get<double>());
}

Answer model_utilisation(const Json& row) {
  const Json& in = row.at("inputs");
  if (in.contains("tflops_per_gpu")) {
    return 100e12 * in.at("tflops_per_gpu").get<double>() / in.at("peak_flops").get<double>();
  }
  if (!in.contains("layers")) return Skip{"the row leaves out the model's shape"};
  return percent_of_peak(
      step_flops(megatron_run(in, Recompute::selective), ScoreCount::whole).model, in);
}

// The paper counts the repeated scores three times (see step_flops).
Answer hardware_utilisation(const Json& row) {
  const Json& in = row.at("inputs");
  const StepFlops flops = step_flops(megatron_run(in, Recompute::selective), ScoreCount::whole);
  return percent_of_peak(flops.model + 3 * (flops.hardware - flops.model), in);
}

// Equation 8 over equation 7, in percent; like them it counts the repeated scores three times.
Answer selective_overhead(const Json& row) {
  static const std::map<std::string, std::string_view> names{{"175B", "megatron-175b"},
                                                             {"530B", "megatron-529.6b"}};
  const Json& in = row.at("inputs");
  Problem p = megatron_run({{"layers", 1}, {"hidden", 1}}, Recompute::selective);
  p.model = find_model(names.at(in.at("model").get<std::string>())).spec;
  const StepFlops flops = step_flops(p, ScoreCount::whole);
  return 100 * 3 * (flops.hardware - flops.model) / flops.model;
}

Answer training_days(const Json& row) {
  const Json& in = row.at("inputs");
  if (!in.contains("hidden")) return Skip{"the row leaves out the model's shape"};
  const Problem p = megatron_run(in, Recompute::full);
  const auto tokens = static_cast<double>(p.training.global_batch * p.training.sequence_length);
  const double seconds =
      in.at("tokens").get<double>() / tokens * step_flops(p, ScoreCount::whole).hardware /
      (in.at("gpus").get<double>() * 1e12 * in.at("tflops_per_gpu").get<double>());
  constexpr double day = 86'400;
  return seconds / day;
}

// A pipeline of equal stages. FSDP2's sends do not block, as in the papers.
struct Even {
  Problem problem;
  std::vector<StageTime> stages;
  double work;  // of a rank in a step
};

Even even(const Json& in, Schedule schedule, std::int64_t micro_batches, const PassTime& pass) {
  Even e{.problem = papers::problem(Runtime::fsdp2, ModelSpec{})};
  Layout& l = e.problem.layout;
  l.pp = whole(in, "pp");
  l.vpp = whole_or(in, "vpp", 1);
  l.schedule = l.vpp > 1 ? Schedule::interleaved : schedule;
  e.problem.training.global_batch = micro_batches;
  const std::int64_t chunks = schedule == Schedule::dualpipe ? 2 : l.vpp;
  const double part = 1 / static_cast<double>(l.vpp);
  const PassTime chunk{.forward = part * pass.forward,
                       .input_gradient = part * pass.input_gradient,
                       .weight_gradient = part * pass.weight_gradient};
  StageTime stage;
  stage.chunks.assign(static_cast<std::size_t>(chunks), chunk);
  e.stages.assign(static_cast<std::size_t>(l.pp), stage);
  e.work = static_cast<double>(micro_batches) * (pass.forward + pass.backward());
  return e;
}

Answer bubble_over_ideal(const Json& row) {
  const Json& in = row.at("inputs");
  const Even e = even(in, Schedule::one_f_one_b, whole(in, "microbatches"),
                      {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  return simulate_pipeline(e.problem, e.stages, 0).seconds / e.work - 1;
}

// Of the rank that takes longest from its first pass to its last.
Answer bubble_rate(const Json& row) {
  const Json& in = row.at("inputs");
  const auto schedule = schedule_of(in.at("schedule").get<std::string>());
  if (!schedule) return Skip{"schedule not modelled: " + in.at("schedule").get<std::string>()};
  const PassTime pass{.forward = in.at("T_F_ms"),
                      .input_gradient = in.at("T_B_ms"),
                      .weight_gradient = in.at("T_W_ms")};
  const double message = in.at("T_comm_ms");
  const Even e = even(in, *schedule, whole(in, "microbatches"), pass);
  const PipelineTime time = simulate_pipeline(e.problem, e.stages, message);
  double cost = 0;
  for (std::size_t rank = 0; rank < time.ranks.size(); ++rank) {
    const double first = static_cast<double>(rank) * (pass.forward + message);
    cost = std::max(cost, time.ranks[rank].finished - first);
  }
  // The paper's interleaved schedule, of which it prints no order, waits for p messages less than
  // Megatron's order does.
  if (*schedule == Schedule::interleaved) cost -= static_cast<double>(whole(in, "pp")) * message;
  return (cost - e.work) / cost;
}

// DeepSeek-V3 report, Table 2: for a step long enough.
Answer bubble_time(const Json& row) {
  const Json& in = row.at("inputs");
  const double weight = in.at("W");
  const PassTime pass{.forward = in.at("F"),
                      .input_gradient = in.at("B_full").get<double>() - weight,
                      .weight_gradient = weight};
  const auto schedule = schedule_of(in.at("schedule").get<std::string>());
  const Even e = even(in, *schedule, 4 * whole(in, "pp"), pass);
  return simulate_pipeline(e.problem, e.stages, 0).seconds - e.work;
}

}  // namespace

std::optional<Answer> time_answer(const std::string& quantity, const Json& row) {
  static const std::map<std::string, Answer (*)(const Json&)> table{
      {"MFU", model_utilisation},
      {"HFU", hardware_utilisation},
      {"selective_flop_overhead", selective_overhead},
      {"training_days", training_days},
      {"bubble_over_ideal", bubble_over_ideal},
      {"bubble_rate", bubble_rate},
      {"bubble_time", bubble_time}};
  const auto found = table.find(quantity);
  if (found == table.end()) return std::nullopt;
  return found->second(row);
}

}  // namespace zeroplan::papers
