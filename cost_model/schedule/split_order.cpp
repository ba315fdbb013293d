// Which pass comes next? Front door: SplitOrder.
#include "cost_model/schedule/split_order.hpp"

#include <algorithm>

namespace zeroplan {

void SplitOrder::weight_gradient(std::int32_t chunk) {
  const auto found = std::find_if(put_off_.begin(), put_off_.end(),
                                  [chunk](const Pass& pass) { return pass.chunk == chunk; });
  if (found == put_off_.end()) return;
  order_.push_back(*found);
  put_off_.erase(found);
}

}  // namespace zeroplan
