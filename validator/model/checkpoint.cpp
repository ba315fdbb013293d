// What stays of a layer's input until it runs again? Front door: Checkpoint.
#include "validator/model/checkpoint.hpp"

namespace zeroplan::engine {
namespace {

bool divides(const Rank& rank) {
  return rank.set.partition_activations && rank.tp.size() > 1;
}

// Element by element.
Half flat(Half matrix) {
  return {matrix.data, matrix.elements()};
}

Half own_part(const Rank& rank, Half input) {
  if (!divides(rank)) return flat(input);
  const std::int64_t part = Checkpoint::elements(rank);
  return flat(input).part(part * rank.tp.rank(), part);
}

}  // namespace

std::int64_t Checkpoint::elements(const Rank& rank) {
  return rank.rows() * rank.shape.hidden / (divides(rank) ? rank.tp.size() : 1);
}

void Checkpoint::keep(const Rank& rank, Passed input, Half slot) {
  if (!rank.copies_checkpoints()) {
    input_ = std::move(input);
    return;
  }
  copy_ = slot;
  if (slot.rows == 0) {
    part_ = rank.memory.make<Bf16>("part of the checkpoint", Category::activations, elements(rank));
    copy_ = part_;
  }
  copy_ = {copy_.data, elements(rank)};
  rank.device().copy(copy_, own_part(rank, input.view));
}

Passed Checkpoint::take(const Rank& rank) {
  if (!rank.copies_checkpoints()) return std::move(input_);
  const Half shaped{copy_.data, rank.rows(), rank.shape.hidden};
  if (!divides(rank)) return Passed::lend(shaped);
  Tensor<Bf16> whole = rank.temporary_rows("rebuilt checkpoint");
  rank.device().copy(own_part(rank, whole), copy_);
  rank.tp.all_gather(whole);
  part_.free();
  return Passed::own(std::move(whole));
}

}  // namespace zeroplan::engine
