// Predicted times of layers and whole micro-batches beside published ones.

#include <fstream>
#include <nlohmann/json.hpp>

#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/network/collective_time.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/kernel/efficiency_rows.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// One layer of the 22B model of Korthikanti et al. 2022, Table 4: A100, tp 8, micro-batch 4,
// attention not fused.
Problem korthikanti(const std::string& technique) {
  Problem p = problem(Runtime::megatron, "megatron-22b", {.tp = 8, .micro_batch = 4});
  p.runtime = load_runtime(
      Runtime::megatron,
      {{"transformer_engine", "local"}, {"hidden_dropout", "0.1"}, {"attention_dropout", "0.1"}});
  p.training.sequence_length = 2048;
  p.training.attention = AttentionKernel::unfused;
  p.training.precision = Precision::fp16;
  p.layout.sequence_parallel = technique.ends_with("sp");
  if (technique.starts_with("selective")) p.layout.recompute = Recompute::selective;
  if (technique == "full_recompute") p.layout.recompute = Recompute::full;
  return p;
}

// Two reductions each way, and the forward pass's again with full recompute. Sequence parallelism
// replaces each by a gather and a scatter.
double communication_seconds(const Problem& p, bool forward) {
  const CommunicationGroup group{.ranks = 8,
                                 .ranks_per_node = 8,
                                 .intra_node_bandwidth = p.cluster.intra_node_bandwidth,
                                 .compute_capability = p.cluster.gpu.compute_capability};
  const Bytes buffer{2 * local_tokens(p) * p.model.hidden_size};
  const auto seconds = [&](Collective c) { return collective_time(c, group, buffer).seconds; };
  const double once = p.layout.sequence_parallel
                          ? seconds(Collective::all_gather) + seconds(Collective::reduce_scatter)
                          : seconds(Collective::all_reduce);
  const bool twice = !forward && p.layout.recompute == Recompute::full;
  return (twice ? 4 : 2) * once;
}

Problem llama2(std::int64_t samples) {
  Problem p = problem(Runtime::fsdp2, "llama2-7b", {.micro_batch = samples});
  p.training.sequence_length = 2048;
  p.runtime.fsdp2.compile = true;  // it runs fused kernels
  p.runtime.fsdp2.loss_chunks = 1;
  return p;
}

// Seconds a step of SimuMax's B200 runs takes for each micro-batch more: the optimizer and the
// gradients' reduction come once a step and drop out.
double measured_micro_batch(const std::string& id_before_count) {
  std::map<int, double> step;
  std::ifstream file(source_dir() + "/tests/reference/measured.jsonl");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    for (const int count : {8, 32}) {
      if (row["id"] == id_before_count + std::to_string(count) + "_cef") {
        step[count] = row["step_time_s"];
      }
    }
  }
  REQUIRE(step.size() == 2);
  return (step[32] - step[8]) / (32 - 8);
}

Problem simumax(std::string_view model, const Layout& layout) {
  Problem p = problem(Runtime::megatron, model, layout, "B200");
  p.runtime = load_runtime(Runtime::megatron, {{"cross_entropy_loss_fusion", "true"},
                                               {"cross_entropy_fusion_impl", "te"},
                                               {"moe_pad_expert_input_to_capacity", "true"}});
  return p;
}

double seconds_in_node(Collective collective, std::int64_t ranks, Bytes payload) {
  const CommunicationGroup group{.ranks = ranks,
                                 .ranks_per_node = ranks,
                                 .intra_node_bandwidth = 900e9,
                                 .compute_capability = 100};
  return collective_time(collective, group, payload).seconds;
}

double ends_seconds(const Problem& p) {
  const BlockTime embedding = embedding_time(p);
  const BlockTime head = head_time(p);
  return (embedding.forward + embedding.backward() + head.forward + head.backward()).total();
}

}  // namespace

