// What does turning queries and keys by their positions allocate? Front door: write_rotation.
#include "cost_model/runtime/pytorch_layers/kernel.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

}  // namespace

// Queries and keys turned by their positions: complex products in fp32, both at once; or cosine and
// sine in 16 bits, one after the other.
void write_rotation(EagerPass& pass, const EagerShape& s, EagerKernel& p) {
  BlockWriter& w = pass.writer();
  const EagerKernel raw = p;
  if (s.style.gathers_rotary) {
    const std::int64_t head = s.problem.model.attention.head_dim;
    p.rotary = pass.make("gathered rotary table", Bytes{fp32 * head * s.tokens});
  }
  if (s.style.complex_rotary) {
    std::vector<Tensor> wide;
    for (const char* name : {"complex operand", "complex product"}) {
      for (const Bytes bytes : {query(s), keys(s)}) wide.push_back(w.temporary(name, 2 * bytes));
    }
    p.query = pass.make("rotated queries", query(s));
    p.key = pass.make("rotated keys", keys(s));
    for (const Tensor tensor : wide) w.free(tensor);
  } else {
    const auto turn = [&](std::string_view name, Bytes bytes) {
      const Tensor cosine = w.temporary("product with cosine", bytes);
      const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
      const Tensor swapped = w.temporary("swapped halves", bytes);
      w.free(half);
      const Tensor sine = w.temporary("product with sine", bytes);
      w.free(swapped);
      const Tensor turned = pass.make(name, bytes);
      w.free(cosine);
      w.free(sine);
      return turned;
    };
    p.query = turn("rotated queries", query(s));
    p.key = turn("rotated keys", keys(s));
  }
  pass.drop(raw.query);
  pass.drop(raw.key);
}

void write_rotation_backward(BlockWriter& w,
                             const EagerShape& s,
                             Tensor& query_gradient,
                             Tensor& key_gradient) {
  if (s.style.complex_rotary) {
    const Tensor wide_key = w.temporary("complex key gradient", 2 * keys(s));
    w.free(key_gradient);
    const Tensor wide_query = w.temporary("complex query gradient", 2 * query(s));
    w.free(query_gradient);
    const Tensor turned_key = w.temporary("turned key gradient", 2 * keys(s));
    w.free(wide_key);
    const Tensor turned_query = w.temporary("turned query gradient", 2 * query(s));
    w.free(wide_query);
    key_gradient = w.temporary("raw key gradient", keys(s));
    w.free(turned_key);
    query_gradient = w.temporary("raw query gradient", query(s));
    w.free(turned_query);
    return;
  }
  const auto turn = [&](Tensor& gradient, Bytes bytes) {
    const Tensor sine = w.temporary("product with sine", bytes);
    const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
    const Tensor first = w.temporary("raw gradient", bytes);
    w.free(half);
    const Tensor second = w.temporary("raw gradient of the other half", bytes);
    w.free(sine);
    w.free(second);
    const Tensor cosine = w.temporary("product with cosine", bytes);
    w.free(gradient);
    w.free(cosine);
    gradient = first;
  };
  turn(key_gradient, keys(s));
  turn(query_gradient, query(s));
}

}  // namespace zeroplan
