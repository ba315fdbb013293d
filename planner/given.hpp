#pragma once
// Which optional of a request is which field of a layout: said once for all who look or change.

#include "planner/request.hpp"

namespace zeroplan {

/// What `visit` returns of the optional that gives this field of choice_order; an empty value for
/// those that a request gives by settings of the runtime or not at all.
template <class AnyRequest, class Visit>
auto visit_given(AnyRequest& request, Field field, Visit&& visit) -> decltype(visit(request.tp)) {
  switch (field) {
    case Field::micro_batch:
      return visit(request.micro_batch);
    case Field::tp:
      return visit(request.tp);
    case Field::cp:
      return visit(request.cp);
    case Field::pp:
      return visit(request.pp);
    case Field::ep:
      return visit(request.ep);
    case Field::etp:
      return visit(request.etp);
    case Field::vpp:
      return visit(request.vpp);
    case Field::hsdp:
      return visit(request.hsdp);
    case Field::schedule:
      return visit(request.schedule);
    case Field::sequence_parallel:
      return visit(request.sequence_parallel);
    case Field::zero:
      return visit(request.zero);
    case Field::recompute:
      return visit(request.recompute);
    case Field::offload:
      return visit(request.offload);
    default:
      return {};
  }
}

}  // namespace zeroplan
