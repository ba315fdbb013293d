#include "cost_model/runtime/megatron/fsdp_buckets.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/program/timeline.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/states/divided_buckets.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;
using When = BucketEvent::When;

namespace {

FsdpBuckets buckets_of(const Problem& p) {
  return fsdp_buckets(p, weight_inventory(p.model), stages(p).front());
}

std::vector<Bytes> early_in(const Problem& p) {
  return fsdp_gathered_early(p, weight_inventory(p.model), stages(p).front());
}

// What is made and freed by the blocks from embedding to head and back, one moment after another.
template <class Move>
void visit_events(const FsdpBuckets& buckets, Move&& move) {
  std::vector<BucketsOfBlock> blocks;
  for (const BucketRun& run : buckets.blocks) {
    for (std::int64_t i = 0; i < run.count; ++i) blocks.push_back(run.buckets);
  }
  for (const BucketsOfBlock& block : blocks) {
    for (const When when : {When::before_forward, When::after_forward}) {
      move(events_at(block, when));
    }
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    for (const When when :
         {When::before_backward, When::mlp_weights, When::other_weights, When::after_backward}) {
      move(events_at(*block, when));
    }
  }
}

std::int64_t count_at(const BucketsOfBlock& block, When when) {
  return std::ranges::distance(events_at(block, when));
}

// Buckets that live together at most.
struct Most {
  std::int64_t gathered = 0;
  std::int64_t gradients = 0;
};

Most most_of(const FsdpBuckets& buckets) {
  std::int64_t gathered = 0, gradients = 0;
  Most most;
  visit_events(buckets, [&](auto events) {
    for (const BucketEvent& e : events) {
      (e.of == BucketEvent::parameters ? gathered : gradients) += e.made ? 1 : -1;
      most.gathered = std::max(most.gathered, gathered);
      most.gradients = std::max(most.gradients, gradients);
    }
  });
  REQUIRE(gathered == 0);
  REQUIRE(gradients == 0);
  return most;
}

// Bytes of buckets after the events of each moment.
std::vector<Bytes> live_after(const FsdpBuckets& buckets) {
  Bytes live;
  std::vector<Bytes> list;
  visit_events(buckets, [&](auto events) {
    for (const BucketEvent& e : events) live += e.change();
    list.push_back(live);
  });
  return list;
}

}  // namespace

