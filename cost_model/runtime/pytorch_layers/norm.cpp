// What does a norm allocate? Front door: write_eager_norm.
#include <utility>

#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {
namespace {

// x.pow(2), its mean, x * rsqrt, times the weight. What is made of x keeps x itself.
EagerNorm write_wide_norm(EagerPass& pass, Bytes bytes, Bytes statistics) {
  EagerNorm norm{.composite = true, .reads_wide = true};
  BlockWriter& w = pass.writer();
  w.free(w.temporary("squared norm input", bytes));
  norm.statistics = pass.make("norm statistics", statistics);
  norm.normalised = pass.make("normalised in fp32", bytes);
  norm.output = pass.make("norm output", bytes);
  pass.done(norm.normalised);
  pass.done(norm.statistics);
  return norm;
}

// The mean is taken off twice: for what is squared, and for what is scaled; in fp32, and neither is
// x (transformers v5.24.0 models/cohere/modeling_cohere.py CohereLayerNorm).
EagerNorm write_centred_norm(EagerPass& pass, Bytes bytes, Bytes wide, Bytes statistics) {
  const bool widens = wide > bytes;
  EagerNorm norm{.composite = true, .weighs_wide = widens, .reads_wide = !widens};
  BlockWriter& w = pass.writer();
  const Tensor input = w.temporary("norm input in fp32", widens ? wide : Bytes{});
  norm.widened = pass.make("squared differences' input", wide);
  w.free(w.temporary("squared norm input", wide));
  norm.statistics = pass.make("norm statistics", statistics);
  pass.done(norm.widened);
  norm.centred = pass.make("norm input less its mean", wide);
  norm.normalised = pass.make("normalised in fp32", wide);
  pass.done(norm.centred);
  w.free(input);
  const Tensor output = w.temporary("norm output in fp32", widens ? wide : Bytes{});
  norm.output = pass.make("norm output", bytes);
  w.free(output);
  pass.done(norm.normalised);
  pass.done(norm.statistics);
  return norm;
}

}  // namespace

bool is_composite(const EagerShape& s) {
  const bool spelt = s.problem.model.norm == Norm::rms || s.style.centres_norms;
  return s.style.composite_norm && !s.style.compiled && spelt;
}

bool widens_norm_input(const EagerShape& s) {
  constexpr std::int64_t fp32 = 4;
  return is_composite(s) && s.token.element < fp32;
}

bool keeps_norm_input(const EagerShape& s) {
  return !is_composite(s) || (s.wide_stream() && !s.style.centres_norms);
}

EagerNorm write_stream_norm(EagerPass& pass, const EagerShape& s) {
  const Bytes bytes = s.residual();
  if (!is_composite(s) || !s.wide_stream()) {
    return write_eager_norm(pass, s, bytes, s.norm_statistics());
  }
  return s.style.centres_norms ? write_centred_norm(pass, bytes, bytes, s.norm_statistics())
                               : write_wide_norm(pass, bytes, s.norm_statistics());
}

EagerNorm write_plain_norm(EagerPass& pass, const EagerShape& s, Bytes bytes, Bytes statistics) {
  constexpr std::int64_t fp32 = 4;
  BlockWriter& w = pass.writer();
  const Bytes wide{bytes.count() / s.token.element * fp32};
  EagerNorm norm{.widened = pass.make("norm input in fp32", wide),
                 .composite = true,
                 .reads_wide = wide == bytes};
  w.free(w.temporary("squared norm input", wide));
  norm.statistics = pass.make("norm statistics", statistics);
  const Tensor scaled = w.temporary("normalised in fp32", norm.reads_wide ? Bytes{} : wide);
  pass.done(norm.widened);
  norm.normalised = pass.make("normalised", bytes);
  w.free(scaled);
  return norm;
}

