// What do ranks send each other in a published case? Front door: traffic_answer.
#include <functional>
#include <map>

#include "cost_model/network/volume.hpp"
#include "tests/papers/inputs.hpp"

namespace zeroplan::papers {
namespace {

constexpr double element = 2;  // bytes; papers count elements

double sent(const std::vector<CollectiveLoad>& loads, std::string_view group) {
  Bytes sum;
  for (const CollectiveLoad& load : loads) {
    if (load.group.name == group) sum += sent_bytes_per_step(load);
  }
  return static_cast<double>(sum.count());
}

// Elements over parameters, with so many ranks that (N-1)/N is 1.
Answer data_parallel(const Json& row) {
  constexpr std::int64_t ranks = std::int64_t{1} << 31;
  constexpr double parameters = static_cast<double>(std::int64_t{1} << 40);
  Problem p = problem(Runtime::zero_paper, of_size(parameters));
  p.layout.dp = ranks;
  p.layout.zero = static_cast<ZeroStage>(whole(row.at("inputs"), "zero_stage"));
  p.training.global_batch = ranks;
  const Stage all{.chunks = {{0, 0}}, .embedding = true, .head = true};
  const auto loads = step_collectives(p, weight_inventory(p.model), all);
  return sent(loads, "dp") / element / parameters;
}

Problem on_one_stage(const Json& in) {
  Json shape = in;
  shape["layers"] = in.value("layers_per_stage", 1);
  shape["heads"] = in.value("heads", whole_or(in, "tp", 1));  // which none would have to share
  Problem p = problem(Runtime::megatron, gpt(shape));
  p.training.sequence_length = whole(in, "seq");
  p.training.global_batch = p.layout.micro_batch = whole_or(in, "micro_batch", 1);
  p.layout.tp = whole_or(in, "tp", 1);
  return p;
}

Answer tensor_parallel(const Json& row) {
  const Problem p = on_one_stage(row.at("inputs"));
  const Stage stage{.chunks = {{0, p.model.layers}}};
  return sent(pass_collectives(p, weight_inventory(p.model), stage), "tp") / element;
}

Answer pipeline_parallel(const Json& row) {
  Problem p = on_one_stage(row.at("inputs"));
  p.runtime.megatron.scatter_gather_tensors_in_pipeline =
      row.at("inputs").value("scatter_gather", false);
  return static_cast<double>(pipeline_message(p).count()) / element;
}

Answer all_to_all(const Json& row) {
  const Json& in = row.at("inputs");
  const Bytes payload{2 * whole(in, "tokens") * whole(in, "topk") * whole(in, "hidden")};
  const Bytes bytes = sent_bytes_per_rank(Collective::all_to_all, whole(in, "ep"), payload);
  return static_cast<double>(bytes.count()) / element;
}

// One checkpointed layer of DeepSpeed's, tp apart and again with its checkpoint divided over tp.
Answer divided_checkpoints(const Json&) {
  const Json in{{"seq", 1024}, {"hidden", 4096}, {"layers", 1}, {"tp", 16}};
  Problem p = on_one_stage(in);
  p.runtime = load_runtime(Runtime::deepspeed, {});
  p.layout.recompute = Recompute::full;
  const Stage layer{.chunks = {{0, 1}}};
  const double before = sent(pass_collectives(p, weight_inventory(p.model), layer), "tp");
  p.runtime.deepspeed.partition_activations = true;
  return sent(pass_collectives(p, weight_inventory(p.model), layer), "tp") / before - 1;
}

// ZeRO-3 and ZeRO++ across nodes, in 16-bit sizes of the model, what each rank has itself included.
// Quantised collectives are not modelled.
Answer across_nodes(const Json& row, Collective collective, During during) {
  constexpr std::int64_t ranks = 1024;
  constexpr double parameters = static_cast<double>(std::int64_t{1} << 40);
  const bool secondary = row.at("inputs").at("scheme") == "zero++";
  if (secondary && during == During::forward) return Skip{"quantised collectives are not modelled"};
  // In an embedding and an output layer: a pass asks once for each.
  ModelSpec model = of_size(parameters / 2);
  model.tied_embeddings = false;
  Problem p = problem(Runtime::deepspeed, model);
  DeepspeedSettings& set = p.runtime.deepspeed;
  set.hpz_partition_size = secondary ? 8 : 1;
  set.reduce_bucket_size = set.stage3_prefetch_bucket_size = std::int64_t{1} << 29;
  set.stage3_max_reuse_distance = 0;  // each pass gathers all, as the paper counts
  p.layout.dp = p.training.global_batch = ranks;
  p.layout.zero = ZeroStage::parameters;
  const Stage all{.chunks = {{0, 0}}, .embedding = true, .head = true};
  Bytes sum;
  for (const CollectiveLoad& load : step_collectives(p, weight_inventory(p.model), all)) {
    if (load.group.name != "dp" || load.collective != collective) continue;
    if (load.during == during || load.during == During::step) sum += sent_bytes_per_step(load);
  }
  constexpr double others = static_cast<double>(ranks - 1) / ranks;
  return static_cast<double>(sum.count()) / element / parameters / others;
}

Answer forward_gather(const Json& row) {
  return across_nodes(row, Collective::all_gather, During::forward);
}
Answer backward_gather(const Json& row) {
  return across_nodes(row, Collective::all_gather, During::backward);
}
Answer gradient_scatter(const Json& row) {
  return across_nodes(row, Collective::reduce_scatter, During::backward);
}

// What the ranks of a group exchange in a layer's forward pass, the part for oneself included.
Answer sequence_parallel(const Json& row) {
  const Json& in = row.at("inputs");
  const bool megatron = in.contains("scheme");
  Json shape = in;
  shape["layers"] = 1;
  shape["heads"] = whole(in, "sp");
  Problem p = problem(megatron ? Runtime::megatron : Runtime::deepspeed, gpt(shape));
  p.training.sequence_length = whole(in, "seq");
  (megatron ? p.layout.tp : p.layout.cp) = whole(in, "sp");
  p.layout.sequence_parallel = megatron;
  double payload = 0;
  for (const CollectiveLoad& load :
       pass_collectives(p, weight_inventory(p.model), {.chunks = {{0, 1}}})) {
    if (load.during != During::forward) continue;
    payload += static_cast<double>(load.calls * load.payload.count());
  }
  return payload / element;
}

Answer bus_bandwidth(const Json& row) {
  static const std::map<std::string, Collective> names{
      {"all_reduce", Collective::all_reduce},
      {"all_gather", Collective::all_gather},
      {"reduce_scatter", Collective::reduce_scatter},
      {"all_to_all", Collective::all_to_all},
      {"alltoall", Collective::all_to_all},
      {"broadcast", Collective::broadcast},
      {"sendrecv", Collective::send_recv},
      {"send_recv", Collective::send_recv}};
  const Json& in = row.at("inputs");
  const auto found = names.find(in.at("collective").get<std::string>());
  if (found == names.end()) return Skip{"no runtime uses this collective"};
  const std::int64_t ranks = whole(in, "ranks");
  const Bytes payload{ranks << 20};
  return static_cast<double>(sent_bytes_per_rank(found->second, ranks, payload).count()) /
         static_cast<double>(payload.count());
}

}  // namespace

std::optional<Answer> traffic_answer(const std::string& quantity, const Json& row) {
  static const std::map<std::string, Answer (*)(const Json&)> table{
      {"dp_comm_volume_per_step", data_parallel},
      {"tp_comm_elements_per_device_per_microbatch", tensor_parallel},
      {"pp_p2p_elements_per_microbatch_per_direction", pipeline_parallel},
      {"all_to_all_send_elements_per_gpu", all_to_all},
      {"comm_elements_per_link_per_layer_forward", sequence_parallel},
      {"Pa_comm_overhead_vs_MP", divided_checkpoints},
      {"cross_node_fwd_allgather", forward_gather},
      {"cross_node_bwd_allgather", backward_gather},
      {"cross_node_bwd_reduce_scatter", gradient_scatter},
      {"busbw_over_algbw", bus_bandwidth}};
  const auto found = table.find(quantity);
  if (found == table.end()) return std::nullopt;
  return found->second(row);
}

}  // namespace zeroplan::papers