// As Megatron-LM @d98e8a64dd has them: parts of 28,672 elements, whole rows of 4,096 and of 14,336,
// for each of eight ranks.
TEST_CASE("a bucket of Megatron-FSDP is cut into whole rows of all its matrices") {
  const Problem p =
      problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const WeightInventory inventory = weight_inventory(p.model);
  CHECK(bucket_elements(p, inventory.layer(LayerKind::dense)).dense == 218'136'576);
  const auto ends = buckets_of_ends(p, inventory, stages(p).front());
  REQUIRE(ends.size() == 1);
  CHECK(bucket_elements(p, ends.front()).dense == 1'050'705'920);
  CHECK(fsdp_gathered_ends(p, inventory, stages(p).front()) == Bytes{2 * 1'050'705'920});
}

// Half of 1e9 elements travel ahead, in three layers of Llama 3 8B; gradients wait until more than
// 1e9 are on their way.
TEST_CASE("Megatron-FSDP holds as many layers as its queues let through") {
  const Problem p =
      problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const FsdpBuckets buckets = buckets_of(p);
  CHECK(early_in(p) == std::vector<Bytes>(3, Bytes{2 * 218'136'576}));
  CHECK(most_of(buckets).gathered == 4);
  CHECK(most_of(buckets).gradients == 7);  // embedding and head share one

  SECTION("of larger layers two") {
    const Problem larger =
        problem(Runtime::megatron, "llama3.1-405b", {.dp = 64, .zero = ZeroStage::parameters});
    CHECK(most_of(buckets_of(larger)).gathered == 2);
    CHECK(most_of(buckets_of(larger)).gradients == 4);
  }
  SECTION("and gathers none where parameters are whole") {
    Problem whole = p;
    whole.layout.zero = ZeroStage::gradients;
    CHECK(most_of(buckets_of(whole)).gathered == 0);
    CHECK(early_in(whole).empty());
    CHECK(most_of(buckets_of(whole)).gradients == 7);
  }
  SECTION("of experts a bucket of their own") {
    const Problem routed =
        problem(Runtime::megatron, "qwen3-30b-a3b", {.dp = 8, .zero = ZeroStage::gradients});
    CHECK(most_of(buckets_of(routed)).gradients == 6);
  }
}

// Where ranks that divide the experts are as many as those that divide the rest, each has its
// experts alone.
TEST_CASE("experts that no other rank has a part of are in no bucket") {
  const auto of_experts = [](std::int64_t ep, GradientType reduced) {
    Problem p = problem(Runtime::megatron, "qwen3-30b-a3b",
                        {.dp = 8, .ep = ep, .zero = ZeroStage::parameters});
    p.runtime.megatron.megatron_fsdp_grad_comm_dtype = reduced;
    return buckets_of(p);
  };
  const auto lists = [](const FsdpBuckets& buckets) { return buckets.blocks.at(1).buckets; };
  const GradientType same = GradientType::automatic;
  CHECK(count_at(lists(of_experts(4, same)), When::mlp_weights) == 1);
  CHECK(count_at(lists(of_experts(4, same)), When::after_forward) == 2);
  CHECK(count_at(lists(of_experts(8, same)), When::mlp_weights) == 0);
  CHECK(count_at(lists(of_experts(8, same)), When::after_forward) == 1);
  // Gradients that are reduced in another type are copied when all of them are there.
  const BucketsOfBlock wide = lists(of_experts(8, GradientType::fp32));
  CHECK(count_at(wide, When::mlp_weights) == 0);
  const std::int64_t of_layer = 3 * 2048 * 768 * 128 / 8;
  CHECK(std::ranges::count(wide, BucketEvent{When::after_backward, BucketEvent::gradients, true,
                                             Bytes{4 * of_layer}}) == 1);
}

TEST_CASE("the gradients of Megatron-FSDP are kept and reduced in types of their own") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const auto kept = [&] {
    return model_states(p, weight_inventory(p.model), stages(p).front()).gradients;
  };
  const auto reduced = [&] {
    const BucketsOfBlock layer = buckets_of(p).blocks.at(1).buckets;
    return events_at(layer, When::mlp_weights).front().bytes;
  };
  const Bytes half_kept = kept(), half_reduced = reduced();
  p.runtime.megatron.megatron_fsdp_main_grads_dtype = GradientType::fp32;
  CHECK(kept() == 2 * half_kept);
  CHECK(reduced() == 2 * half_reduced);
  p.runtime.megatron.megatron_fsdp_grad_comm_dtype = GradientType::bf16;
  CHECK(kept() == 2 * half_kept);
  CHECK(reduced() == half_reduced);
  p.runtime.megatron.megatron_core = 16;  // which had neither
  CHECK(reduced() == 2 * half_reduced);
}

// A module's layers are units; what leads into them is in none.
TEST_CASE("modules that predict further tokens have a bucket a layer") {
  const auto with = [](std::int64_t modules, bool repeated) {
    Problem p = problem(Runtime::megatron, "nemotron-3.5-lightning-30b-a3b",
                        {.dp = 8, .ep = 4, .zero = ZeroStage::parameters});
    p.runtime.megatron.mtp_num_layers = modules;
    p.runtime.megatron.mtp_use_repeated_layer = repeated;
    return p;
  };
  const auto blocks = [](const Problem& p) {
    std::vector<BucketsOfBlock> list;
    for (const BucketRun& run : buckets_of(p).blocks) {
      list.insert(list.end(), static_cast<std::size_t>(run.count), run.buckets);
    }
    return list;
  };
  const auto gathers = [](const BucketsOfBlock& block) {
    return count_at(block, When::after_forward);
  };
  const Problem two = with(2, false), again = with(2, true);
  const std::vector<BucketsOfBlock> own = blocks(two), same = blocks(again);
  // Embedding, 52 layers, and of each module an input, attention, experts and a head.
  REQUIRE(own.size() == 1 + 52 + 2 * 4 + 1);
  REQUIRE(same.size() == own.size());
  for (const std::size_t input : {53u, 57u}) {
    CHECK(own[input] == BucketsOfBlock{});
    CHECK(gathers(own[input + 1]) == 1);  // attention
    CHECK(gathers(own[input + 2]) == 2);  // what all ranks divide, and experts
    CHECK(count_at(own[input + 2], When::mlp_weights) == 1);
  }
  // One that runs twice has its gradients from its last run to its first.
  CHECK(count_at(same[59], When::mlp_weights) == 1);
  CHECK(count_at(same[55], When::mlp_weights) == 0);
  most_of(buckets_of(again));  // all that is made goes
  const std::int64_t h = 2688;
  const auto ends = [](const Problem& p) {
    std::int64_t sum = 0;
    for (const auto& bucket : buckets_of_ends(p, weight_inventory(p.model), stages(p).front())) {
      sum += elements(bucket);
    }
    return sum;
  };
  CHECK(ends(two) - ends(again) == 2 * h * h + 3 * h);
  CHECK(ends(again) - ends(with(0, false)) == 2 * h * h + 3 * h);
}

// A search bounds by them what it has not looked at (least_megatron_stage_bytes).
TEST_CASE("no narrower group of Megatron-FSDP holds less than the least of its buckets") {
  const auto [model, ep] = GENERATE(table<std::string_view, std::int64_t>(
      {{"llama3-8b", 1}, {"qwen3-0.6b", 1}, {"mixtral-8x7b", 8}, {"deepseek-v2-lite", 8}}));
  const ZeroStage zero = GENERATE(ZeroStage::gradients, ZeroStage::parameters);
  const bool overlap = GENERATE(false, true);
  Problem p = problem(Runtime::megatron, model, {.dp = 1024, .ep = ep, .zero = zero});
  p.runtime.megatron.overlap_grad_reduce = overlap;
  CAPTURE(model, zero, overlap);
  const WeightInventory inventory = weight_inventory(p.model);
  const FsdpBuckets least = least_fsdp_buckets(p, inventory, stages(p).front());
  const std::vector<Bytes> bound = live_after(least);
  // Two lists a block before the backward passes, then four of the head, then one of the layer.
  const auto blocks = static_cast<std::size_t>(p.model.layers) + 2;
  CHECK(least.at_first_backward(p.model.layers) == bound[2 * blocks + 4]);
  CHECK(bound[2 * blocks + 4] > Bytes{});
  const Bytes ends = fsdp_gathered_ends(p, inventory, stages(p).front()) -
                     fsdp_padding_of_ends(p, inventory, stages(p).front());
  for (std::int64_t group = 8; group <= p.layout.dp; group *= 2) {
    p.layout.hsdp = group < p.layout.dp ? group : 0;
    CAPTURE(group);
    const std::vector<Bytes> own = live_after(buckets_of(p));
    REQUIRE(own.size() == bound.size());
    for (std::size_t i = 0; i < own.size(); ++i) REQUIRE(own[i] >= bound[i]);
    CHECK(fsdp_gathered_ends(p, inventory, stages(p).front()) >= ends);
  }
}

// Groups of layers, which are recomputed together, are more than the runs that they are made of.
TEST_CASE("the bytes of a rank with Megatron-FSDP's buckets are those of its blocks with them") {
  const std::int64_t group = GENERATE(1, 2, 3);
  Problem p = problem(Runtime::megatron, "llama3-8b",
                      {.dp = 64, .zero = ZeroStage::parameters, .recompute = Recompute::full});
  p.runtime.megatron.recompute_num_layers = group;
  const FsdpBuckets buckets = buckets_of(p);
  const ChunkProgram chunk = megatron_chunk(p, megatron_blocks(p), stages(p).front(), 0);
  const ChunkBytes quick = chunk_bytes(p, chunk, runs_of_bytes(chunk.runs), buckets.blocks);
  const Runs with = with_buckets(p, chunk.runs, buckets.blocks);
  const ChunkBytes written = chunk_bytes(chunk, with);
  CHECK(quick.forward_left == written.forward_left);
  CHECK(quick.forward_peak == written.forward_peak);
  CHECK(quick.backward_left == written.backward_left);
  CHECK(quick.backward_peak == written.backward_peak);
  // A group's first layer is gathered before it runs, and those that travel ahead of it.
  const Block& first = with.at(1).block->block();
  for (const std::size_t i : {0u, 1u, 2u}) {
    const auto gathered = static_cast<std::size_t>(first.forward.at(i).index);
    CHECK(first.tensors.at(gathered).name == "gathered bucket");
  }
}

// Of two micro-batches, as Megatron-LM @d98e8a64dd gathers them under fake tensors: layers for each
// pass, embedding and head once for all.
TEST_CASE("Megatron-FSDP gathers what is in no layer once a step") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.model.layers = 4;
  p.training.global_batch = 16;
  const WeightInventory inventory = weight_inventory(p.model);
  Bytes in_passes, once;
  for (const Call& call : megatron_update_calls(p, inventory, stages(p).front())) {
    if (call.collective != Collective::all_gather) continue;
    (call.during == During::step ? once : in_passes) += call.times * call.payload;
  }
  CHECK(once == Bytes{2'101'411'840});
  CHECK(in_passes == Bytes{2 * (4 + 4) * std::int64_t{436'273'152}});
}

TEST_CASE("embedding and head are reduced apart where gradients are asked to overlap") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.runtime.megatron.overlap_grad_reduce = true;
  const auto ends = buckets_of_ends(p, weight_inventory(p.model), stages(p).front());
  CHECK(ends.size() == 2);
  // The head's elements are all that may travel beside the embedding's.
  CHECK(early_in(p).empty());
}

// What was built whole would be of no use to larger buffers: param_and_grad_buffer.py returns it.
TEST_CASE("Megatron-FSDP leaves nothing of the model it was given in the allocator's cache") {
  const Problem p =
      problem(Runtime::megatron, "llama3-70b",
              {.dp = 64, .zero = ZeroStage::parameters, .recompute = Recompute::full});
  const Evaluator evaluator(p);
  const StageProgram program = evaluator.stage_program(p, stages(p).front());
  CHECK(evaluator.startup(p, stages(p).front(), program).empties_cache);
}
