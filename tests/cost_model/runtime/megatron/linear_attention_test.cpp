// Linear attention, gates of attention and shared heads as Megatron-LM's own code ran them on fake
// tensors (traced/megatron.jsonl has whole runs): the tensors of a layer, and what it sends.
#include <algorithm>

#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/model_states.hpp"
#include "tests/blocks.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::layer_block;
using tests::sent;
using tests::sizes;

namespace {

constexpr std::int64_t tokens = 2 * 1'024;

struct Ranks {
  std::int64_t tp = 1, cp = 1, samples = 2;
};

// Of 2,048 tokens a rank, in so many samples.
Problem hybrid(std::string_view model, Ranks ranks) {
  Layout layout{.dp = 1, .tp = ranks.tp, .cp = ranks.cp, .micro_batch = ranks.samples};
  layout.sequence_parallel = ranks.tp > 1;
  Problem p = tests::problem(Runtime::megatron, model, layout);
  p.training.sequence_length = tokens * ranks.cp / ranks.samples;
  p.training.precision = Precision::bf16;
  return p;
}

std::int64_t bytes_of(const Block& block, std::string_view name) {
  const std::vector<std::int64_t> all = sizes(block, name);
  CAPTURE(name);
  REQUIRE(all.size() == 1);
  return all.front();
}

}  // namespace

