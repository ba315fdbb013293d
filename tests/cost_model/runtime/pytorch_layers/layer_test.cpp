// Plain PyTorch's layers against what PyTorch itself allocated: torch 2.9.1 and transformers 4.57.1
// run on the CPU under torch.profiler(profile_memory=True), with kernels registered that allocate
// what the CUDA ones do (flash attention, fused RMSNorm). 1,024 tokens, 512 features, 8 query and 2
// key-value heads of 64, 1,408 intermediate features, 4,096 words.
#include "cost_model/program/footprint.hpp"
#include "cost_model/runtime/pytorch_layers/head.hpp"
#include "cost_model/runtime/pytorch_layers/kernel.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem small_llama() {
  ModelSpec model{.name = "small", .layers = 1, .hidden_size = 512, .vocab_size = 4096};
  model.attention = {.heads = 8, .kv_heads = 2, .head_dim = 64};
  model.mlp = {.intermediate_size = 1408, .gated = true};
  Problem p{.model = model,
            .cluster = cluster_of("H100-80GB", 1),
            .runtime = load_runtime(Runtime::fsdp2, {}),
            .training = {.sequence_length = 1024, .global_batch = 1}};
  p.layout.zero = ZeroStage::parameters;
  return p;
}

struct Measured {
  std::int64_t saved;           // for the backward pass, the layer's input and output apart
  std::int64_t forward_peak;    // the input apart
  std::int64_t backward_peak;   // with the gradient that comes in
  std::int64_t with_gradients;  // the same, gradients of weights kept
};

Bytes peak(const Block& block, bool backward) {
  const auto& events = backward ? block.backward : block.forward;
  return fold(block, events, Phase::forward, {.input = true}).peak.live.allocated();
}

Measured measure_layer(const EagerStyle& style,
                       AttentionKernel kernel = AttentionKernel::flash,
                       Problem p = small_llama()) {
  p.training.attention = kernel;
  const WeightInventory inventory = weight_inventory(p.model);
  const auto write = [&](bool keeps_gradients) {
    BlockWriter w(layer_shape(p).residual(), layer_shape(p).residual());
    EagerLayer layer({layer_shape(p), style, inventory.layer(LayerKind::dense)}, LayerKind::dense);
    std::vector<Tensor> kept;
    layer.forward(w);
    w.begin_backward();
    layer.backward(w, [&](BlockWriter& writer, std::string_view name, std::int64_t elements) {
      const Tensor made = writer.temporary(name, Bytes{2 * elements});
      keeps_gradients ? kept.push_back(made) : writer.free(made);
    });
    return w.finish();
  };
  const Block block = write(false);
  const Bytes residual = layer_shape(p).residual();
  const Bytes saved =
      fold(block, block.forward, Phase::forward, {.input = true}).left.allocated() - residual;
  return {saved.count(), peak(block, false).count(), (saved + residual + peak(block, true)).count(),
          (saved + residual + peak(write(true), true)).count()};
}

void require_equal(const Measured& predicted, const Measured& measured) {
  CHECK(predicted.saved == measured.saved);
  CHECK(predicted.forward_peak == measured.forward_peak);
  CHECK(predicted.backward_peak == measured.backward_peak);
  CHECK(predicted.with_gradients == measured.with_gradients);
}

}  // namespace

TEST_CASE("a Llama layer of Hugging Face, byte for byte") {
  require_equal(measure_layer({.composite_norm = true}),
                {22'586'368, 25'732'096, 29'402'112, 30'843'904});
  require_equal(measure_layer({.composite_norm = true, .repeats_keys = true, .names_keys = true}),
                {24'159'232, 27'304'960, 30'974'976, 32'416'768});
}

TEST_CASE("a Llama layer of torchtitan, byte for byte") {
  require_equal(measure_layer({.complex_rotary = true, .repeats_keys = true}),
                {18'916'352, 21'013'504, 25'732'096, 27'173'888});
  require_equal(
      measure_layer({.composite_norm = true, .complex_rotary = true, .repeats_keys = true}),
      {24'159'232, 27'304'960, 30'974'976, 32'416'768});
  require_equal(measure_layer({.complex_rotary = true}),
                {17'343'488, 19'440'640, 24'159'232, 25'601'024});
}

TEST_CASE("attention that is not fused, byte for byte") {
  const Measured m = measure_layer(
      {.composite_norm = true, .repeats_keys = true, .names_keys = true}, AttentionKernel::unfused);
  CHECK(m.saved == 74'457'088);
  CHECK(m.forward_peak == 91'754'496);
  CHECK(m.backward_peak == 109'056'000);
}

// Queries and keys that were turned stay in fp32, 512 x 2,048 and 512 x 512 features, with a root
// for each head.
TEST_CASE("norms of turned queries and keys keep what they widened") {
  const EagerStyle plain{.complex_rotary = true, .names_keys = true};
  EagerStyle normed = plain;
  normed.norms_turned = true;
  const Problem p = small_llama();
  const AttentionSpec& a = p.model.attention;
  const std::int64_t tokens = layer_shape(p).tokens;
  const std::int64_t heads = a.heads + a.kv_heads;
  CHECK(measure_layer(normed).saved - measure_layer(plain).saved ==
        4 * tokens * heads * (a.head_dim + 1));
}

