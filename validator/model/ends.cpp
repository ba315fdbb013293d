// What stands before the first layer and after the last? Front doors: Embedding, Head.
#include "validator/model/ends.hpp"

#include "validator/model/residual.hpp"

namespace zeroplan::engine {
namespace {

Tensor<std::int32_t> uploaded(const Rank& rank, std::string_view name, const Tokens& tokens) {
  auto tensor = rank.memory.make<std::int32_t>(name, Category::activations, rank.shape.tokens());
  rank.device().upload(tensor.view().data, tokens.data(),
                       static_cast<std::int64_t>(tokens.size() * sizeof(std::int32_t)));
  return tensor;
}

}  // namespace

Embedding::Embedding(const Rank& rank, std::int64_t layers)
    : rank_(rank), words_(rank, words_unit(rank.shape)) {
  if (rank.shape.positions > 0) positions_.emplace(rank, positions_unit(rank.shape, layers));
}

std::vector<DividedUnit*> Embedding::units() {
  std::vector<DividedUnit*> list{&words_};
  if (positions_) list.push_back(&*positions_);
  return list;
}

Tensor<Bf16> Embedding::forward(std::int32_t micro_batch, const Tokens& ids) {
  Device& device = rank_.device();
  words_.gather(Way::forward);
  Tensor<std::int32_t>& kept = in_flight_[micro_batch] = uploaded(rank_, "token ids", ids);
  Tensor<Bf16> output = rank_.save_rows("output");
  add_parts(rank_, output, [&](Half part) {
    device.embed(kept, words_.weight("words"), rank_.shape.vocabulary, part);
  });
  words_.release();
  if (positions_) {
    positions_->gather(Way::forward);
    device.add_positions(output, rank_.first_row(), positions_->weight("positions"),
                         rank_.shape.attention.sequence);
    positions_->release();
  }
  return output;
}

// Reads no weights, but its units are gathered like every other, so that stage 3 sends 3 Psi.
void Embedding::backward(std::int32_t micro_batch, Passed dy) {
  Device& device = rank_.device();
  const auto found = in_flight_.find(micro_batch);
  Passed all = whole(rank_, "gathered output gradient", dy.view);
  if (positions_) {
    positions_->gather(Way::backward);
    positions_->open_gradients();
    positions_->make_gradient("positions", [&](Half dtable) {
      device.positions_gradient(all.view, dtable, rank_.shape.attention.sequence);
    });
    positions_->release();
    positions_->close_gradients();
  }
  words_.gather(Way::backward);
  words_.open_gradients();
  words_.make_gradient("words", [&](Half dtable) {
    words_.take_early(dtable);
    device.embed_gradient(found->second, all.view, rank_.shape.vocabulary, dtable);
  });
  all.free();
  in_flight_.erase(found);
  dy.free();
  words_.release();
  words_.close_gradients();
}

Head::Head(const Rank& rank, std::int64_t layers, DividedUnit* words)
    : rank_(rank), unit_(rank, head_unit(rank.shape, layers)) {
  if (!rank.shape.tied) return;
  words_ = words != nullptr ? words : &copy_.emplace(rank, words_unit(rank.shape));
}

double Head::forward(std::int32_t micro_batch, Passed input, const Tokens& targets, float scale) {
  Device& device = rank_.device();
  const Shape& shape = rank_.shape;
  const VocabularyPart& part = shape.vocabulary;
  rank_.memory.ledger().enter(Phase::loss);
  unit_.gather(Way::forward);
  if (words_) words_->gather_alone();
  InFlight& f = in_flight_[micro_batch];
  f.input = std::move(input);
  f.targets = uploaded(rank_, "targets", targets);
  f.norm = rank_.save_rows("final norm");
  f.statistics = rank_.save_statistics("norm statistics");
  device.norm(f.input.view, unit_.norm("final norm", "final norm bias"), f.norm, f.statistics);
  f.logits = rank_.save("logits", part.rows);
  {
    const Passed all = whole(rank_, "gathered norm output", f.norm);
    device.linear(all.view, weight(), f.logits);
  }
  if (const Half bias = unit_.weight("head bias"); bias.rows > 0) device.add_bias(f.logits, bias);

  const auto a_token = [&](std::string_view name) {
    return rank_.memory.make<float>(name, Category::temporaries, shape.tokens());
  };
  const Tensor<float> maximum = a_token("largest logit");
  const Tensor<float> sum = a_token("sum of exponentials");
  const Tensor<float> target = a_token("logit of the target");
  const LossSums sums{maximum, sum, target};
  device.loss_maximum(f.logits, part, sums.maximum);
  rank_.tp.all_reduce(sums.maximum, Reduction::maximum);
  device.loss_sums(f.logits, f.targets, part, sums);
  rank_.tp.all_reduce(sums.sum, Reduction::sum);
  rank_.tp.all_reduce(sums.target, Reduction::sum);
  const double loss = device.loss_gradient(f.logits, f.targets, part, sums, scale);
  unit_.release();
  if (words_) words_->release();
  return loss;
}

// Units of a stage share one bucket, so a copy's closes before the norm's opens.
template <class Make>
void Head::make_weight_gradient(Make&& make) {
  if (copy_) return copy_->make_gradient("words", make);
  words_ ? words_->make_early_gradient("words", make) : unit_.make_gradient("head", make);
}

Tensor<Bf16> Head::backward(std::int32_t micro_batch) {
  Device& device = rank_.device();
  const auto found = in_flight_.find(micro_batch);
  InFlight& f = found->second;
  rank_.memory.ledger().enter(Phase::loss);
  unit_.gather(Way::backward);
  if (words_) words_->gather_alone();
  (copy_ ? *copy_ : unit_).open_gradients();
  Tensor<Bf16> dnorm = rank_.temporary_rows("norm output gradient");
  add_parts(rank_, dnorm, [&](Half part) {
    device.linear_input_gradient(f.logits, weight(), part);
    if (unit_.has("head bias")) {
      unit_.make_gradient("head bias", [&](Half dbias) { device.bias_gradient(f.logits, dbias); });
    }
    Passed all = whole(rank_, "gathered norm output", f.norm);
    make_weight_gradient([&](Half dw) { device.linear_weight_gradient(f.logits, all.view, dw); });
    all.free();
    f.logits.free();
    f.norm.free();
  });
  if (words_) words_->release();
  if (copy_) {
    copy_->close_gradients();
    unit_.open_gradients();
  }
  Tensor<Bf16> dx = rank_.temporary_rows("input gradient");
  unit_.make_norm_gradient("final norm", "final norm bias", [&](const NormWeights& dw) {
    device.norm_gradient(dnorm, f.input.view, f.statistics,
                         unit_.norm("final norm", "final norm bias"), {}, dx, dw);
  });
  in_flight_.erase(found);
  dnorm.free();
  unit_.release();
  unit_.close_gradients();
  return dx;
}

}  // namespace zeroplan::engine
