// What does ReLU squared allocate operator by operator? Front door: write_squared_relu.
#include "cost_model/runtime/pytorch_layers/squared_relu.hpp"

namespace zeroplan {

bool squares_relu(const EagerShape& s) {
  return s.problem.model.mlp.squared_relu && !s.style.compiled;
}

// Autocast raises to a power in fp32, and the linear narrows what it gives.
Tensor write_squared_relu(
    EagerPass& pass, const EagerShape& s, Bytes bytes, Tensor input, EagerSquaredRelu& t) {
  BlockWriter& w = pass.writer();
  const bool widens = s.style.autocast;
  t.rectified = pass.make("rectified fc1 output", bytes);
  Tensor square;
  if (widens) {
    t.widened = pass.make("rectified fc1 output in fp32", 2 * bytes);
    square = w.temporary("activation output in fp32", 2 * bytes);
  } else {
    square = pass.make("activation output", bytes);
  }
  pass.drop(input);
  for (Tensor* tensor : {&t.rectified, &t.widened}) pass.done(*tensor);
  if (!widens) return square;
  const Tensor narrowed = pass.make("activation output", bytes);
  w.free(square);
  return narrowed;
}

// A power's gradient makes the power below it, times its exponent.
Tensor write_squared_relu_backward(BlockWriter& w,
                                   const EagerShape& s,
                                   Bytes bytes,
                                   const EagerSquaredRelu& t,
                                   Tensor output_gradient) {
  const Bytes wide = (s.style.autocast ? 2 : 1) * bytes;
  if (s.style.autocast) {
    const Tensor widened = w.temporary("activation output gradient in fp32", wide);
    w.free(output_gradient);
    output_gradient = widened;
  }
  const Tensor power = w.temporary("first power", wide);
  const Tensor slope = w.temporary("slope of the square", wide);
  w.free(power);
  Tensor gradient = w.temporary("rectified gradient", wide);
  for (const Tensor tensor : {slope, output_gradient, t.widened}) w.free(tensor);
  if (s.style.autocast) {
    const Tensor narrowed = w.temporary("rectified gradient in 16 bits", bytes);
    w.free(gradient);
    gradient = narrowed;
  }
  const Tensor input = w.temporary("fc1 output gradient", bytes);
  for (const Tensor tensor : {gradient, t.rectified}) w.free(tensor);
  return input;
}

}  // namespace zeroplan
