// State spaces, layers of one half and experts of latents as Megatron-LM's own code ran them on
// fake tensors (traced/megatron.jsonl has whole runs): the tensors of a layer, and what it sends.
#include <algorithm>

#include "cost_model/program/fold.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/states/model_states.hpp"
#include "tests/blocks.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::layer_block;
using tests::sent;
using tests::sizes;

namespace {

constexpr std::int64_t tokens = 4'096;

struct Ranks {
  std::int64_t tp = 1, cp = 1, samples = 1, ep = 1;
};

// Of 4,096 tokens a rank, in so many samples.
Problem nano(Ranks ranks) {
  Layout layout{
      .dp = ranks.ep, .tp = ranks.tp, .cp = ranks.cp, .ep = ranks.ep, .micro_batch = ranks.samples};
  layout.sequence_parallel = ranks.tp > 1;
  Problem p = tests::problem(Runtime::megatron, "nemotron-3-nano-30b-a3b", layout);
  p.training.sequence_length = tokens * ranks.cp / ranks.samples;
  p.training.precision = Precision::bf16;
  return p;
}

std::int64_t kept(const Problem& p, LayerKind kind) {
  return folded(layer_block(p, kind))->forward.left.allocated().count();
}

}  // namespace

// 64 heads of 64 in 8 groups whose state is 128 wide: 4,096 features, 6,144 channels, 10,304 values
// of the first projection.
TEST_CASE("a state space of Megatron's keeps what its scan reads, gives, and the norm makes") {
  constexpr std::int64_t h = 2'688, projected = 10'304, features = 4'096, groups = 8;
  const std::int64_t whole = 2 * h + (2 * h + 4) + 2 * projected + 2 * features +
                             (2 * features + 4 * groups) + 2 * features;
  CHECK(kept(nano({}), LayerKind::linear) == tokens * whole);
  // Samples stand one after the other where the scan runs: copies take the places of what they
  // copy.
  CHECK(kept(nano({.samples = 4}), LayerKind::linear) == tokens * whole);
  const Block turned = layer_block(nano({.samples = 2}), LayerKind::linear);
  for (const char* copy : {"projected, by sample", "projected gradient by token"}) {
    CHECK(sizes(turned, copy) == std::vector{2 * tokens * projected});
  }
  for (const char* copy : {"gated output by token", "gated output's gradient by sample"}) {
    CHECK(sizes(turned, copy) == std::vector{2 * tokens * features});
  }
  // The gate inside the scan, and the parts of a norm's weight gradient: 132 multiprocessors work
  // on 8 groups, two programs each.
  const Block block = layer_block(nano({}), LayerKind::linear);
  CHECK(sizes(block, "gradient of what is written") == std::vector{4 * 8 * 128 * tokens});
  CHECK(sizes(block, "gradient before the gate") == std::vector{2 * tokens * features});
  CHECK(sizes(block, "norm weight gradient in parts") == std::vector<std::int64_t>{540'672});
}

TEST_CASE("tensor parallelism divides all of a state space but its residual") {
  const Problem p = nano({.tp = 4});
  const Block block = layer_block(p, LayerKind::linear);
  CHECK(sizes(block, "gate, features and time steps") == std::vector{2 * tokens * 10'304 / 4});
  CHECK(sizes(block, "norm statistics of the output") == std::vector{4 * tokens * 2});
  const std::vector<std::int64_t> whole{2 * tokens * 2'688};
  CHECK(sent(block, block.forward, "tp", Collective::all_gather) == whole);
  CHECK(sent(block, block.forward, "tp", Collective::reduce_scatter) == whole);
  const auto elements = [&](std::string_view name) {
    const std::vector<Weight> weights = layer_weights(p.model, LayerKind::linear);
    return local_weight(*std::ranges::find(weights, name, &Weight::name), p).elements();
  };
  CHECK(elements("A_log") == 16);
  CHECK(elements("D") == 16);
  CHECK(elements("dt_bias") == 16);
  CHECK(elements("conv1d") == 4 * 6'144 / 4);
  CHECK(elements("conv1d.bias") == 6'144 / 4);
  CHECK(elements("gated_norm") == 1'024);
  CHECK(elements("in_proj") == 10'304 / 4 * 2'688);
}

// core/ssm/mamba_context_parallel.py: gate, features, what is written and read, time steps.
TEST_CASE("context parallelism exchanges a state space's tokens for heads part by part") {
  const Block block = layer_block(nano({.cp = 2}), LayerKind::linear);
  const std::int64_t features = 2 * tokens * 4'096, group = 2 * tokens * 1'024;
  const std::int64_t steps = 2 * tokens * 64;
  const std::vector forward{features, features, group, group, steps, features};
  const std::vector backward{features, steps, group, group, features, features};
  CHECK(sent(block, block.forward, "cp", Collective::all_to_all) == forward);
  CHECK(sent(block, block.backward, "cp", Collective::all_to_all) == backward);
  CHECK(sizes(block, "filters of this rank") == std::vector<std::int64_t>{2 * 3'072 * 5});
  // Of 8 groups on 16 ranks each has one, and half of its heads.
  const Block shared = layer_block(nano({.cp = 16}), LayerKind::linear);
  CHECK(sizes(shared, "gradient of what is read") ==
        std::vector<std::int64_t>{4 * 16 * tokens * 128});
  CHECK(sizes(shared, "filters of this rank") == std::vector<std::int64_t>{2 * (256 + 256) * 5});
}

TEST_CASE("layers of one half keep their input once and one norm") {
  constexpr std::int64_t h = 2'688, queries = 4'096, keys = 256;
  Problem p = nano({});
  p.model.mlp.intermediate_size = 1'856;
  const std::int64_t norm = 2 * h + 4;
  CHECK(kept(p, LayerKind::mlp) == tokens * (2 * h + norm + 2 * 2 * 1'856));
  // Queries of 16 heads a key are brought together; keys and values are made contiguous.
  CHECK(kept(p, LayerKind::attention) ==
        tokens * (2 * h + norm + 2 * (queries + 2 * keys) + 2 * queries + 4 * 32));
  const std::int64_t experts = kept(p, LayerKind::experts);
  p.runtime.megatron.use_fused_weighted_squared_relu = true;
  CHECK(experts - kept(p, LayerKind::experts) == 2 * tokens * 6 * 1'856);
}

// core/transformer/moe/moe_layer.py: 1,024 features between two projections that every rank has.
TEST_CASE("experts of latents are sent latents") {
  Problem p = nano({.ep = 8});
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::alltoall;
  const std::int64_t before = kept(p, LayerKind::experts);
  p.model.moe->latent_size = 1'024;
  const Block block = layer_block(p, LayerKind::experts);
  const std::vector there_and_back(2, 2 * tokens * 6 * 1'024);
  CHECK(sent(block, block.forward, "ep", Collective::all_to_all) == there_and_back);
  CHECK(sent(block, block.backward, "ep", Collective::all_to_all) == there_and_back);
  CHECK(sizes(block, "latents of experts") == std::vector{2 * tokens * 1'024});
  CHECK(before - kept(p, LayerKind::experts) ==
        2 * tokens * 6 * (2'688 - 1'024) - 2 * tokens * 1'024);
  std::int64_t matrices = 0;
  for (const Weight& w : layer_weights(p.model, LayerKind::experts)) {
    if (w.expert) CHECK(w.rows * w.columns == 1'024 * 1'856);
    if (w.name.ends_with("latent_proj")) matrices += local_weight(w, p).elements();
  }
  CHECK(matrices == 2 * 1'024 * 2'688);
}
