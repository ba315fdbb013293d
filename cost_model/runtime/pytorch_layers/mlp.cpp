// What does one MLP allocate? Front door: write_mlp.
#include "cost_model/runtime/pytorch_layers/mlp.hpp"

#include <utility>

#include "cost_model/runtime/pytorch_layers/gelu.hpp"
#include "cost_model/runtime/pytorch_layers/squared_relu.hpp"

namespace zeroplan {

namespace {

// gate * sigmoid(alpha * gate) * (up + 1), of bounded ones. The compiler makes all of it again.
bool bounds_inputs(const EagerShape& s, const MlpShape& shape) {
  return shape.expert() && s.problem.model.moe->clamped && !s.style.compiled;
}

void write_bounded(EagerPass& pass, Bytes wide, EagerMlp& t) {
  BlockWriter& w = pass.writer();
  t.bounds.gate = pass.make("bounded gate", wide);
  const Tensor up = w.temporary("bounded up", wide);
  const Tensor scaled = w.temporary("scaled gate", wide);
  t.bounds.sigmoid = pass.make("sigmoid of the gate", wide);
  w.free(scaled);
  t.activated = pass.make("activated gate", wide);
  t.bounds.shifted = pass.make("up by one", wide);
  w.free(up);
}

// Gives the gradient of gate and up, which are parts of one tensor; frees that of the `product`.
Tensor write_bounded_backward(BlockWriter& w, Bytes wide, const EagerMlp& t, Tensor product) {
  const Tensor up = w.temporary("up gradient", wide);
  const Tensor activated = w.temporary("activated gate gradient", wide);
  for (const Tensor tensor : {product, t.activated, t.bounds.shifted}) w.free(tensor);
  const Tensor both = w.temporary("gradient of gate and up", 2 * wide);
  for (const Tensor tensor : {up, t.up}) w.free(tensor);
  const Tensor gate = w.temporary("bounded gate gradient", wide);
  const Tensor sigmoid = w.temporary("sigmoid gradient", wide);
  for (const Tensor tensor : {activated, t.bounds.gate}) w.free(tensor);
  w.free(w.temporary("scaled gate gradient", wide));
  for (const Tensor tensor : {sigmoid, t.bounds.sigmoid}) w.free(tensor);
  const Tensor own = w.temporary("gradient of gate and up", 2 * wide);
  for (const Tensor tensor : {gate, t.gate, own}) w.free(tensor);
  return both;
}

// One product makes gate and up, and one its gradients: those of its halves are joined first.
Tensor write_joined_backward(BlockWriter& w, Bytes wide, const EagerMlp& t, Tensor product) {
  const Tensor up = w.temporary("up gradient", wide);
  const Tensor activated = w.temporary("activated gate gradient", wide);
  for (const Tensor tensor : {product, t.activated}) w.free(tensor);
  const Tensor gate = w.temporary("gate gradient", wide);
  for (const Tensor tensor : {activated, t.gate, t.up}) w.free(tensor);
  const Tensor both = w.temporary("gradient of gate and up", 2 * wide);
  for (const Tensor tensor : {up, gate}) w.free(tensor);
  return both;
}

}  // namespace

Tensor write_mlp(EagerPass& pass, const EagerShape& s, const MlpShape& shape, EagerMlp& t) {
  const Bytes wide = shape.wide(s);
  BlockWriter& w = pass.writer();
  const auto multiply = [&](Module linear, std::string_view name, Bytes bytes) {
    if (!shape.expert() || s.style.saves_experts) return pass.multiply({linear}, name, bytes);
    w.run(linear);
    return pass.make(name, bytes);
  };
  if (shape.gated) {
    t.gate = multiply(shape.gate(), "gate", wide);
    // The compiler makes the activation again instead of keeping it.
    const bool activates = !s.style.compiled && !bounds_inputs(s, shape);
    const bool joined = s.style.joins_experts && shape.expert();  // gate and up are there together
    if (activates && !joined) {
      t.activated = pass.make("activated gate", wide);
      pass.done(t.gate);
    }
    t.up = multiply(shape.up(), "up", wide);
    if (activates && joined) t.activated = pass.make("activated gate", wide);
    if (bounds_inputs(s, shape)) write_bounded(pass, wide, t);
  } else {
    t.up = multiply(shape.up(), "fc1 output", wide);
  }
  w.run(shape.activation());
  if (s.style.compiled && pass.is_checkpoint()) {
    t.product = t.up;  // written in its place: nothing reads it again in this pass
    t.up = BlockWriter::none;
  } else if (!shape.gated && squares_relu(s)) {
    t.product =
        write_squared_relu(pass, s, wide, std::exchange(t.up, BlockWriter::none), t.squared);
  } else if (!shape.gated && spells_gelu(s)) {
    t.product = write_gelu(pass, s, wide, t.gelu);
    // A power that autocast widens keeps its input in fp32 instead.
    if (s.style.autocast) pass.drop(std::exchange(t.up, BlockWriter::none));
  } else {
    t.product = pass.make("activation output", wide);
    if (!shape.gated && s.style.relu) pass.drop(std::exchange(t.up, BlockWriter::none));
  }
  for (Tensor* tensor :
       {&t.gate, &t.activated, &t.up, &t.bounds.gate, &t.bounds.sigmoid, &t.bounds.shifted}) {
    pass.done(*tensor);
  }
  // The compiler drops what no backward pass reads from what a checkpoint keeps.
  Tensor output;
  if (s.style.compiled) {
    pass.run_kept({shape.down()});
    output = pass.make("down", shape.hidden(s));
  } else {
    output = multiply(shape.down(), "down", shape.hidden(s));
  }
  pass.done(t.product);
  return output;
}

Tensor write_mlp_backward(BlockWriter& w,
                          const EagerShape& s,
                          const MlpShape& shape,
                          const EagerMlp& t,
                          const OnGradient& on_gradient,
                          Tensor read,
                          Tensor output) {
  const Bytes wide = shape.wide(s);
  const auto gradients_of = [&](Module linear) {
    write_linear_gradients(w, s, linear, on_gradient, shape.expert());
  };
  gradients_of(shape.down());
  const Tensor product = w.temporary("activation output gradient", wide);
  w.run_backward(shape.activation());
  w.free(t.product);
  w.free_with_weights(output);
  InputGradient input(w, s, shape.hidden(s));
  const auto project = [&](Tensor gradient, Module linear, Tensor done_with = BlockWriter::none) {
    gradients_of(linear);
    const Tensor part = input.make();
    w.free_with_weights(gradient);
    w.free(done_with);
    input.add(part);
  };
  if (!shape.gated) {
    Tensor up = BlockWriter::none;
    if (spells_gelu(s)) {
      up = write_gelu_backward(w, s, wide, t.gelu, product);
    } else if (squares_relu(s)) {
      up = write_squared_relu_backward(w, s, wide, t.squared, product);
    } else {
      up = w.temporary("fc1 output gradient", wide);
      w.free(product);
    }
    w.free(t.up);
    project(up, shape.up(), read);
    return input.sum();
  }
  if (s.style.compiled) {
    // One kernel writes both gradients, the gate's over the product's.
    const Tensor up = w.temporary("up gradient", wide);
    w.free(t.up);
    w.free(t.gate);
    project(up, shape.up());
    project(product, shape.gate(), read);
    return input.sum();
  }
  const bool bounds = bounds_inputs(s, shape);
  if (bounds || (s.style.joins_experts && shape.expert())) {
    const Tensor both = bounds ? write_bounded_backward(w, wide, t, product)
                               : write_joined_backward(w, wide, t, product);
    gradients_of(shape.up());
    project(both, shape.gate(), read);
    return input.sum();
  }
  const Tensor up = w.temporary("up gradient", wide);
  const Tensor activated = w.temporary("activated gate gradient", wide);
  w.free(product);
  w.free(t.up);
  w.free(t.activated);
  project(up, shape.up());
  const Tensor gate = w.temporary("gate gradient", wide);
  w.free(activated);
  w.free(t.gate);
  project(gate, shape.gate(), read);
  return input.sum();
}

std::vector<Tensor> tensors_of(const EagerMlp& t) {
  return {t.gate,         t.activated,         t.up,
          t.gelu.half,    t.gelu.widened,      t.gelu.tangent,
          t.gelu.shifted, t.squared.rectified, t.squared.widened,
          t.bounds.gate,  t.bounds.sigmoid,    t.bounds.shifted,
          t.product};
}

}  // namespace zeroplan
