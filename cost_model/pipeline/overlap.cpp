// What does a collective run beside? Front door: hidden_behind.
#include "cost_model/pipeline/overlap.hpp"

namespace zeroplan {

Behind hidden_behind(const Problem& problem, const CollectiveLoad& load) {
  if (load.beside == Beside::parts) return Behind::parts;
  if (load.beside == Beside::products) return Behind::products;
  if (load.beside == Beside::pass) return Behind::pass;
  if (load.beside == Beside::waited) return Behind::nothing;
  const RuntimeCode& code = code_of(problem);
  if (load.group.name == "ep") return code.experts_behind(problem, load);
  if (load.group.name == "cp") return code.context_behind(problem, load);
  return holds_states(load.group.name) ? code.replicas_behind(problem, load) : Behind::nothing;
}

Behind waits(const Problem&, const CollectiveLoad&) {
  return Behind::nothing;
}

}  // namespace zeroplan