// 16 heads of queries and keys and 32 of values, 128 values each: 8,192 are convolved.
TEST_CASE("Megatron projects all that linear attention reads at once, and keeps it whole") {
  const Block block = layer_block(hybrid("qwen3.5-9b", {}), LayerKind::linear_dense);
  const std::int64_t mixed = 2 * tokens * 8'192, values = 2 * tokens * 4'096;
  CHECK(bytes_of(block, "queries, keys, values, gate and rates") ==
        mixed + values + 2 * tokens * 64);
  CHECK(bytes_of(block, "convolved") == mixed);
  CHECK(bytes_of(block, "normalised queries and keys") == 2 * tokens * 4'096);
  CHECK(bytes_of(block, "norm statistics of heads") == 4 * tokens * 32);
  CHECK(bytes_of(block, "queries of value heads") == values);
  CHECK(bytes_of(block, "keys of value heads") == values);
  CHECK(bytes_of(block, "writing rate") == 2 * tokens * 32);
  CHECK(bytes_of(block, "decay summed by chunk") == 4 * tokens * 32);
  CHECK(bytes_of(block, "norm statistics of the output") == 4 * tokens * 32);
  CHECK(bytes_of(block, "filter gradients by chunk") == 4 * 8'192 * 4 * (tokens / 64));
  CHECK(bytes_of(block, "gradients of the projected rates") == 2 * tokens * 64);
  CHECK(bytes_of(block, "gradient of all that was projected") == mixed + values + 2 * tokens * 64);
  // Samples stand side by side in the residual, one after the other where the rule runs.
  CHECK(sizes(block, "gated output by sample").size() == 1);
  CHECK(sizes(block, "output gradient by sample").size() == 1);
  const Block alone = layer_block(hybrid("qwen3.5-9b", {.samples = 1}), LayerKind::linear_dense);
  CHECK(sizes(alone, "gated output by sample").empty());
  CHECK(sizes(alone, "output gradient by sample").empty());
  CHECK(bytes_of(alone, "gated output") == values);
}

TEST_CASE("tensor parallelism divides the heads of linear attention") {
  const Problem p = hybrid("qwen3.5-9b", {.tp = 4});
  const Block block = layer_block(p, LayerKind::linear_dense);
  CHECK(bytes_of(block, "queries, keys, values, gate and rates") == 2 * tokens * (12'288 + 64) / 4);
  CHECK(bytes_of(block, "norm statistics of heads") == tokens * 32);
  // Of 32 chunks and 8 heads, in either pass.
  const std::int64_t states = std::int64_t{2} * 32 * 8 * 128 * 128;
  CHECK(sizes(block, "states of chunks") == std::vector{states, states});
  // Gathered before the first projection and before the MLP, each once more for weight gradients.
  const std::int64_t whole = 2 * tokens * 4'096;
  CHECK(sent(block, block.forward, "tp", Collective::all_gather) == std::vector{whole, whole});
  CHECK(sent(block, block.forward, "tp", Collective::reduce_scatter) == std::vector{whole, whole});
  const auto elements = [&](std::string_view name) {
    for (const Weight& w : layer_weights(p.model, LayerKind::linear_dense)) {
      if (w.name == name) return local_weight(w, p).elements();
    }
    return std::int64_t{0};
  };
  CHECK(elements("A_log") == 8);
  CHECK(elements("dt_bias") == 8);
  CHECK(elements("conv1d") == 4 * 8'192 / 4);
  CHECK(elements("gated_norm") == 128);
}

// core/ssm/gated_delta_net/common.py a2a_cp_to_hp, a2a_hp_to_cp.
TEST_CASE("context parallelism exchanges tokens for heads around linear attention, and back") {
  const Block block =
      layer_block(hybrid("qwen3.5-9b", {.cp = 2, .samples = 1}), LayerKind::linear_dense);
  const std::int64_t projected = 2 * tokens * (12'288 + 64), values = 2 * tokens * 4'096;
  const std::vector there_and_back{projected, values}, back{values, projected};
  CHECK(sent(block, block.forward, "cp", Collective::all_to_all) == there_and_back);
  CHECK(sent(block, block.backward, "cp", Collective::all_to_all) == back);
  CHECK(sent(block, block.forward, "cp", Collective::send_recv).empty());
  CHECK(bytes_of(block, "filters of this rank") == 2 * 4 * 8'192 / 2);
  CHECK(bytes_of(block, "inverses of chunks") == 2 * tokens * 32 * 64);
  // What is projected is put by head, by rank and in the order of the sequence.
  CHECK(bytes_of(block, "projected, by head") == projected);
  CHECK(bytes_of(block, "projected, by rank") == projected);
  CHECK(sizes(block, "heads of other ranks") == std::vector{projected, values, values, projected});
  CHECK(bytes_of(block, "zeros") == projected);
  CHECK(bytes_of(block, "gated output gradient") == values);
}

// core/transformer/attention.py _apply_output_gate: of 16 heads of 256, in 4 groups.
TEST_CASE("a gate is copied out of what holds several groups of heads, and else keeps all of it") {
  const std::int64_t queries = 2 * tokens * 4'096, keys = 2 * tokens * 1'024;
  const Block groups = layer_block(hybrid("qwen3.5-9b", {}), LayerKind::dense);
  CHECK(bytes_of(groups, "output gate") == queries);
  CHECK(bytes_of(groups, "mixed qkv") == 2 * queries + 2 * keys);
  CHECK(bytes_of(groups, "mixed qkv gradient") == 2 * queries + 2 * keys);
  CHECK(bytes_of(groups, "output gate gradient") == queries);
  CHECK(bytes_of(groups, "projection input") == queries);
  const Block one = layer_block(hybrid("qwen3.5-9b", {.tp = 4}), LayerKind::dense);
  CHECK(sizes(one, "output gate").empty());
  CHECK(bytes_of(one, "mixed qkv") == (2 * queries + 2 * keys) / 4);
  const auto kept = [](const Block& block) {
    const auto mixed = std::ranges::find(block.tensors, "mixed qkv", &TensorSpec::name);
    return mixed->category == Category::activations;
  };
  CHECK_FALSE(kept(groups));
  CHECK(kept(one));
}

// core/transformer/attention.py get_query_key_value_tensors.
TEST_CASE("ranks that share a key-value head gather what each has projected") {
  const std::int64_t whole = 2 * tokens * (2 * 4'096 + 2 * 1'024);
  const Block block = layer_block(hybrid("qwen3.5-9b", {.tp = 8}), LayerKind::dense);
  const std::int64_t hidden = 2 * tokens * 4'096;
  CHECK(sent(block, block.forward, "tp", Collective::all_gather) ==
        std::vector{hidden, whole, hidden});
  CHECK(bytes_of(block, "part of mixed qkv") == whole / 8);
  CHECK(bytes_of(block, "mixed qkv by rank") == whole);
  CHECK(bytes_of(block, "mixed qkv") == whole);
  // Of one group of the four, then of all.
  CHECK(bytes_of(block, "mixed qkv gradient") == whole / 4);
  CHECK(bytes_of(block, "mixed qkv gradient of all heads") == whole);
  CHECK(bytes_of(block, "reduced mixed qkv gradient") == whole / 8);
  const std::vector<std::int64_t> reduced =
      sent(block, block.backward, "tp", Collective::reduce_scatter);
  CHECK(std::ranges::count(reduced, whole) == 1);
  const Block enough = layer_block(hybrid("qwen3.5-9b", {.tp = 4}), LayerKind::dense);
  CHECK(sizes(enough, "mixed qkv by rank").empty());
}

// core/transformer/moe/shared_experts.py forward.
TEST_CASE("the gate of shared experts keeps what it weighs, unless these run again") {
  Problem p = hybrid("qwen3.5-35b-a3b", {});
  p.layout.ep = 1;
  const std::int64_t hidden = 2 * tokens * 2'048;
  const Block block = layer_block(p, LayerKind::moe);
  const auto output = std::ranges::find(block.tensors, "shared expert output", &TensorSpec::name);
  REQUIRE(output != block.tensors.end());
  CHECK(output->category == Category::activations);
  CHECK(output->bytes.count() == hidden);
  CHECK(bytes_of(block, "gate of shared experts") == 2 * tokens);
  CHECK(bytes_of(block, "gated shared expert output") == hidden);
  p.model.moe->shared_expert_gate = false;
  const Block plain = layer_block(p, LayerKind::moe);
  CHECK(sizes(plain, "gate of shared experts").empty());
  CHECK(std::ranges::find(plain.tensors, "shared expert output", &TensorSpec::name)->category ==
        Category::temporaries);
}

// core/ssm/gated_delta_net/gdn.py recompute_norm_out.
TEST_CASE("gdn_norm_out runs the norm and the gate of linear attention again, and sends again") {
  const Problem p = hybrid("qwen3.5-9b", {.cp = 2, .samples = 1});
  const auto made = [&](LayerKind kind, RepeatSet set) {
    return code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, kind, set);
  };
  const RepeatSet again = bit_of(RecomputeModule::gdn_norm_out);
  const Block kept = made(LayerKind::linear_dense, 0);
  const Block dropped = made(LayerKind::linear_dense, again);
  const std::int64_t values = 2 * tokens * 4'096;
  CHECK(sizes(kept, "normed output of the rule") == std::vector{values});
  CHECK(sizes(dropped, "normed output of the rule") == std::vector{values, values});
  CHECK(sizes(dropped, "gated output") == std::vector{values, values});
  CHECK(sizes(dropped, "normed output of the rule").size() == 2);
  const std::vector back = sent(kept, kept.backward, "cp", Collective::all_to_all);
  std::vector with_norm = sent(dropped, dropped.backward, "cp", Collective::all_to_all);
  REQUIRE(with_norm.size() == back.size() + 1);
  CHECK(with_norm.front() == values);
  // What lives between the passes: norm, its statistics and the gate's product less.
  const auto between = [](const Block& block) {
    std::int64_t live = 0;
    for (const Event& e : block.forward) {
      if (!e.is_of_tensor() || e.index <= Block::input) continue;
      const std::int64_t bytes = block.tensors[static_cast<std::size_t>(e.index)].bytes.count();
      live += e.allocates() ? bytes : -bytes;
    }
    return live;
  };
  CHECK(between(kept) - between(dropped) == 2 * values + 4 * tokens * 32);
  CHECK(between(made(LayerKind::dense, again)) == between(made(LayerKind::dense, 0)));
}

TEST_CASE("quantized, linear attention's last projection keeps a narrower copy of its input") {
  Problem p = hybrid("qwen3.5-9b", {});
  p.training.precision = Precision::fp8;
  const Block block = layer_block(p, LayerKind::linear_dense);
  const std::int64_t values = tokens * 4'096;
  CHECK(bytes_of(block, "gated output") == 2 * values);
  CHECK(bytes_of(block, "projection input") < 2 * 2 * values);
  CHECK(std::ranges::find(block.tensors, "gated output", &TensorSpec::name)->category ==
        Category::temporaries);
}
