// In which order do a rank's passes run? Front door: passes.
#include "cost_model/schedule/order.hpp"

#include "cost_model/schedule/split.hpp"
#include "cost_model/schedule/whole.hpp"

namespace zeroplan {

std::vector<Pass> passes(const Pipeline& pipeline, std::int64_t rank) {
  switch (pipeline.schedule) {
    case Schedule::gpipe:
      return gpipe(pipeline);
    case Schedule::one_f_one_b:
      return one_f_one_b(pipeline, rank);
    case Schedule::interleaved:
      return interleaved(pipeline, rank);
    case Schedule::zb_h1:
      return zb_h1(pipeline, rank);
    case Schedule::zb_h2:
      return zb_h2(pipeline, rank);
    case Schedule::zb_v:
      return zb_v(pipeline, rank);
    case Schedule::dualpipe:
      return dualpipe(pipeline, rank);
  }
  return {};
}

std::vector<Needed> needs(const Pipeline& pipeline, std::int64_t rank, const Pass& pass) {
  const Place here{rank, pass.chunk};
  std::vector<Needed> list;
  const auto need = [&](const std::optional<Place>& place, PassKind kind) {
    if (place) list.push_back({*place, kind, pass.micro_batch});
  };
  if (pass.kind == PassKind::forward) {
    need(previous_place(pipeline, here), PassKind::forward);
  } else if (pass.kind == PassKind::weight_gradient) {
    need(here, PassKind::input_gradient);
  } else {
    need(here, PassKind::forward);
    need(next_place(pipeline, here), PassKind::input_gradient);
  }
  return list;
}

}  // namespace zeroplan
