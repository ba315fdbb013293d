// What does GELU allocate that is spelt out operator by operator? Front door: write_gelu.
#include "cost_model/runtime/pytorch_layers/gelu.hpp"

namespace zeroplan {
namespace {

// Autocast raises to a power in fp32, which all that follows inherits.
Bytes gelu_bytes(const EagerShape& s, Bytes input) {
  return (s.style.autocast ? 2 : 1) * input;
}

}  // namespace

bool spells_gelu(const EagerShape& s) {
  return s.style.spelt_gelu && !s.style.compiled;
}

Tensor write_gelu(EagerPass& pass, const EagerShape& s, Bytes input, EagerGelu& t) {
  BlockWriter& w = pass.writer();
  const Bytes bytes = gelu_bytes(s, input);
  t.half = pass.make("half of the input", input);
  if (s.style.autocast) t.widened = pass.make("activation input in fp32", bytes);
  Tensor last = w.temporary("cubed input", bytes);
  for (const char* name : {"scaled cube", "input with its cube", "argument of tanh"}) {
    const Tensor next = w.temporary(name, bytes);
    w.free(last);
    last = next;
  }
  t.tangent = pass.make("tanh", bytes);
  w.free(last);
  t.shifted = pass.make("shifted tanh", bytes);
  pass.done(t.tangent);
  const Tensor product = pass.make("activation output", input);
  const Tensor wide = w.temporary("activation output in fp32", bytes > input ? bytes : Bytes{});
  for (Tensor* tensor : {&t.half, &t.widened, &t.shifted}) pass.done(*tensor);
  w.free(wide);
  return product;
}

Tensor write_gelu_backward(
    BlockWriter& w, const EagerShape& s, Bytes input, const EagerGelu& t, Tensor output_gradient) {
  const Bytes bytes = gelu_bytes(s, input);
  const Tensor half = w.temporary("gradient of half the input", input);
  Tensor last = w.temporary("tanh gradient", bytes);
  for (const Tensor tensor : {output_gradient, t.half, t.shifted}) w.free(tensor);
  const Tensor argument = w.temporary("gradient of tanh's argument", bytes);
  for (const Tensor tensor : {last, t.tangent}) w.free(tensor);
  const Tensor sum = w.temporary("gradient of input with its cube", bytes);
  w.free(argument);
  const Tensor cube = w.temporary("cube gradient", bytes);
  const Tensor square = w.temporary("squared input", bytes);
  const Tensor slope = w.temporary("slope of the cube", bytes);
  w.free(square);
  last = w.temporary("input gradient through the cube", bytes);
  for (const Tensor tensor : {slope, cube, t.widened}) w.free(tensor);
  const Tensor gradient = w.temporary("fc1 output gradient", input);
  for (const Tensor tensor : {last, sum, half}) w.free(tensor);
  return gradient;
}

}  // namespace zeroplan
