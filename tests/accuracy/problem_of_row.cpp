// Which question does a row put to the cost model? Front door: problem_of.
#include "tests/accuracy/problem_of_row.hpp"

#include <fmt/format.h>

#include <array>
#include <regex>

#include "cost_model/legality/legality.hpp"
#include "cost_model/question/layer_width.hpp"
#include "planner/request.hpp"
#include "presets/catalog.hpp"
#include "presets/input_error.hpp"
#include "tests/accuracy/completed.hpp"
#include "tests/accuracy/settings.hpp"

namespace zeroplan::accuracy {
namespace {

// Which runtime predicts a framework. Where one stands in for another, the label says so.
struct Executor {
  std::string_view framework;
  Runtime runtime;
  std::string_view label;
  std::vector<Override> (*settings)(const Row&);
};

constexpr std::array<Executor, 8> executors{{
    {"megatron", Runtime::megatron, "megatron", megatron_settings},
    {"megatron (Megatron-SWIFT)", Runtime::megatron, "megatron", megatron_settings},
    {"nanotron", Runtime::nanotron, "nanotron", nanotron_settings},
    {"fsdp2", Runtime::fsdp2, "fsdp2", fsdp2_settings},
    {"ddp", Runtime::ddp, "ddp", ddp_settings},
    {"fsdp1", Runtime::fsdp2, "fsdp1 as fsdp2", fsdp2_settings},
    {"deepspeed", Runtime::deepspeed, "deepspeed", deepspeed_settings},
    {"megatron-deepspeed", Runtime::deepspeed, "megatron-deepspeed as deepspeed",
     deepspeed_settings},
}};

const Executor& executor_of(const Row& row) {
  for (const Executor& executor : executors) {
    if (executor.framework == row.framework) return executor;
  }
  throw Skip("framework " + row.framework.substr(0, row.framework.find_first_of(" +(")));
}

// The cost model describes decoders, of a hybrid's layers where the row says which they are.
void require_decoder(const Row& row) {
  if (row.has_argument("flextron")) throw Skip("elastic model");
  const auto is_called = [&](const char* other) {
    return contains(row.family, other) || row.model.name.starts_with(other);
  };
  if (is_called("bert") || is_called("t5")) throw Skip("encoder model");
  if (!is_hybrid(row) && (is_called("hybrid") || is_called("mamba"))) {
    throw Skip("hybrid model whose layers are not said");
  }
}

// An incomplete row that measured something else was never a case for a prediction of memory.
void require_complete(const Row& row) {
  if (row.complete) return;
  if (row.measured) throw Skip(incomplete);
  throw Skip(row.throughput.published() ? "throughput only" : "no memory figure");
}

// "800 Gbit/s per node", "4x100 Gb/s Omni-Path per node": where a row says what joins its nodes.
void read_network(const Row& row, ClusterSpec& cluster) {
  static const std::regex words("([0-9]+)(?:x([0-9]+))? Gb(?:it)?/s[^,;.]* per node");
  std::smatch found;
  if (!std::regex_search(row.notes, found, words)) return;
  const bool cards = found[2].matched;
  constexpr double bytes_per_second = 1e9 / 8;
  cluster.network_cards = cards ? std::stoll(found[1]) : 1;
  cluster.inter_node_bandwidth =
      std::stod(found[1]) * (cards ? std::stod(found[2]) : 1) * bytes_per_second;
}

ClusterSpec cluster_of_row(const Row& row) {
  if (!row.gpu) throw Skip("GPU not named");
  try {
    ClusterSpec cluster = cluster_of(*row.gpu, required(row.gpus));
    read_network(row, cluster);
    return cluster;
  } catch (const InputError&) {
    throw Skip("GPU not in the catalog: " + *row.gpu);
  }
}

RuntimeSpec runtime_of(const Row& row, const Executor& executor) {
  try {
    return load_runtime(executor.runtime, executor.settings(row));
  } catch (const InputError& error) {
    constexpr std::string_view option = "--set ";
    std::string message = error.what();
    if (message.starts_with(option)) message.erase(0, option.size());
    throw Skip("not modelled: " + message.substr(0, message.find(':')));
  }
}

// Who publishes only times and names no ZeRO stage is taken to use none.
ZeroStage zero_of(const Row& row, Runtime runtime) {
  if (!row.sharding.stage && !row.measured && row.throughput.published()) return ZeroStage::none;
  const std::int64_t stage = required(row.sharding.stage);
  if (stage < 0 || stage > 3) throw Skip(incomplete);
  // FSDP's second form: parameters stay gathered from forward to backward.
  const bool kept = row.sharding.reshard_after_forward.value_or("").starts_with("never");
  return runtime == Runtime::fsdp2 && kept ? ZeroStage::gradients : static_cast<ZeroStage>(stage);
}

// Ranks of one copy of the states within the data-parallel group; 0 where that is the whole group.
std::int64_t hybrid_width(const Row& row) {
  const std::int64_t dp = required(row.dp);
  const std::int64_t cp = required(row.cp);
  if (row.sharding.degree && *row.sharding.degree < dp * cp) return *row.sharding.degree / cp;
  constexpr const char* completed = "ddp.num_distributed_optimizer_instances";
  const auto said = row.completed.find(completed);
  const std::int64_t copies = said != row.completed.end()
                                  ? std::stoll(said->second)
                                  : row.argument("num-distributed-optimizer-instances", 1);
  return copies > 1 ? dp / copies : 0;
}

// vTrain's configurations of single nodes ask for full recompute, but what was measured is too fast
// for it: 16.3 ms a layer at width 2,048 with eight samples would be 219 TFLOP/s, softmax and
// dropout included, where GEMMs alone reach 250; whole steps would be 189 where Narayanan et al.
// reach 137 at width 2,304 (Table 1). Without it the rows are alike at pp 1, 2 and 4.
Recompute recompute_of(const Row& row) {
  if (row.family == "vtrain-single") return Recompute::none;
  const std::string& kind = required(row.recompute.kind);
  for (const Recompute value : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (kind.starts_with(name_of(value))) return value;
  }
  throw Skip("recompute not modelled: " + kind);
}

Precision precision_of(const Row& row) {
  const std::string& text = required(row.precision);
  if (text == "nvfp4") return Precision::nvfp4;
  if (contains(text, "nvfp4")) throw Skip("precision not modelled: nvfp4");
  if (contains(text, "fp8") || contains(text, "float8")) return Precision::fp8;
  // Korthikanti et al. 2022: gradients are fp32, which is Megatron's way with bf16 alone.
  if (text.starts_with("fp16/bf16")) return Precision::bf16;
  if (text.starts_with("fp16")) return Precision::fp16;
  if (contains(text, "bf16")) return Precision::bf16;
  if (text == "fp32") return Precision::fp32;
  throw Skip("precision not modelled: " + text);
}

OptimizerKind optimizer_of(const Row& row) {
  const std::string& text = required(row.optimizer);
  if (contains(text, "8-bit")) return OptimizerKind::adam8bit;
  if (contains(text, "dam")) return OptimizerKind::adam;  // adam, FusedAdam, DecoupledAdamW
  if (contains(text, "muon")) return OptimizerKind::muon;
  if (contains(text, "sgd")) return OptimizerKind::sgd;
  throw Skip("optimizer not modelled: " + text);
}

Schedule schedule_of(const Row& row) {
  const std::optional<Schedule> schedule = parse_name<Schedule>(*row.schedule);
  if (!schedule) throw Skip("schedule not modelled: " + *row.schedule);
  return *schedule;
}

// Every fused kernel, FlexAttention included, keeps a row statistic instead of the scores.
AttentionKernel attention_of(const Row& row) {
  const std::string& text = required(row.attention);
  const bool scores = contains(text, "unfused") || contains(text, "eager");
  return scores ? AttentionKernel::unfused : AttentionKernel::flash;
}

Request request_of(const Row& row, const Executor& executor) {
  Request request{
      .model = model_of(row), .cluster = cluster_of_row(row), .runtime = runtime_of(row, executor)};
  widen_ends(request.model, request.runtime.megatron);
  request.vpp = required(row.vpp);
  request.hsdp = hybrid_width(row);
  request.micro_batch = required(row.micro_batch);
  request.global_batch = required(row.global_batch);
  request.sequence_length = required(row.sequence);
  // Megatron-LM switches it off without tensor parallelism.
  request.sequence_parallel = required(row.sequence_parallel) && required(row.tp) > 1;
  request.precision = precision_of(row);
  if (row.schedule) request.schedule = schedule_of(row);
  request.optimizer = optimizer_of(row);
  request.attention = attention_of(row);
  if (row.sharding.offload) throw Skip("offload");
  return request;
}

LayoutChoice layout_of(const Row& row, const Request& request) {
  LayoutChoice choice{.tp = required(row.tp),
                      .pp = required(row.pp),
                      .cp = required(row.cp),
                      .zero = zero_of(row, request.runtime.kind),
                      .recompute = recompute_of(row)};
  if (!request.model.moe) return choice;
  choice.ep = required(row.ep);
  // Megatron-LM's default is its tensor parallelism; the others have none inside experts.
  const bool megatron = request.runtime.kind == Runtime::megatron;
  const Count etp = row.model.experts && row.model.experts->etp ? row.model.experts->etp : row.etp;
  choice.etp = etp.value_or(megatron ? choice.tp : 1);
  return choice;
}

void require_positive(const Row& row) {
  for (const Count& count : {row.gpus, row.sequence, row.micro_batch, row.global_batch, row.dp,
                             row.tp, row.pp, row.vpp, row.cp, row.ep}) {
    if (required(count) < 1) throw Skip(incomplete);
  }
}

}  // namespace

Case problem_of(const Row& row) {
  const Executor& executor = executor_of(row);
  require_decoder(row);
  require_complete(row);
  require_positive(row);
  const Request request = request_of(row, executor);
  Problem problem = complete(request, layout_of(row, request));
  problem.layout.dp = *row.dp;  // legality compares it with the number of GPUs
  if (const auto violation = first_violation(problem)) {
    throw Skip(fmt::format("layout not legal: {}", violation->rule));
  }
  std::string family = family_of(row, problem);
  return {.problem = std::move(problem),
          .runtime = std::string(executor.label),
          .family = std::move(family)};
}

}  // namespace zeroplan::accuracy
