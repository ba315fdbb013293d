#pragma once
// What a block of one layer holds and sends, by name.

#include <string_view>
#include <vector>

#include "cost_model/question/runtime_code.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan::tests {

/// The layer of this kind, of which recompute repeats nothing.
inline Block layer_block(const Problem& p, LayerKind kind) {
  return code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, kind, 0);
}

/// Bytes of all tensors of a name.
inline std::vector<std::int64_t> sizes(const Block& block, std::string_view name) {
  std::vector<std::int64_t> list;
  for (const TensorSpec& t : block.tensors) {
    if (t.name == name) list.push_back(t.bytes.count());
  }
  return list;
}

/// Payloads of what a pass sends to a group, in order.
inline std::vector<std::int64_t> sent(const Block& block,
                                      const std::vector<Event>& pass,
                                      std::string_view group,
                                      Collective what) {
  std::vector<std::int64_t> list;
  for (const Event& e : pass) {
    if (!e.calls()) continue;
    const Call& call = block.calls[static_cast<std::size_t>(e.index)];
    if (call.group == group && call.collective == what) list.push_back(call.payload.count());
  }
  return list;
}

}  // namespace zeroplan::tests
