// What does a forward pass keep? Front door: EagerPass.
#include "cost_model/runtime/pytorch_layers/pass.hpp"

#include <algorithm>

namespace zeroplan {

Tensor EagerPass::make(std::string_view name, Bytes bytes) {
  // Under a checkpoint nothing outlives the pass.
  return is_checkpoint() ? w_.temporary(name, bytes) : w_.save(name, bytes);
}

Tensor EagerPass::keep(std::string_view name, Bytes bytes) {
  if (!by_operator_ || bytes == Bytes{}) return make(name, bytes);
  if (reuses()) return cache_.at(used_++);
  cache_.push_back(w_.save(name, bytes));
  return cache_.back();
}

Tensor EagerPass::multiply(std::initializer_list<Module> linears,
                           std::string_view name,
                           Bytes bytes) {
  const bool odd = ++products_ % 2 == 1;
  odd ? run_kept(linears) : w_.run(linears);
  return odd ? keep(name, bytes) : make(name, bytes);
}

void EagerPass::drop(Tensor tensor) {
  const bool cached = is_checkpoint() && std::count(cache_.begin(), cache_.end(), tensor) > 0;
  if (!cached) w_.free(tensor);
}

}  // namespace zeroplan