EagerNorm write_eager_norm(EagerPass& pass, const EagerShape& s, Bytes bytes, Bytes statistics) {
  if (is_composite(s) && s.style.centres_norms) {
    return write_centred_norm(pass, bytes, widens_norm_input(s) ? 2 * bytes : bytes, statistics);
  }
  if (is_composite(s) && !widens_norm_input(s)) return write_wide_norm(pass, bytes, statistics);
  EagerNorm norm;
  BlockWriter& w = pass.writer();
  Tensor wide = BlockWriter::none;
  if (!is_composite(s)) {
    norm.statistics = pass.make("norm statistics", statistics);
  } else if (s.style.weighs_wide) {  // times the weight before back to 16 bits
    norm = {.widened = pass.make("norm input in fp32", 2 * bytes),
            .composite = true,
            .weighs_wide = true};
    w.free(w.temporary("squared norm input", 2 * bytes));
    norm.statistics = pass.make("norm statistics", statistics);
    norm.normalised = pass.make("normalised in fp32", 2 * bytes);
    pass.done(norm.widened);
    wide = w.temporary("norm output in fp32", 2 * bytes);
  } else {
    norm = write_plain_norm(pass, s, bytes, statistics);
    norm.weight_is_wide = s.style.autocast;
  }
  norm.output = pass.make("norm output", norm.weight_is_wide ? 2 * bytes : bytes);
  w.free(wide);
  pass.done(norm.normalised);
  pass.done(norm.statistics);
  return norm;
}

Tensor write_eager_norm_backward(
    BlockWriter& w, const EagerNorm& norm, Bytes bytes, Tensor output_gradient, Tensor slot) {
  const auto input_gradient = [&] {
    if (slot == BlockWriter::none) return w.temporary("norm input gradient", bytes);
    w.allocate(slot);
    return slot;
  };
  if (!norm.composite) {
    const Tensor input = input_gradient();
    w.free(output_gradient);
    w.free(norm.statistics);
    return input;
  }
  const Bytes wide = norm.reads_wide ? bytes : 2 * bytes;
  const Bytes weighed = norm.weighs_wide || norm.weight_is_wide ? wide : bytes;
  const Tensor output =
      w.temporary("norm output gradient in fp32", norm.weighs_wide ? weighed : Bytes{});
  Tensor scaled = w.temporary("normalised gradient", weighed);
  w.free(w.temporary("norm weight gradient by row", weighed));
  for (const Tensor tensor : {output, output_gradient, norm.normalised}) w.free(tensor);
  if (!norm.weighs_wide && !norm.reads_wide) {
    const Tensor narrow = scaled;
    scaled = w.temporary("normalised gradient in fp32", wide);
    w.free(narrow);
  }
  const Tensor by_row = w.temporary("statistics gradient by row", wide);
  const Tensor direct = w.temporary("fp32 input gradient", wide);
  w.free(by_row);
  w.free(scaled);
  w.free({norm.statistics, norm.centred});
  const Tensor mean = w.temporary("mean gradient", wide);
  const Tensor power = w.temporary("norm input in fp32, once more", wide);
  const Tensor doubled = w.temporary("doubled norm input", wide);
  const Tensor squared = w.temporary("squared input gradient", wide);
  for (const Tensor tensor : {doubled, power, mean, norm.widened, squared}) w.free(tensor);
  if (norm.reads_wide && slot == BlockWriter::none) return direct;
  const Tensor input = input_gradient();
  w.free(direct);
  return input;
}

Tensor write_linear_input(EagerPass& pass,
                          const EagerShape& s,
                          EagerNorm& norm,
                          std::int64_t linears) {
  if (s.style.autocast) {
    return pass.make("16-bit inputs of linears", linears * s.features(s.token.hidden));
  }
  if (!s.sequence_parallel()) return std::exchange(norm.output, BlockWriter::none);
  if (s.style.joins_gathered) pass.writer().run(Module::rank_order);
  const Tensor input = write_gathered(
      pass.writer(), s, [&] { return pass.make("gathered norm output", s.gathered_operand()); });
  if (s.style.compiled) drop_argument(pass, norm);
  return input;
}

void drop_argument(EagerPass& pass, EagerNorm& norm) {
  pass.drop(std::exchange(norm.output, BlockWriter::none));
}

std::vector<Tensor> tensors_of(const EagerNorm& norm) {
  return {norm.widened, norm.centred, norm.normalised, norm.statistics, norm.output};
}

}  // namespace zeroplan
