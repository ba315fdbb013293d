#include "cost_model/rank/stages.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::vector<std::int64_t> layers_of(const Problem& p) {
  std::vector<std::int64_t> counts;
  for (const Stage& stage : stages(p)) counts.push_back(layer_count(stage));
  return counts;
}

}  // namespace

TEST_CASE("Megatron splits evenly or not at all") {
  Problem p = problem(Runtime::megatron, "llama3.1-405b", {.pp = 16});  // 126 layers
  REQUIRE(chunk_sizes(p).empty());

  SECTION("unless embedding and loss count as a layer each, as Llama 3 was trained") {
    p.runtime.megatron.account_for_embedding_in_pipeline_split = true;
    p.runtime.megatron.account_for_loss_in_pipeline_split = true;
    const auto sizes = layers_of(p);
    REQUIRE(sizes.front() == 7);
    REQUIRE(sizes.back() == 7);
    REQUIRE(std::all_of(sizes.begin() + 1, sizes.end() - 1, [](auto n) { return n == 8; }));
  }
  SECTION("or first and last stage have their own size") {
    p.runtime.megatron.decoder_first_pipeline_num_layers = 6;
    p.runtime.megatron.decoder_last_pipeline_num_layers = 8;
    REQUIRE(layers_of(p) ==
            std::vector<std::int64_t>{6, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8});
  }
  SECTION("which must leave the middle divisible") {
    p.runtime.megatron.decoder_first_pipeline_num_layers = 7;
    p.runtime.megatron.decoder_last_pipeline_num_layers = 8;
    REQUIRE(chunk_sizes(p).empty());
  }
}

// As many layers, embedding and loss as chunks.
TEST_CASE("an end of the model that counts as a layer may have a chunk for itself") {
  Problem p = problem(Runtime::megatron, "llama3.1-405b",
                      {.pp = 16, .vpp = 8, .schedule = Schedule::interleaved});
  REQUIRE(chunk_sizes(p).empty());
  p.runtime.megatron.account_for_embedding_in_pipeline_split = true;
  p.runtime.megatron.account_for_loss_in_pipeline_split = true;
  const std::vector<Stage> all = stages(p);

  const std::vector<Stage> first = chunks_of(all.front());
  REQUIRE(first[0] == Stage{.chunks = {{0, 0}}, .embedding = true});
  REQUIRE(first[1] == Stage{.chunks = {{15, 16}}});
  REQUIRE(chunks_of(all[1])[0] == Stage{.chunks = {{0, 1}}});
  REQUIRE(begins_model(all.front(), 0));

  const std::vector<Stage> last = chunks_of(all.back());
  REQUIRE(last[6] == Stage{.chunks = {{110, 111}}});
  REQUIRE(last[7] == Stage{.chunks = {{126, 126}}, .head = true});
  REQUIRE(ends_model(all.back(), 7));
}

TEST_CASE("a rank tells an end without layers from the layers beside it") {
  // DualPipe's ranks hold chunks of both directions.
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 2, .schedule = Schedule::dualpipe});
  p.model.layers = 1;
  p.runtime.megatron.account_for_embedding_in_pipeline_split = true;
  const std::vector<Stage> all = stages(p);
  REQUIRE(all[1].chunks == std::vector<LayerRange>{{0, 1}, {0, 0}});
  REQUIRE(begins_model(all[0], 0));
  REQUIRE(ends_model(all[0], 1));
  REQUIRE(begins_model(all[1], 1));
  REQUIRE(ends_model(all[1], 0));
}

// NVIDIA/Megatron-LM docs: DeepSeek-V3 on PP 16, VPP 2.
TEST_CASE("Megatron-Core takes the layers of each chunk as they are given") {
  Problem p = problem(Runtime::megatron, "deepseek-v3",
                      {.pp = 16, .vpp = 2, .schedule = Schedule::interleaved});
  REQUIRE(chunk_sizes(p).empty());
  std::vector<std::int64_t>& layers = p.runtime.megatron.pipeline_model_parallel_layout.layers;
  layers.assign(32, 2);
  layers.front() = 3;
  layers[30] = layers[31] = 0;
  const std::vector<Stage> all = stages(p);
  REQUIRE(all[0].chunks == std::vector<LayerRange>{{0, 3}, {33, 35}});
  REQUIRE(all[14].chunks == std::vector<LayerRange>{{29, 31}, {61, 61}});
  REQUIRE(all[15].chunks == std::vector<LayerRange>{{31, 33}, {61, 61}});
  REQUIRE(ends_model(all[15], 1));
  layers.pop_back();
  REQUIRE_FALSE(has_stages(p));
}

TEST_CASE("torchtitan counts embedding and head as a layer each and fills the first stages") {
  // 80 + 2 over 8: 11, 11, 10 x 6, less one at each end.
  REQUIRE(layers_of(problem(Runtime::fsdp2, "llama3-70b", {.pp = 8})) ==
          std::vector<std::int64_t>{10, 11, 10, 10, 10, 10, 10, 9});
}