TEST_CASE(
    "norms of all heads at once keep one root for the queries of a token and one for its keys") {
  Problem p = small_llama();
  p.model.attention.qk_norm = true;
  const auto saved = [&] {
    return measure_layer({.composite_norm = true}, AttentionKernel::flash, p).saved;
  };
  const std::int64_t by_head = saved();
  p.model.attention.joint_qk_norm = true;
  const AttentionSpec& a = p.model.attention;
  CHECK(by_head - saved() == 4 * layer_shape(p).tokens * (a.heads + a.kv_heads - 2));
}

TEST_CASE("a checkpointed layer keeps its input alone and is made again") {
  const Measured m = measure_layer({.composite_norm = true, .checkpoint = Checkpoint::layer});
  CHECK(m.saved == 0);
  CHECK(m.forward_peak == 10'747'904);
  CHECK(m.backward_peak == 29'402'112);
}

// x.float() and its square, then x and x * rsqrt(...), each in fp32.
TEST_CASE("a norm of fp32 operators holds two tensors of fp32 at a time under a checkpoint") {
  const Problem p = small_llama();
  const WeightInventory inventory = weight_inventory(p.model);
  const Bytes bytes{1 << 20}, statistics{4096};
  BlockWriter w(bytes, bytes);
  std::vector<Tensor> cache;
  EagerPass pass(w, EagerPass::Keeps::checkpoint, Checkpoint::none, cache);
  write_eager_norm(pass,
                   {layer_shape(p), {.composite_norm = true}, inventory.layer(LayerKind::dense)},
                   bytes, statistics);
  w.begin_backward();
  const Block block = w.finish();
  CHECK(peak(block, false) == 2 * 2 * bytes + statistics);
}

// LlamaRMSNorm and Gemma2RMSNorm of transformers alone in torch 2.10.0, 1,024 x 512 values in 16
// bits; the gradient that came in, held by whoever measured, taken off.
TEST_CASE("a norm of fp32 operators needs in its backward pass what PyTorch allocated") {
  const Problem p = small_llama();
  const WeightInventory inventory = weight_inventory(p.model);
  const Bytes bytes{1 << 20}, statistics{4096};
  const auto peak_of = [&](bool weighs_wide) {
    const EagerStyle style{.composite_norm = true, .weighs_wide = weighs_wide};
    BlockWriter w(bytes, bytes);
    std::vector<Tensor> cache;
    EagerPass pass(w, EagerPass::Keeps::saved, Checkpoint::none, cache);
    const EagerNorm norm = write_eager_norm(
        pass, {layer_shape(p), style, inventory.layer(LayerKind::dense)}, bytes, statistics);
    w.free(norm.output);
    w.begin_backward();
    w.free(write_eager_norm_backward(w, norm, bytes, Block::output_grad));
    return peak(w.finish(), true).count();
  };
  constexpr std::int64_t held = 1 << 20, small = 16 * 1024;
  CHECK(peak_of(false) == Approx(9'434'112 - held).margin(small));
  CHECK(peak_of(true) == Approx(8'383'488 - held).margin(small));
}

// CosSinRoPE.apply_rotary_emb of torchtitan 0.3.0 alone, in torch 2.14.1, on queries and keys as
// above.
TEST_CASE("a rotation by cosine and sine in fp32 needs what PyTorch allocated") {
  const Problem p = small_llama();
  const WeightInventory inventory = weight_inventory(p.model);
  const EagerStyle style{.wide_rotary = true};
  const EagerShape s{layer_shape(p), style, inventory.layer(LayerKind::dense)};
  BlockWriter w(layer_shape(p).residual(), layer_shape(p).residual());
  std::vector<Tensor> cache;
  EagerPass pass(w, EagerPass::Keeps::saved, Checkpoint::none, cache);
  EagerKernel kernel{.query = w.temporary("queries", query(s)),
                     .key = w.temporary("keys", keys(s))};
  write_rotation(pass, s, kernel);
  w.begin_backward();
  const Bytes before = query(s) + keys(s);
  CHECK(peak(w.finish(), false) == before + Bytes{8'912'896});
}

TEST_CASE("head and loss, byte for byte") {
  const Problem p = small_llama();
  const WeightInventory inventory = weight_inventory(p.model);
  const auto measure = [&](const EagerStyle& style, LossCode loss) {
    BlockWriter w(layer_shape(p).residual(), Bytes{});
    EagerHead head({layer_shape(p), style, inventory.head}, loss);
    const OnGradient gone = [](BlockWriter& writer, std::string_view name, std::int64_t elements) {
      writer.free(writer.temporary(name, Bytes{2 * elements}));
    };
    head.forward(w);
    head.loss_forward(w, gone);
    w.begin_backward();
    head.loss_backward(w);
    head.output_layer_backward(w, gone);
    head.norm_backward(w);
    const Block block = w.finish();
    const Bytes saved =
        fold(block, block.forward, Phase::forward, {.input = true}).left.allocated();
    return Measured{saved.count(), peak(block, false).count(), (saved + peak(block, true)).count(),
                    0};
  };
  // Labels and a scalar or two, which PyTorch's figures hold, are the rank's here.
  constexpr std::int64_t small = 16 * 1024;
  const Measured titan = measure({}, LossCode::plain);
  CHECK(titan.saved == Approx(17'830'400).margin(small));
  CHECK(titan.forward_peak == Approx(42'996'736).margin(small));
  CHECK(titan.backward_peak == Approx(51'384'832).margin(small));
  const Measured kept = measure({.composite_norm = true}, LossCode::huggingface);
  CHECK(kept.saved == Approx(29'373'440).margin(small));
  CHECK(kept.forward_peak == Approx(46'151'168).margin(small));
  CHECK(kept.backward_peak == Approx(62'919'168).margin(small));
}
