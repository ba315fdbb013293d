// What do the ends of the model hold in zeroplan's engine? Front door: zeroplan_head.
#include "cost_model/runtime/zeroplan/unit.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t id_bytes = 4;
constexpr std::int64_t fp32 = 4;

// Bytes of `count` rows of a weight as wide as the residual stream.
Bytes rows(const LayerShape& s, std::int64_t count) {
  return Bytes{s.token.element * s.token.hidden * count};
}

}  // namespace

Block zeroplan_embedding(const LayerShape& s,
                         std::int64_t vocabulary_rows,
                         ZeroplanUnit words,
                         ZeroplanUnit positions) {
  const std::int64_t learned = s.problem.model.learned_positions;
  BlockWriter w(Bytes{}, s.residual());
  words.begin_forward(w);
  const Tensor ids = w.save("token ids", Bytes{id_bytes * s.tokens});
  w.allocate(Block::output);
  const Tensor part = w.temporary("part of a sum", s.gathered());
  w.run(Module::embedding);
  w.call("tp", s.sums(), s.parts());
  w.free(part);
  words.end_forward(w);
  if (learned > 0) {
    positions.begin_forward(w);
    positions.end_forward(w);
  }
  w.begin_backward();
  w.call("tp", Collective::all_gather, s.gathered());
  const Tensor whole = w.temporary("gathered output gradient", s.gathered());
  if (learned > 0) {
    positions.begin_backward(w);
    positions.gradient(w, rows(s, learned));
    positions.end_backward(w);
  }
  words.begin_backward(w);
  w.run_backward(Module::embedding);
  words.gradient(w, rows(s, vocabulary_rows));
  words.take_early(w, rows(s, vocabulary_rows));
  w.free(whole);
  w.free(ids);
  w.free(Block::output_grad);
  words.end_backward(w);
  return w.finish();
}

Block zeroplan_head(const LayerShape& s,
                    std::int64_t vocabulary_rows,
                    ZeroplanUnit unit,
                    ZeroplanUnit table) {
  const ModelSpec& m = s.problem.model;
  const bool tied = m.tied_embeddings;
  const bool copy = tied && !table.is_shared();
  BlockWriter w(s.residual(), Bytes{});
  unit.begin_forward(w);
  if (tied) table.begin_forward(w);
  const Tensor targets = w.save("targets", Bytes{id_bytes * s.tokens});
  const Tensor norm = w.save("final norm", s.residual());
  const Tensor statistics = w.save("norm statistics", s.norm_statistics());
  const Tensor logits = w.save("logits", s.features(vocabulary_rows));  // then their gradient
  w.call("tp", Collective::all_gather, s.gathered());
  w.free(w.temporary("gathered norm output", s.gathered()));
  w.run({Module::final_norm, Module::output_layer, Module::loss});
  const Tensor maximum = w.temporary("largest logit", Bytes{fp32 * s.tokens});
  const Tensor sum = w.temporary("sum of exponentials", Bytes{fp32 * s.tokens});
  const Tensor target = w.temporary("logit of the target", Bytes{fp32 * s.tokens});
  w.call("tp", Collective::all_reduce, Bytes{fp32 * s.tokens}, 3);  // each of them
  for (const Tensor done : {maximum, sum, target}) w.free(done);
  unit.end_forward(w);
  if (tied) table.end_forward(w);
  w.begin_backward();
  unit.gather_backward(w);
  if (tied) table.gather_backward(w);
  (copy ? table : unit).open_gradients(w);
  const Tensor dnorm = w.temporary("norm output gradient", s.residual());
  const Tensor part = w.temporary("part of a sum", s.gathered());
  w.run_backward(Module::loss);
  w.run_linear_backward(Module::output_layer);
  unit.gradient(w, m.head_bias && !tied ? Bytes{s.token.element * vocabulary_rows} : Bytes{});
  w.call("tp", Collective::all_gather, s.gathered());
  const Tensor whole = w.temporary("gathered norm output", s.gathered());
  const Bytes weight = rows(s, vocabulary_rows);
  table.is_shared() ? table.make_early_gradient(w, weight)
                    : (copy ? table : unit).gradient(w, weight);
  for (const Tensor done : {whole, logits, norm}) w.free(done);
  w.call("tp", s.sums(), s.parts());
  w.free(part);
  if (tied) table.release(w);
  if (copy) {
    table.close_gradients(w, {}, true);
    unit.open_gradients(w);
  }
  w.allocate(Block::input_grad);
  w.run_backward(Module::final_norm);
  unit.norm_gradient(w, rows(s, 1), has_norm_bias(m) ? rows(s, 1) : Bytes{});
  for (const Tensor done : {dnorm, statistics, targets}) w.free(done);
  w.free(Block::input);
  unit.release(w);
  unit.close_gradients(w, copy ? table.place().own : Bytes{}, unit.place().before > Bytes{});
  return w.finish();
}

}  // namespace zeroplan
