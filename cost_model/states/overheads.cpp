// What takes device memory besides tensors? Front door: communicator_bytes.
#include "cost_model/states/overheads.hpp"

#include <algorithm>

#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

constexpr Bytes communicator_base = 4_MiB;
constexpr Bytes channel_bookkeeping = 6_MiB;
constexpr Bytes ring_in_node = 12_MiB;
constexpr Bytes ring_over_network = 20_MiB;
constexpr std::int64_t channels_nvlink = 24;  // NCCL logs of NVSwitch nodes, A100 and H100
constexpr std::int64_t channels_pcie = 2;
constexpr std::int64_t channels_network = 4;      // one GPU a node and group
constexpr std::int64_t channels_pipeline = 8;     // send/receive pairs over the network
constexpr Bytes network_pools = 32_MiB;           // send and receive pools of such a pair
constexpr std::int64_t channels_all_to_all = 32;  // to each peer over NVLink
constexpr std::int64_t channels_all_to_all_network = 2;

// Ranks of expert parallelism that share NVLink.
std::int64_t ranks_beside(const Problem& p) {
  return std::min(p.layout.ep, std::max<std::int64_t>(1, p.cluster.gpus_per_node / p.layout.etp));
}

bool has_own_dispatch(const Problem& p) {
  return p.model.moe && p.layout.ep > 1 && p.runtime.kind == Runtime::megatron &&
         p.runtime.megatron.moe_token_dispatcher_type == TokenDispatcher::flex;
}

Bytes group_bytes(const ProcessGroup& group, bool nvlink) {
  const std::int64_t local = nvlink ? channels_nvlink : channels_pcie;
  if (group.name == "pp" && group.spans_nodes) {
    return communicator_base + channels_pipeline * channel_bookkeeping + network_pools;
  }
  if (group.name == "ep") {
    const std::int64_t channels = !nvlink             ? channels_pcie
                                  : group.spans_nodes ? channels_all_to_all_network
                                                      : channels_all_to_all;
    const std::int64_t peers = group.ranks - 1;
    // Over the network all peers share two pools; inside a node each pair has its own buffers.
    const Bytes buffers = group.spans_nodes ? 2 * network_pools : peers * channels * ring_in_node;
    return communicator_base + local * channel_bookkeeping + buffers;
  }
  const std::int64_t channels = group.spans_nodes ? channels_network : local;
  const Bytes ring = group.spans_nodes ? ring_over_network : ring_in_node;
  return communicator_base + channels * (channel_bookkeeping + ring);
}

// What a probe saw: groups that reduce and gather, inside a node.
const MeasuredOverheads::Communicator* measured(const Problem& problem, const ProcessGroup& group) {
  if (group.spans_nodes || group.name == "pp" || group.name == "ep") return nullptr;
  for (const auto& one : problem.cluster.overheads.communicators) {
    if (one.ranks == group.ranks) return &one;
  }
  return nullptr;
}

}  // namespace

bool is_measured(const Problem& problem, const ProcessGroup& group) {
  return measured(problem, group) != nullptr;
}

std::vector<ProcessGroup> process_groups(const Problem& problem) {
  const Layout& l = problem.layout;
  std::vector<ProcessGroup> groups;
  groups.reserve(6);
  const auto add = [&](std::string_view name, std::int64_t ranks, std::int64_t stride) {
    if (ranks > 1) groups.push_back({name, ranks, stride * ranks > problem.cluster.gpus_per_node});
  };
  add("tp", l.tp, 1);
  add("cp", l.cp, l.tp);
  add("dp", l.dp * l.cp,
      l.tp);  // states are sharded and reduced over data and context ranks together
  add("pp", l.pp, l.tp * l.cp * l.dp);
  if (problem.model.moe) {
    add("ep", l.ep, l.etp);
    add("expert-dp", shard_widths(problem).expert, l.etp * l.ep);
  }
  return groups;
}

Bytes communicator_bytes(const Problem& problem, const ProcessGroup& group) {
  if (const auto* found = measured(problem, group)) return found->bytes;
  if (group.name == "ep" && has_own_dispatch(problem)) return communicator_base;
  return group_bytes(group, problem.cluster.intra_node != LinkKind::pcie);
}

Bytes user_buffer_bytes(const Problem& problem) {
  if (!problem.runtime.megatron.tp_comm_overlap || problem.layout.tp == 1) return {};
  constexpr std::int64_t gathering = 8, scattering = 4;
  constexpr std::int64_t element = 2;
  const std::int64_t gathered = is_quantized(problem.training.precision) ? 1 : element;
  const std::int64_t features = local_tokens(problem) * problem.model.hidden_size;
  return Bytes{(gathering * gathered + scattering * element) * features};
}

Bytes symmetric_memory_bytes(const Problem& problem) {
  const std::int64_t ranks = problem.layout.tp;
  if (!problem.runtime.fsdp2.async_tensor_parallel || ranks == 1) return {};
  const std::int64_t elements = local_tokens(problem) * problem.model.hidden_size;
  return Bytes{2 * token_shape(problem).element * ceil_div(elements, ranks)};
}

Bytes dispatch_buffer_bytes(const Problem& p) {
  if (!has_own_dispatch(p)) return {};
  const std::int64_t hidden = routed_width(p.model);
  constexpr std::int64_t narrow = 2, wide = 4;
  if (p.runtime.megatron.moe_flex_dispatcher_backend == FlexBackend::hybridep) {
    constexpr std::int64_t block = 128;
    const std::int64_t experts = p.model.moe->experts * ranks_beside(p) / p.layout.ep;
    const std::int64_t token = narrow * hidden + wide * experts + wide * ceil_div(hidden, block);
    return Bytes{routed_tokens(p).local * p.layout.ep * token};
  }
  constexpr std::int64_t channels = 10, on_their_way = 256;
  return Bytes{channels * ranks_beside(p) * on_their_way * narrow * hidden};
}

Bytes communicator_bytes(const Problem& problem) {
  if (code_of(problem).counts_only) return {};
  Bytes total;
  for (const ProcessGroup& group : process_groups(problem)) {
    total += communicator_bytes(problem, group);
  }
  return total;
}

Bytes context_bytes(const Problem& problem) {
  if (code_of(problem).counts_only) return {};
  if (problem.cluster.overheads.context > Bytes{}) return problem.cluster.overheads.context;
  return code_of(problem).context(problem);
}

Bytes lazy_context(const Problem&) {
  return 512_MiB;
}

}  // namespace zeroplan
