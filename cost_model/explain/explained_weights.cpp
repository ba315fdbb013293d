// Which weights make up the elements of a rank? Front door: add_weights.
#include "cost_model/explain/explanation.hpp"

namespace zeroplan {

void add_weights(Explanation& out,
                 const Problem& problem,
                 const WeightInventory& inventory,
                 const Stage& stage) {
  std::int64_t sum = 0;
  const auto add = [&](std::string_view block, const std::vector<Weight>& weights,
                       std::int64_t count) {
    if (count == 0) return;
    for (const Weight& w : weights) {
      const LocalWeight local = local_weight(w, problem);
      out.weights.push_back({w.name, block, count, local});
      sum += count * local.elements();
    }
  };
  if (stage.embedding) add("embedding", inventory.embedding, 1);
  for (const LayerKind kind : all_layer_kinds) {
    add(layer_name(problem.model, kind), inventory.layer(kind),
        layer_count(problem.model, stage, kind));
  }
  if (stage.head) {
    const std::int64_t modules = held_mtp_modules(problem);
    if (!stage.embedding && modules > 0) add("MTP embedding", inventory.mtp_embedding, 1);
    add("MTP module", inventory.mtp, modules);
    add("head", inventory.head, 1);
  }
  if (stage.head && !stage.embedding && holds_tied_copy(problem))
    add("tied head", inventory.tied_head, 1);
  out.elements = stage_elements(problem, inventory, stage, state_recipe(problem).padding).full();
  out.padding = out.elements - sum;
}

}  // namespace zeroplan
