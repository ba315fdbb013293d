// How many layers do the first and the last stage get? Front door: stage_splits.
#include "planner/sweep/stage_splits.hpp"

#include <algorithm>
#include <cmath>

#include "cost_model/kernel/flops.hpp"

namespace zeroplan {
namespace {

// Layers of the first and of the last stage as one number.
constexpr std::int64_t split_unit = 1 << 16;

// Layers of which the head multiplies as much: so many fewer a stage with an end of the model has
// where that evens out, since the embedding, as large, has its gradients to add up. None where a
// few layers more or less are as much.
std::int64_t layers_of_an_end(const ModelSpec& model, std::int64_t few) {
  const LayerKind kind = kind_of(model, model.layers - 1);
  const auto worth = static_cast<std::int64_t>(
      std::ceil(head_flops(model, 1) / layer_linear_flops(model, kind, 1)));
  return worth > few ? worth : 0;
}

}  // namespace

Values stage_splits(const Request& r, const Problem& p) {
  Values list{0};
  constexpr std::int64_t few = 2;
  const std::int64_t pp = p.layout.pp;
  if (!choices_of(r).has_uneven_splits || has_own_split(r) || pp == 1) return list;
  const std::int64_t layers = r.model.layers;
  const std::int64_t usual = layers / pp;
  const std::int64_t of_an_end = layers_of_an_end(r.model, few);
  const std::int64_t fewer = few + of_an_end;
  // With two stages what one has less the other has more; with others these have it.
  const std::int64_t more = pp == 2 ? fewer : few;
  const std::int64_t longer = 1 + (pp > 2 ? ceil_div(2 * of_an_end, pp - 2) : 0);
  for (std::int64_t middle = std::max<std::int64_t>(1, usual - 1); middle <= usual + longer;
       ++middle) {
    const std::int64_t ends = layers - middle * (pp - 2);
    for (std::int64_t first = std::max<std::int64_t>(1, middle - fewer); first <= middle + more;
         ++first) {
      const std::int64_t last = ends - first;
      const bool even = first == middle && last == middle;
      const bool near = last >= 1 && last >= middle - fewer && last <= middle + more;
      const bool whole_chunks = first % p.layout.vpp == 0 && last % p.layout.vpp == 0 &&
                                (pp == 2 || middle % p.layout.vpp == 0);
      const bool again = pp == 2 && middle != usual;  // without a middle it is but a window
      if (near && !even && !again && whole_chunks) list.push_back(first * split_unit + last);
    }
  }
  return list;
}

void set_stage_split(Layout& layout, std::int64_t number) {
  layout.first_stage = number / split_unit;
  layout.last_stage = number % split_unit;
}

}  // namespace zeroplan
