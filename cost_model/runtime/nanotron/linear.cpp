// What does a linear of nanotron allocate and send? Front doors: write_column_input,
// write_row_linear, write_input_gradient.
#include "cost_model/runtime/nanotron/linear.hpp"

namespace zeroplan {
namespace {

bool keeps_gathered(const LayerShape& s) {
  return s.sequence_parallel() && !s.problem.runtime.nanotron.tp_recompute_allgather;
}

// Beside a product that does not need it: the input's gradients travel while the weight's are
// computed, the input while the input's gradients are.
void write_beside(BlockWriter& w, Collective what, Bytes payload) {
  w.call("tp", what, payload, Beside::products);
}

}  // namespace

Tensor write_row_linear(BlockWriter& w, const LayerShape& s, std::string_view name) {
  const Tensor whole = w.sent("output before reduction", s.gathered());
  w.call("tp", s.sums(), s.parts());
  const Tensor reduced = w.temporary(name, s.residual());
  w.free(whole);
  return reduced;
}

void write_gather(BlockWriter& w, const LayerShape& s) {
  w.call("tp", Collective::all_gather, s.gathered());
}

ColumnInput write_column_input(BlockWriter& w, const LayerShape& s, Tensor norm) {
  write_gather(w, s);
  if (!keeps_gathered(s)) return {norm};
  return {w.save("gathered norm output", s.gathered()), norm};
}

Tensor write_input_gradient(BlockWriter& w,
                            const LayerShape& s,
                            Tensor output_gradient,
                            Tensor kept) {
  const bool reduces = s.sequence_parallel();
  const Bytes bytes = s.features(s.token.hidden);
  const Tensor whole = reduces ? w.sent("input gradient of the linear", bytes)
                               : w.temporary("input gradient of the linear", bytes);
  if (!keeps_gathered(s)) write_beside(w, Collective::all_gather, s.gathered());
  w.free(output_gradient);
  write_beside(w, s.sums(), s.parts());
  Tensor input = whole;
  if (reduces) {
    input = w.temporary("reduced input gradient", s.residual());
    w.free(whole);
  }
  w.free(kept);
  return input;
}

void write_fused_norm_backward(BlockWriter& w,
                               const LayerShape& s,
                               Tensor output_gradient,
                               Tensor statistics) {
  const Tensor residual = w.temporary("norm input gradient", s.residual());
  w.free(output_gradient);
  w.free(statistics);
  w.free(residual);
}

}  // namespace zeroplan
