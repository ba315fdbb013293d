#pragma once
// Which parameters are gathered at once under ZeRO 3? DeepSpeed's coordinator, step by step.

#include <cstdint>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Elements that are gathered at once: of parameters, and of the buffers in which several are
/// gathered as one.
struct LiveParameters {
  std::int64_t at_turn = 0;  // the most in the backward pass of the head
  std::int64_t at_head = 0;  // the most in the forward pass of the head
  /// The most in the forward pass of each layer, of the first with the embedding.
  std::vector<std::int64_t> in_layers;
  std::int64_t at_end = 0;  // the most in the backward pass of the embedding
  /// The most in the backward pass of each parameter that comes and goes, in model order.
  std::vector<std::int64_t> beside;
  /// What is sent in each pass, in so many calls; of small parameters, once they are updated.
  struct Gathered {
    std::int64_t elements = 0;
    std::int64_t calls = 0;
  };
  Gathered forward, backward, updated;
};

/// Parameters of so few elements stay (stage3_param_persistence_threshold).
inline constexpr std::int64_t largest_persistent = 100'000;

/// What is gathered in a step with a recorded order, the second one on. Parameters are gathered
/// where a module needs them, and ahead: each module that starts asks for up to
/// `stage3_prefetch_bucket_size` elements more, whatever is under way, while fewer than
/// `stage3_max_live_parameters` are there. After its pass a module's parameters go, unless they are
/// needed within `stage3_max_reuse_distance`, or the search for what to gather ahead has passed
/// their next use; small ones stay always. Modules are those of a Llama of Transformers: one a
/// tensor, and some that have none. Nothing below ZeRO 3. Walks all starts of a step: to be asked
/// once a plan. Source: deepspeed
/// runtime/zero/{partitioned_param_coordinator,partition_parameters}.py @edaa72212.
LiveParameters live_parameters(const Problem& problem, const WeightInventory& inventory);

}  // namespace zeroplan
