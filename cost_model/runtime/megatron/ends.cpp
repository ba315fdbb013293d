// What do embedding, head and loss allocate? Front door: megatron_head.
#include "cost_model/runtime/megatron/ends.hpp"

#include "cost_model/runtime/megatron/mtp.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t label_bytes = 12;  // label and loss mask
constexpr std::int64_t first_engine_with_separate_gradient = 218;

// From the head to the embedding that shares its table.
constexpr Carried head_gradient{"head weight gradient", Category::temporaries};

// The weight of embedding and head, in the format of the layers.
Bytes table_bytes(const MegatronShape& s) {
  return Bytes{s.token.element * word_embedding(s.problem).elements()};
}

// Bytes a logit beside the 16-bit logits themselves.
struct LossRecipe {
  std::int64_t forward = 0;  // working copies of the forward pass
  std::int64_t saved = 0;    // kept for the backward pass
  bool in_place = false;     // the gradient overwrites the logits, which are then what is kept
};

// Logits of fp32 are what the loss that is not fused works in, to the gradient
// (core/tensor_parallel/cross_entropy.py).
LossRecipe loss_recipe(const MegatronShape& s) {
  const MegatronSettings& set = s.settings();
  if (!set.cross_entropy_loss_fusion) {
    if (s.token.element == 4) return {.in_place = true};
    return {.forward = 0, .saved = 4};
  }
  if (set.cross_entropy_fusion_impl == CrossEntropy::native) return {.forward = 4, .saved = 4};
  if (set.transformer_engine_version >= first_engine_with_separate_gradient)
    return {.forward = 0, .saved = 4};
  return {.in_place = true};
}

// What an output layer and its loss keep for their backward pass.
struct HeadTensors {
  Tensor labels;
  NormTensors norm;
  Tensor logits;  // where the loss works in place
  Tensor saved;   // by the loss
};

HeadTensors write_head_forward(BlockWriter& w, const MegatronShape& s) {
  const std::int64_t logits = s.tokens * word_embedding(s.problem).rows;
  const LossRecipe loss = loss_recipe(s);
  HeadTensors t{};
  t.labels = w.save("labels and loss mask", Bytes{label_bytes * s.tokens});
  const bool narrow = s.settings().fp8_output_proj;
  t.norm =
      write_norm(w, s, Module::final_norm, narrow ? s.linear_input(s.residual()) : s.residual());
  if (narrow) w.run(Module::casts);
  w.call("tp", Collective::all_gather, s.gathered());  // into a buffer that stays
  w.run(Module::output_layer);
  const Bytes logit_bytes{s.token.element * logits};
  t.logits = loss.in_place ? w.save("logits", logit_bytes) : w.temporary("logits", logit_bytes);
  // The maximum, the target's logit and the sum of exponentials.
  constexpr std::int64_t sums = 3;
  if (s.problem.layout.tp > 1) w.call("tp", Collective::all_reduce, Bytes{4 * s.tokens}, sums);
  const Tensor working = w.temporary("exponentials of the logits", Bytes{loss.forward * logits});
  w.run(Module::loss);
  t.saved = w.save("fp32 softmax", Bytes{loss.saved * logits});
  w.free(working);
  if (!loss.in_place) w.free(t.logits);
  return t;
}

