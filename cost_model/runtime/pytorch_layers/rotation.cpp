// What does turning queries and keys by their positions allocate? Front door: write_rotation.
#include "cost_model/runtime/pytorch_layers/kernel.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

// What turns one tensor by cosine and sine allocates on the way, `bytes` each; the sum is the
// caller's.
template <class Make>
Tensor turn(BlockWriter& w, Bytes bytes, Make&& make) {
  const Tensor cosine = w.temporary("product with cosine", bytes);
  const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
  const Tensor swapped = w.temporary("swapped halves", bytes);
  w.free(half);
  const Tensor sine = w.temporary("product with sine", bytes);
  w.free(swapped);
  const Tensor turned = make();
  w.free(cosine);
  w.free(sine);
  return turned;
}

// Complex products, both at once.
std::vector<Tensor> multiply(BlockWriter& w, const EagerShape& s) {
  std::vector<Tensor> wide;
  for (const char* name : {"complex operand", "complex product"}) {
    for (const Bytes bytes : {query(s), keys(s)}) wide.push_back(w.temporary(name, 2 * bytes));
  }
  return wide;
}

// Cosine and sine in fp32: torchtitan models/common/rope.py CosSinRoPE.apply_rotary_emb @0.3.0,
// whose variables hold operands and sums.
std::vector<Tensor> turn_wide(BlockWriter& w, const EagerShape& s) {
  std::vector<Tensor> wide;
  for (const Bytes bytes : {query(s), keys(s)}) {
    wide.push_back(w.temporary("fp32 operand", 2 * bytes));
  }
  for (const Bytes bytes : {query(s), keys(s)}) {
    wide.push_back(turn(w, 2 * bytes, [&] { return w.temporary("fp32 rotation", 2 * bytes); }));
  }
  return wide;
}

// From the gradient of fp32 products to those of what they were widened from.
void widen(BlockWriter& w, const EagerShape& s, Tensor& query_gradient, Tensor& key_gradient) {
  const Tensor wide_key = w.temporary("fp32 key gradient", 2 * keys(s));
  w.free(key_gradient);
  const Tensor wide_query = w.temporary("fp32 query gradient", 2 * query(s));
  w.free(query_gradient);
  query_gradient = wide_query;
  key_gradient = wide_key;
}
void narrow(BlockWriter& w, const EagerShape& s, Tensor& query_gradient, Tensor& key_gradient) {
  const Tensor key = w.temporary("raw key gradient", keys(s));
  w.free(key_gradient);
  const Tensor query = w.temporary("raw query gradient", zeroplan::query(s));
  w.free(query_gradient);
  query_gradient = query;
  key_gradient = key;
}

// Autograd sums the parts of both halves, then that of the cosine.
Tensor turn_wide_back(BlockWriter& w, Bytes bytes, Tensor gradient, Tensor table) {
  const Tensor sine = w.temporary("product with sine", bytes);
  const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
  const Tensor first = w.temporary("gradient of one half", bytes);
  w.free(half);
  const Tensor second = w.temporary("gradient of the other half", bytes);
  w.free(sine);
  const Tensor halves = w.temporary("sum of halves", bytes);
  for (const Tensor tensor : {first, second}) w.free(tensor);
  const Tensor cosine = w.temporary("product with cosine", bytes);
  for (const Tensor tensor : {gradient, table}) w.free(tensor);
  const Tensor sum = w.temporary("turned gradient", bytes);
  for (const Tensor tensor : {halves, cosine}) w.free(tensor);
  return sum;
}

}  // namespace

void write_rotation(EagerPass& pass, const EagerShape& s, EagerKernel& p) {
  BlockWriter& w = pass.writer();
  const EagerKernel raw = p;
  if (s.style.gathers_rotary) {
    // A complex number a pair of features, or cosine and sine of each.
    const std::int64_t head = s.problem.model.attention.head_dim;
    const Bytes table{(s.style.complex_rotary ? 1 : 2) * fp32 * head * s.tokens};
    p.rotary = pass.make("gathered rotary table", table);
  }
  const auto query = [&] { return pass.make("rotated queries", zeroplan::query(s)); };
  const auto key = [&] { return pass.make("rotated keys", keys(s)); };
  if (s.style.complex_rotary || s.style.wide_rotary) {
    const std::vector<Tensor> wide = s.style.complex_rotary ? multiply(w, s) : turn_wide(w, s);
    p.query = query();
    p.key = key();
    for (const Tensor tensor : wide) w.free(tensor);
  } else if (s.style.turns_wide) {  // then narrowed for the kernel
    const auto turn_wide = [&](Bytes bytes) {
      return turn(w, bytes, [&] { return w.temporary("fp32 rotation", bytes); });
    };
    const std::vector<Tensor> wide{turn_wide(2 * zeroplan::query(s)), turn_wide(2 * keys(s))};
    p.query = query();
    p.key = key();
    for (const Tensor tensor : wide) w.free(tensor);
  } else {
    p.query = turn(w, zeroplan::query(s), query);
    p.key = turn(w, keys(s), key);
  }
  pass.drop(raw.query);
  pass.drop(raw.key);
}

void write_rotation_backward(BlockWriter& w,
                             const EagerShape& s,
                             Tensor table,
                             Tensor& query_gradient,
                             Tensor& key_gradient) {
  if (s.style.complex_rotary) {
    widen(w, s, query_gradient, key_gradient);
    const Tensor turned_key = w.temporary("turned key gradient", 2 * keys(s));
    w.free(key_gradient);
    const Tensor turned_query = w.temporary("turned query gradient", 2 * query(s));
    for (const Tensor tensor : {table, query_gradient}) w.free(tensor);
    key_gradient = turned_key;
    query_gradient = turned_query;
    return narrow(w, s, query_gradient, key_gradient);
  }
  if (s.style.wide_rotary || s.style.turns_wide) {
    widen(w, s, query_gradient, key_gradient);
    key_gradient = turn_wide_back(w, 2 * keys(s), key_gradient, BlockWriter::none);
    query_gradient = turn_wide_back(w, 2 * query(s), query_gradient, table);
    return narrow(w, s, query_gradient, key_gradient);
  }
  const auto turn_back = [&](Tensor& gradient, Bytes bytes) {
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
  turn_back(key_gradient, keys(s));
  turn_back(query_gradient, query(s));
}

}  // namespace zeroplan