TEST_CASE("DeepSpeed balances parameters, so a large head takes layers from its stage") {
  const auto sizes = layers_of(problem(Runtime::deepspeed, "llama3-8b", {.pp = 4}));
  REQUIRE(sizes.size() == 4);
  REQUIRE(sizes.front() < sizes[1]);
  REQUIRE(sizes.back() <= sizes[1]);
}

// bigscience-workshop/bigscience chronicles @9e64ede: 70 layers over 12 stages.
TEST_CASE("DeepSpeed can split by the number of layers") {
  Problem p = problem(Runtime::deepspeed, "gpt3-175b", {.pp = 12});
  p.model.layers = 70;
  p.runtime.deepspeed.partition_method = PartitionMethod::transformer;
  REQUIRE(layers_of(p) == std::vector<std::int64_t>{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4});
  // Embedding and head are a layer each.
  p.runtime.deepspeed.partition_method = PartitionMethod::transformer_embedding;
  REQUIRE(layers_of(p) == std::vector<std::int64_t>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
}

TEST_CASE("virtual stages go round the ranks, ZB-V's come back") {
  Problem p = problem(Runtime::megatron, "llama3-70b",
                      {.pp = 4, .vpp = 2, .schedule = Schedule::interleaved});
  REQUIRE(stages(p)[1].chunks == std::vector<LayerRange>{{10, 20}, {50, 60}});
  REQUIRE(stages(p)[3].head);

  p.runtime = load_runtime(Runtime::zero_paper, {});
  p.layout.schedule = Schedule::zb_v;
  REQUIRE(stages(p)[1].chunks == std::vector<LayerRange>{{10, 20}, {60, 70}});
  REQUIRE(stages(p)[0].embedding);
  REQUIRE(stages(p)[0].head);  // the V ends where it began
}

TEST_CASE("DualPipe ranks hold the stages of both directions") {
  const Problem p =
      problem(Runtime::zero_paper, "llama3-70b", {.pp = 4, .schedule = Schedule::dualpipe});
  REQUIRE(layers_of(p) == std::vector<std::int64_t>{40, 40, 40, 40});
  REQUIRE(stages(p)[3].embedding);
  REQUIRE(stages(p)[3].head);
}

TEST_CASE("whether there are stages is told without making them") {
  std::mt19937 random(2);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::array<int, 2> seen{};
  for (int i = 0; i < tests::draws(2000); ++i) {
    Problem p = problem(static_cast<Runtime>(draw(0, 5)), "llama3-8b",
                        {.pp = draw(1, 8), .vpp = draw(1, 3)});
    p.model.layers = draw(4, 24);
    MegatronSettings& set = p.runtime.megatron;
    set.account_for_embedding_in_pipeline_split = draw(0, 1) != 0;
    set.account_for_loss_in_pipeline_split = draw(0, 1) != 0;
    set.decoder_first_pipeline_num_layers = std::max<std::int64_t>(0, draw(-4, 6));
    set.decoder_last_pipeline_num_layers = std::max<std::int64_t>(0, draw(-4, 6));
    std::vector<std::int64_t>& layers = set.pipeline_model_parallel_layout.layers;
    for (std::int64_t c = draw(-12, 8); c > 0; --c) layers.push_back(draw(0, 3));
    if (draw(0, 1) == 0 && !layers.empty()) {
      p.model.layers = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    }
    CAPTURE(name_of(p.runtime.kind), p.layout.pp, p.layout.vpp, p.model.layers);
    const std::vector<std::int64_t> sizes = chunk_sizes(p);
    REQUIRE(has_stages(p) == !sizes.empty());
    ++seen[has_stages(p)];
    if (sizes.empty()) continue;
    REQUIRE(std::ssize(sizes) == p.layout.pp * p.layout.vpp);
    REQUIRE(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == p.model.layers);
  }
  REQUIRE(std::min(seen[0], seen[1]) > tests::draws(100));
}

TEST_CASE("every layer, the embedding and the head are on exactly one stage") {
  std::mt19937 random(1);
  for (int i = 0; i < tests::draws(300); ++i) {
    const auto runtime = static_cast<Runtime>(std::uniform_int_distribution(0, 5)(random));
    Problem p = problem(runtime, "llama3-8b",
                        {.pp = std::uniform_int_distribution<std::int64_t>(1, 16)(random)});
    p.model.layers = std::uniform_int_distribution<std::int64_t>(16, 130)(random);
    if (chunk_sizes(p).empty()) continue;
    CAPTURE(name_of(runtime), p.layout.pp, p.model.layers);
    std::int64_t next = 0;
    int embeddings = 0;
    int heads = 0;
    const auto all = stages(p);
    REQUIRE(static_cast<std::int64_t>(all.size()) == p.layout.pp);
    for (const Stage& stage : all) {
      for (const LayerRange& chunk : stage.chunks) {
        REQUIRE(chunk.first == next);
        REQUIRE(chunk.last >= chunk.first);
        next = chunk.last;
      }
      embeddings += stage.embedding;
      heads += stage.head;
    }
    REQUIRE(next == p.model.layers);
    REQUIRE(embeddings == 1);
    REQUIRE(heads == 1);
  }
}
