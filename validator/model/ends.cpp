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

Tensor<Bf16> Embedding::forward(std::int32_t micro_batch, const Tokens& ids) {
  Device& device = rank_.device();
  unit_.gather(Way::forward);
  Tensor<std::int32_t>& kept = in_flight_[micro_batch] = uploaded(rank_, "token ids", ids);
  Tensor<Bf16> output = rank_.save_rows("output");
  add_parts(rank_, output, [&](Half part) {
    device.embed(kept, unit_.weight("words"), rank_.shape.vocabulary, part);
  });
  if (rank_.shape.positions > 0) {
    device.add_positions(output, rank_.first_row(), unit_.weight("positions"),
                         rank_.shape.attention.sequence);
  }
  unit_.release();
  return output;
}

// Reads no weights, but is gathered like every unit, so that stage 3 sends 3 Psi.
void Embedding::backward(std::int32_t micro_batch, Passed dy) {
  Device& device = rank_.device();
  const auto found = in_flight_.find(micro_batch);
  unit_.gather(Way::backward);
  unit_.open_gradients();
  Passed all = whole(rank_, "gathered output gradient", dy.view);
  if (rank_.shape.positions > 0) {
    unit_.make_gradient("positions", [&](Half dtable) {
      device.positions_gradient(all.view, dtable, rank_.shape.attention.sequence);
    });
  }
  unit_.make_gradient("words", [&](Half dtable) {
    device.embed_gradient(found->second, all.view, rank_.shape.vocabulary, dtable);
  });
  all.free();
  in_flight_.erase(found);
  dy.free();
  unit_.release();
  unit_.close_gradients();
}

double Head::forward(std::int32_t micro_batch, Passed input, const Tokens& targets, float scale) {
  Device& device = rank_.device();
  const Shape& shape = rank_.shape;
  const VocabularyPart& part = shape.vocabulary;
  rank_.memory.ledger().enter(Phase::loss);
  unit_.gather(Way::forward);
  InFlight& f = in_flight_[micro_batch];
  f.input = std::move(input);
  f.targets = uploaded(rank_, "targets", targets);
  f.norm = rank_.save_rows("final norm");
  f.statistics = rank_.save_statistics("norm statistics");
  device.norm(f.input.view, unit_.norm("final norm", "final norm bias"), f.norm, f.statistics);
  f.logits = rank_.save("logits", part.rows);
  {
    const Passed all = whole(rank_, "gathered norm output", f.norm);
    device.linear(all.view, unit_.weight("head"), f.logits);
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
  return loss;
}

Tensor<Bf16> Head::backward(std::int32_t micro_batch) {
  Device& device = rank_.device();
  const auto found = in_flight_.find(micro_batch);
  InFlight& f = found->second;
  rank_.memory.ledger().enter(Phase::loss);
  unit_.gather(Way::backward);
  unit_.open_gradients();
  Tensor<Bf16> dnorm = rank_.temporary_rows("norm output gradient");
  add_parts(rank_, dnorm, [&](Half part) {
    device.linear_input_gradient(f.logits, unit_.weight("head"), part);
    if (unit_.has("head bias")) {
      unit_.make_gradient("head bias", [&](Half dbias) { device.bias_gradient(f.logits, dbias); });
    }
    Passed all = whole(rank_, "gathered norm output", f.norm);
    unit_.make_gradient("head",
                        [&](Half dw) { device.linear_weight_gradient(f.logits, all.view, dw); });
    all.free();
    f.logits.free();
    f.norm.free();
  });
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
