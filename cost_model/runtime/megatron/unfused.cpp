// What does attention allocate that is not fused? Front door: write_unfused_kernel.
#include "cost_model/runtime/megatron/unfused.hpp"

namespace zeroplan {
namespace {

std::int64_t score_elements(const MegatronShape& s) {
  const std::int64_t keys = s.problem.training.sequence_length;
  return s.token.heads * s.tokens * keys;
}

// Results of softmax and dropout.
TensorList write_scores(BlockWriter& w, const MegatronShape& s) {
  const std::int64_t n = score_elements(s);
  const Bytes narrow = narrow_scores(s);
  const bool dropout = s.settings().attention_dropout;
  TensorList saved;
  const Tensor scores = w.temporary("attention scores", narrow);
  // Without the fused kernel the softmax stays in fp32 and its 16-bit copy is what is multiplied.
  if (!s.settings().masked_softmax_fusion && s.token.element < 4) {
    saved.push_back(w.save("fp32 softmax", Bytes{4 * n}));
    if (!dropout) saved.push_back(w.save("softmax", narrow));
  } else {
    saved.push_back(w.save("softmax", narrow));
  }
  w.free(scores);
  if (dropout) {
    saved.push_back(w.save("attention dropout mask", Bytes{n}));
    saved.push_back(w.save("dropped softmax", narrow));
  }
  return saved;
}

}  // namespace

Bytes narrow_scores(const MegatronShape& s) {
  return Bytes{s.token.element * score_elements(s)};
}

UnfusedKernel write_unfused_kernel(BlockWriter& w, const MegatronShape& s) {
  UnfusedKernel made;
  if (repeats_keys(s)) {
    made.repeated.push_back(w.save("repeated keys", s.features(s.token.query)));
    made.repeated.push_back(w.save("repeated values", s.features(s.token.query)));
  }
  made.scores = write_scores(w, s);
  return made;
}

// Transformer Engine wrote it over the softmax's own until 0c8cf2c03 (release 2.19), as kernels of
// Megatron's own layers do.
Tensor write_scores_backward(BlockWriter& w,
                             const MegatronShape& s,
                             Tensor softmax,
                             const TensorList& scores) {
  constexpr std::int64_t new_tensor = 219;
  const bool in_place = s.settings().transformer_engine_version < new_tensor;
  const Tensor own = in_place ? softmax : w.temporary("gradient of the scores", narrow_scores(s));
  w.free(scores);
  if (!in_place) w.free(softmax);
  return own;
}

}  // namespace zeroplan
