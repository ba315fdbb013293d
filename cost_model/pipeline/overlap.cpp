// What does a collective run beside? Front door: hidden_behind.
#include "cost_model/pipeline/overlap.hpp"

namespace zeroplan {
namespace {

bool is_sharding_group(std::string_view name) {
  return name == "dp" || name == "shard" || name == "replica" || name == "expert-dp" ||
         name == "secondary";
}

// Megatron-Core core/models/common/model_chunk_schedule_plan.py.
Behind experts(const Problem& p) {
  const bool beside =
      p.runtime.kind == Runtime::megatron && p.runtime.megatron.overlap_moe_expert_parallel_comm;
  return beside ? Behind::other_pass : Behind::nothing;
}

}  // namespace

Behind hidden_behind(const Problem& problem, const CollectiveLoad& load) {
  if (load.in_parts) return Behind::parts;
  if (load.asynchronous) return Behind::products;
  if (load.group.name == "ep") return experts(problem);
  const RuntimeCode& code = code_of(problem);
  if (load.group.name == "cp") return code.context_behind(problem, load);
  return is_sharding_group(load.group.name) ? code.replicas_behind(problem, load) : Behind::nothing;
}

Behind waits(const Problem&, const CollectiveLoad&) {
  return Behind::nothing;
}

}  // namespace zeroplan