TEST_CASE("a layer takes what Korthikanti et al. measured, Table 4") {
  std::ifstream file(source_dir() + "/tests/reference/paper_cases.jsonl");
  REQUIRE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const std::string quantity = row["expect"]["quantity"];
    const bool forward = quantity == "layer_forward_time";
    if (!forward && quantity != "layer_backward_time") continue;
    const Problem p = korthikanti(row["inputs"]["technique"]);
    const BlockTime time = layer_time(p, LayerKind::dense);
    const double predicted = (forward ? time.forward_seconds() : time.backward_seconds()) +
                             communication_seconds(p, forward);
    CAPTURE(row["id"]);
    REQUIRE(1e3 * predicted == Approx(row["expect"]["value"].get<double>()).epsilon(0.1));
    ++rows;
  }
  REQUIRE(rows == 10);
}

TEST_CASE("a layer and the ends take what Galvatron measured") {
  // Forward passes of Llama 2 7B on an A100 it does not name; none was fitted on. With one sample
  // the host is the slower one there.
  int rows = 0;
  for (const tests::EfficiencyRow& row : tests::efficiency_rows()) {
    const bool layer = row.op() == "transformer_layer_fwd";
    if (!layer && row.op() != "embedding+head_fwd") continue;
    const std::int64_t samples = row.size("batch");
    if (samples < 4) continue;
    const Problem p = llama2(samples);
    const double seconds = layer ? layer_time(p, LayerKind::dense).forward.total()
                                 : embedding_time(p).forward.total() + head_time(p).forward.total();
    CAPTURE(row.op(), samples);
    const double milliseconds = 1e3 * seconds / static_cast<double>(samples);
    REQUIRE(milliseconds == Approx(row.json["measured"]["value"].get<double>()).epsilon(0.13));
    ++rows;
  }
  REQUIRE(rows == 18);
}

TEST_CASE("a micro-batch takes what SimuMax measured on B200") {
  // Twelve layers of Llama 3 70B. At tp 8 the host is the slower one. Blackwell's sustained
  // efficiency and host time come from these runs among others.
  for (const auto& [tp, run] : {std::pair{2, "llama3_70b_tp2_pp1_dp4_l12_mbc"},
                                std::pair{4, "llama3_70b_l12_tp4_pp1_dp2_mbc"},
                                std::pair{8, "llama3_70b_l12_tp8_pp1_dp1_mbc"}}) {
    const Problem p = simumax("llama3-70b", {.tp = tp, .sequence_parallel = true});
    const Bytes buffer{2 * local_tokens(p) * p.model.hidden_size};
    const double reductions = 2 * (seconds_in_node(Collective::all_gather, tp, buffer) +
                                   seconds_in_node(Collective::reduce_scatter, tp, buffer));
    const BlockTime layer = layer_time(p, LayerKind::dense);
    const double forward = std::max(layer.forward.total() + reductions, layer.host.forward);
    const double backward = std::max(layer.backward().total() + reductions, layer.host.backward);
    CAPTURE(tp);
    REQUIRE(12 * (forward + backward) + ends_seconds(p) ==
            Approx(measured_micro_batch(std::string("simumax-b200-") + run)).epsilon(0.06));
  }
}

TEST_CASE("a micro-batch of experts takes what SimuMax measured on B200") {
  // DeepSeek-V2, one dense and three MoE layers, ep 8, padded to capacity, permutation fused. The
  // host is the slower one forward.
  Problem p = simumax("deepseek-v2", {.dp = 8, .ep = 8});
  p.runtime.megatron.moe_permute_fusion = true;
  const Bytes sent{2 * local_tokens(p) * p.model.moe->experts_per_token * p.model.hidden_size};
  const BlockTime dense = layer_time(p, LayerKind::dense);
  const BlockTime moe = layer_time(p, LayerKind::moe);
  const double exchanges = 3 * 2 * seconds_in_node(Collective::all_to_all, 8, sent);
  const double forward = dense.forward.total() + 3 * moe.forward.total() + exchanges;
  const double backward = dense.backward().total() + 3 * moe.backward().total() + exchanges;
  const double host = dense.host.forward + 3 * moe.host.forward;
  REQUIRE(forward < host);
  const double predicted = host + backward + ends_seconds(p);
  const double measured = measured_micro_batch("simumax-b200-deepseekv2_tp1_ep8_pp1_dp8_l4_mbc");
  CAPTURE(predicted, measured);
  REQUIRE(predicted == Approx(measured).epsilon(0.05));
}
