// What does a multi-token-prediction module allocate? Front door: megatron_mtp_input.
#include "cost_model/runtime/megatron/mtp.hpp"

#include "cost_model/runtime/megatron/ends.hpp"

namespace zeroplan {

bool embedding_gathers(const Problem& problem) {
  return problem.layout.pp == 1 && trained_mtp_modules(problem) > 0;
}

TableGradient table_gradient_of_module(const Problem& problem, std::int64_t i) {
  const std::int64_t modules = trained_mtp_modules(problem);
  if (!embedding_gathers(problem) && modules < 2) return TableGradient::alone;
  if (i + 1 == modules) return TableGradient::waits;  // backward passes begin with the last one
  return i == 0 && problem.layout.pp > 1 ? TableGradient::gathers : TableGradient::alone;
}

Block megatron_mtp_input(const Problem& problem, TableGradient table) {
  const MegatronShape s = megatron_shape(problem);
  const bool divided = problem.layout.tp > 1;
  BlockWriter w(s.residual(), s.residual());
  const Tensor ids = w.save("rolled token ids", Bytes{token_id_bytes * s.tokens});
  const Tensor whole = w.temporary("embedding before scatter", s.gathered());
  const Tensor embedded = w.save("embedding of the next token", s.residual());
  w.run(Module::embedding);
  w.call("tp", s.sums(), s.parts());
  w.free(whole);
  const Tensor embedding_norm = w.temporary("normed embedding", s.residual());
  const Tensor hidden_norm = w.temporary("normed hidden state", s.residual());
  const Tensor statistics = w.save("norm statistics", 2 * s.norm_statistics());
  const Tensor joined = w.save("joined norm outputs", 2 * s.residual());
  w.free(embedding_norm);
  w.free(hidden_norm);
  // Column-parallel: each rank makes part of the features of all tokens, which are gathered.
  const Tensor input = w.temporary("gathered projection input", 2 * s.gathered());
  w.call("tp", Collective::all_gather, 2 * s.gathered());
  const Bytes part = s.features(ceil_div(s.token.hidden, problem.layout.tp));
  const Tensor made = w.temporary("part of the projection output", divided ? part : Bytes{});
  w.run(Module::eh_proj);
  w.free(input);
  const Tensor gathered = w.temporary("gathered projection output",
                                      s.sequence_parallel() ? s.features(s.token.hidden) : Bytes{});
  w.allocate(Block::output);
  w.call("tp", Collective::all_gather, s.parts());
  w.free(gathered);
  w.free(made);

  w.begin_backward();
  const Tensor output_gradient =
      w.temporary("part of the projection output gradient", divided ? part : Bytes{});
  w.call("tp", Collective::all_gather, 2 * s.gathered(), s.beside_weights());
  const Tensor joined_gradient = w.temporary("joined gradient", 2 * s.features(s.token.hidden));
  w.run_linear_backward(Module::eh_proj);
  w.call("tp", s.sums(), 2 * s.parts(), s.beside_weights());
  Tensor reduced = joined_gradient;
  if (s.sequence_parallel()) {
    reduced = w.temporary("reduced joined gradient", 2 * s.residual());
    w.free(joined_gradient);
  }
  w.free_with_weights(joined);
  w.free_with_weights(output_gradient);
  divided ? w.free(Block::output_grad) : w.free_with_weights(Block::output_grad);
  const Tensor embedded_gradient = w.temporary("embedding gradient", s.residual());
  w.allocate(Block::input_grad);
  w.free(reduced);
  w.free(statistics);
  w.free(embedded);
  const Tensor whole_gradient = w.temporary("gathered embedding gradient", s.gathered());
  w.call("tp", Collective::all_gather, s.gathered());
  const Bytes bytes{s.token.element * word_embedding(problem).elements()};
  w.run_backward(Module::embedding);
  if (table == TableGradient::waits) {
    w.put(waiting_table_gradient, bytes);
  } else {
    const Tensor own = w.temporary("embedding table gradient", bytes);
    if (table == TableGradient::gathers) w.take(waiting_table_gradient, bytes);
    w.free(own);
  }
  w.free(whole_gradient);
  w.free(embedded_gradient);
  w.free(ids);
  w.free(Block::input);
  return w.finish();
}

}  // namespace zeroplan