// Gives the gradient of the norm's output; norm statistics and labels stay.
Tensor write_head_backward(BlockWriter& w,
                           const MegatronShape& s,
                           const HeadTensors& t,
                           HandedGradient to_embedding) {
  const LocalWeight words = word_embedding(s.problem);
  Tensor gradient = t.logits;
  if (!loss_recipe(s).in_place) {
    gradient = w.temporary("logits gradient", Bytes{s.token.element * s.tokens * words.rows});
    w.free(t.saved);
  }
  w.run_backward(Module::loss);
  w.call("tp", Collective::all_gather, s.gathered());
  // As both products read it, beside what autograd holds.
  const bool narrow = s.settings().fp8_output_proj;
  const std::int64_t logits = s.tokens * words.rows;
  const Tensor copies = w.temporary(
      "8-bit copies of the logits gradient",
      narrow ? copies_of_matrix(s.problem) * quantized_bytes(s.problem, logits) : Bytes{});
  if (narrow) w.run_backward(Module::casts);
  const Tensor whole = w.temporary("input gradient of the head", s.features(s.token.hidden));
  w.run_linear_backward(Module::output_layer);
  w.call("tp", s.sums(), s.parts());
  Tensor reduced = whole;
  if (s.sequence_parallel()) {
    reduced = w.temporary("reduced input gradient", s.residual());
  }
  {
    const BlockWriter::WeightEvents of_weights(w);
    if (to_embedding == HandedGradient::tensor) {
      w.put(head_gradient, table_bytes(s));
    } else if (handed_by_own_linears(s.settings()) == HandedGradient::tensor) {
      w.free(w.temporary(head_gradient.name, table_bytes(s)));
    }
    w.free(gradient);
    w.free(copies);
  }
  if (s.sequence_parallel()) w.free(whole);
  w.free_with_weights(t.norm.output);
  return reduced;
}

// `passed_on`: what of the hidden state goes further than this head.
Block head_block(const MegatronShape& s, Bytes passed_on, HandedGradient to_embedding) {
  BlockWriter w(s.residual(), passed_on);
  const HeadTensors t = write_head_forward(w, s);
  if (passed_on > Bytes{}) w.allocate(Block::output);
  w.begin_backward();
  const Tensor norm_gradient = write_head_backward(w, s, t, to_embedding);
  w.allocate(Block::input_grad);
  w.run_backward(Module::final_norm);
  w.free(norm_gradient);
  w.free(t.norm.statistics);
  w.free(t.labels);
  if (passed_on > Bytes{}) w.free(Block::output_grad);
  w.free(Block::input);
  return w.finish();
}

}  // namespace

LocalWeight word_embedding(const Problem& problem) {
  return local_weight(embedding_weights(problem.model).front(), problem);
}

Block megatron_embedding(const Problem& problem, HandedGradient of_head, bool of_modules) {
  const MegatronShape s = megatron_shape(problem);
  BlockWriter w(Bytes{}, s.residual());
  const Tensor ids = w.save("token ids", Bytes{token_id_bytes * s.tokens});
  const Tensor whole = w.temporary("embedding before scatter", s.gathered());
  w.run(Module::embedding);
  w.allocate(Block::output);
  w.call("tp", s.sums(), s.parts());
  w.free(whole);
  const Tensor mask = w.save("embedding dropout mask", s.dropout_mask());
  w.begin_backward();
  const Tensor gathered = w.temporary("gathered embedding gradient", s.gathered());
  w.call("tp", Collective::all_gather, s.gathered());
  w.free(mask);
  if (s.sequence_parallel()) w.free(Block::output_grad);  // the table's gradient reads a copy
  const Tensor table = w.temporary("embedding table gradient", table_bytes(s));
  w.run_backward(Module::embedding);
  // A third tensor: the placeholder is not autograd's to write over.
  const bool adds = of_head != HandedGradient::nothing;
  const Tensor sum =
      w.temporary("sum of the gradients of embedding and head", adds ? table_bytes(s) : Bytes{});
  if (of_head == HandedGradient::tensor) w.take(head_gradient, table_bytes(s));
  if (of_modules) w.take(waiting_table_gradient, table_bytes(s));
  w.free(sum);
  w.free(table);
  w.free(gathered);
  w.free(ids);
  if (!s.sequence_parallel()) w.free(Block::output_grad);
  return w.finish();
}

Block megatron_head(const Problem& problem, HandedGradient to_embedding) {
  return head_block(megatron_shape(problem), Bytes{}, to_embedding);
}

Block megatron_passed_on(const Problem& problem) {
  const Bytes hidden = megatron_shape(problem).residual();
  BlockWriter w(hidden, hidden);
  w.allocate(Block::output);
  w.begin_backward();
  w.allocate(Block::input_grad);
  w.free(Block::output_grad);
  w.free(Block::input);
  return w.finish();
}

Block megatron_mtp_head(const Problem& problem) {
  const MegatronShape s = megatron_shape(problem);
  return head_block(s, s.residual(), HandedGradient::nothing);
}

}  // namespace zeroplan
