// What does a decoder layer compute, and what back? Front door: Layer.
#include "validator/model/layer.hpp"

#include "validator/model/residual.hpp"

namespace zeroplan::engine {

Tensor<Bf16> Layer::run(ConstHalf input, Saved& s, std::string_view name, Category category) {
  Device& device = rank_.device();
  const Shape& shape = rank_.shape;
  const auto linear = [&](ConstHalf x, std::string_view weight, std::string_view bias, Half y) {
    device.linear(x, unit_.weight(weight), y);
    if (const Half b = unit_.weight(bias); b.rows > 0) device.add_bias(y, b);
  };
  // Each rank has a part of the sum; the bias belongs to the whole.
  const auto closing_linear = [&](ConstHalf x, std::string_view weight, std::string_view bias,
                                  ConstHalf residual, Half y) {
    add_parts(rank_, y, [&](Half part) { device.linear(x, unit_.weight(weight), part); });
    if (const Half b = unit_.weight(bias); b.rows > 0) device.add_bias(y, b);
    device.add(y, residual);
  };
  // A linear behind a norm, of whose output all rows are needed.
  const auto opening_linear = [&](Half x, std::string_view weight, std::string_view bias, Half y) {
    const Passed all = whole(rank_, "gathered norm output", x);
    linear(all.view, weight, bias, y);
  };
  s.norm1 = rank_.save_rows("attention norm");
  s.statistics1 = rank_.save_statistics("norm statistics");
  device.norm(input, unit_.norm("attention norm", "attention norm bias"), s.norm1, s.statistics1);
  s.qkv = rank_.save("queries, keys and values", shape.attention.row());
  opening_linear(s.norm1, "qkv", "qkv bias", s.qkv);
  if (shape.positions == 0) device.rotate(s.qkv, shape.attention, false);
  s.attention = rank_.save("attention", shape.attention.query());
  s.log_sums = rank_.save_wide("log of sums of attention", shape.attention.heads);
  device.attention(s.qkv, shape.attention, s.attention, s.log_sums);
  s.middle = rank_.save_rows("residual after attention");
  closing_linear(s.attention, "output", "output bias", input, s.middle);

  s.norm2 = rank_.save_rows("mlp norm");
  s.statistics2 = rank_.save_statistics("norm statistics");
  device.norm(s.middle, unit_.norm("mlp norm", "mlp norm bias"), s.norm2, s.statistics2);
  s.up = rank_.save("up projection", shape.up());
  opening_linear(s.norm2, "up", "up bias", s.up);
  s.activated = rank_.save("activation", shape.mlp);
  device.activation(s.up, s.activated);
  Tensor<Bf16> output = rank_.memory.make<Bf16>(name, category, rank_.rows(), shape.hidden);
  closing_linear(s.activated, "down", "down bias", s.middle, output);
  return output;
}

Tensor<Bf16> Layer::forward(std::int32_t micro_batch, Passed input) {
  InFlight& flight = in_flight_[micro_batch];
  flight.input = std::move(input);
  unit_.gather(Way::forward);
  Tensor<Bf16> output = run(flight.input.view, flight.saved, "output", Category::activations);
  unit_.release();
  if (rank_.shape.recompute) {
    flight.saved = {};
    const Half slot = slots_.rows > 0 ? slots_.part(micro_batch % slots_.rows, 1) : Half{};
    flight.checkpoint.keep(rank_, std::move(flight.input), slot);
  }
  return output;
}

void Layer::linear_gradient(std::string_view name,
                            std::string_view bias,
                            ConstHalf dy,
                            ConstHalf x) {
  Device& device = rank_.device();
  if (unit_.has(bias)) {
    unit_.make_gradient(bias, [&](Half dbias) { device.bias_gradient(dy, dbias); });
  }
  unit_.make_gradient(name, [&](Half dw) { device.linear_weight_gradient(dy, x, dw); });
}

// The gradient of x, the output of a norm, through the column-parallel linear behind it. Frees dy
// and x.
Tensor<Bf16> Layer::column_gradient(std::string_view name,
                                    std::string_view bias,
                                    Tensor<Bf16>& dy,
                                    Tensor<Bf16>& x) {
  Tensor<Bf16> dx = rank_.temporary_rows("norm output gradient");
  add_parts(rank_, dx, [&](Half part) {
    rank_.device().linear_input_gradient(dy, unit_.weight(name), part);
    Passed all = whole(rank_, "gathered norm output", x);
    linear_gradient(name, bias, dy, all.view);
    all.free();
    dy.free();
    x.free();
  });
  return dx;
}

// The gradient of the residual stream after attention. Frees dy, and what of `s` it is made from.
Tensor<Bf16> Layer::mlp_gradient(Saved& s, Passed& dy) {
  Device& device = rank_.device();
  const Shape& shape = rank_.shape;
  Passed all = whole(rank_, "gathered output gradient", dy.view);
  Tensor<Bf16> dactivated = rank_.temporary("activation gradient", shape.mlp);
  device.linear_input_gradient(all.view, unit_.weight("down"), dactivated);
  linear_gradient("down", "down bias", all.view, s.activated);
  all.free();
  s.activated.free();
  Tensor<Bf16> dup = rank_.temporary("up projection gradient", shape.up());
  device.activation_gradient(dactivated, s.up, dup);
  dactivated.free();
  s.up.free();
  Tensor<Bf16> dnorm = column_gradient("up", "up bias", dup, s.norm2);
  Tensor<Bf16> dmiddle = rank_.temporary_rows("residual gradient");
  unit_.make_norm_gradient("mlp norm", "mlp norm bias", [&](const NormWeights& dw) {
    device.norm_gradient(dnorm, s.middle, s.statistics2, unit_.norm("mlp norm", "mlp norm bias"),
                         dy.view, dmiddle, dw);
  });
  dnorm.free();
  s.middle.free();
  s.statistics2.free();
  dy.free();
  return dmiddle;
}

Tensor<Bf16> Layer::attention_gradient(InFlight& flight, Tensor<Bf16> dmiddle) {
  Device& device = rank_.device();
  const Shape& shape = rank_.shape;
  Saved& s = flight.saved;
  Passed all = whole(rank_, "gathered output gradient", dmiddle);
  Tensor<Bf16> dattention = rank_.temporary("attention gradient", shape.attention.query());
  device.linear_input_gradient(all.view, unit_.weight("output"), dattention);
  linear_gradient("output", "output bias", all.view, s.attention);
  all.free();
  Tensor<Bf16> dqkv = rank_.temporary("qkv gradient", shape.attention.row());
  device.attention_gradient(dattention, s.qkv, s.attention, s.log_sums, shape.attention, dqkv);
  dattention.free();
  s.attention.free();
  s.log_sums.free();
  s.qkv.free();
  if (shape.positions == 0) device.rotate(dqkv, shape.attention, true);
  const Tensor<Bf16> dnorm = column_gradient("qkv", "qkv bias", dqkv, s.norm1);
  Tensor<Bf16> dx = rank_.temporary_rows("input gradient");
  unit_.make_norm_gradient("attention norm", "attention norm bias", [&](const NormWeights& dw) {
    device.norm_gradient(dnorm, flight.input.view, s.statistics1,
                         unit_.norm("attention norm", "attention norm bias"), dmiddle, dx, dw);
  });
  return dx;
}

Tensor<Bf16> Layer::backward(std::int32_t micro_batch, Passed dy) {
  const auto found = in_flight_.find(micro_batch);
  InFlight& flight = found->second;
  unit_.gather(Way::backward);
  unit_.open_gradients();
  if (rank_.shape.recompute) {
    flight.input = flight.checkpoint.take(rank_);
    run(flight.input.view, flight.saved, "recomputed output", Category::temporaries);
  }
  Tensor<Bf16> dmiddle = mlp_gradient(flight.saved, dy);
  Tensor<Bf16> dx = attention_gradient(flight, std::move(dmiddle));
  in_flight_.erase(found);
  unit_.release();
  unit_.close_gradients();
  return dx;
}

}  // namespace zeroplan::engine
