// What do DeepSpeed's reductions run beside? Front door: deepspeed_replicas.
#include "cost_model/pipeline/overlap.hpp"

#include "cost_model/runtime/deepspeed/code.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {

// Stage 3 prefetches in passes, and waits for what it sends around the optimizer. Stages 1 and 2
// overlap where `overlap_comm` says so, the first with the backward pass of the last micro-batch,
// the only one that reduces (runtime/zero/stage_1_and_2.py reduce_ready_partitions_and_remove_grads
// @edaa72212); a pipeline, which runs those passes itself, with none, nor BF16_Optimizer.
Behind deepspeed_replicas(const Problem& p, const CollectiveLoad& load) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  if (p.layout.zero == ZeroStage::parameters) {
    const bool around_step = load.during == During::step && load.group.name == "dp";
    return around_step ? Behind::nothing : Behind::pass;
  }
  if (!set.overlap_comm || load.collective == Collective::all_gather) return Behind::nothing;
  if (load.during == During::backward) return Behind::pass;
  const bool hooked = deepspeed_optimizer(p) == DeepspeedOptimizer::stage1 && p.layout.pp == 1;
  return hooked ? Behind::last_backward : Behind::nothing;
}

}  // namespace zeroplan
