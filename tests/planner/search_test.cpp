#include "planner/sweep/search.hpp"

#include <random>

#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/lower_bounds.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

SearchSpace space_of(Runtime runtime,
                     std::string_view model,
                     std::int64_t gpus,
                     std::string_view gpu = "A100-80GB") {
  return {.request = {.model = find_model(model).spec,
                      .cluster = cluster_of(gpu, gpus),
                      .runtime = load_runtime(runtime, {})}};
}

bool equal(const std::vector<Scored>& a, const std::vector<Scored>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Scored& x, const Scored& y) {
    return x.layout == y.layout && x.seconds == y.seconds && x.device == y.device;
  });
}

std::int64_t sum(const Rejections& rejected) {
  std::int64_t total = 0;
  for (const auto& [why, count] : rejected) total += count;
  return total;
}

}  // namespace

TEST_CASE("any number of threads gives the same answer and the same counts", "[sweep][release]") {
  const auto [runtime, gpus] = GENERATE(table<Runtime, std::int64_t>(
      {{Runtime::megatron, 32}, {Runtime::fsdp2, 16}, {Runtime::deepspeed, 32}}));
  CAPTURE(name_of(runtime));
  SearchSpace space = space_of(runtime, "llama3-8b", gpus);
  space.request.global_batch = 128;
  const SearchResult one = search({space}, {.threads = 1});
  for (const std::size_t threads : {2, 5, 64}) {
    const SearchResult many = search({space}, {.threads = threads});
    CAPTURE(threads);
    REQUIRE(equal(one.best, many.best));
    REQUIRE(equal(one.front, many.front));
    REQUIRE(one.evaluated == many.evaluated);
    REQUIRE(one.feasible == many.feasible);
    REQUIRE(one.rejected == many.rejected);
  }
}

TEST_CASE("a search stops when its watch says so, with the best so far", "[sweep]") {
  const SearchSpace space = space_of(Runtime::megatron, "llama3-8b", 16);
  int waves = 0;
  const SearchResult result = search({space}, {.shapes = 3}, [&](const Progress& p) {
    waves += p.evaluated > 0;
    return waves < 5;
  });
  REQUIRE(result.stopped);
  REQUIRE(waves == 5);
  REQUIRE(!result.best.empty());
}

TEST_CASE("a search stops while shapes are collected, and still counts every layout", "[sweep]") {
  const SearchSpace space = space_of(Runtime::megatron, "llama3-8b", 1024);
  int asked = 0;
  const SearchResult result = search({space}, {}, [&](const Progress&) { return ++asked < 2; });
  REQUIRE(result.stopped);
  REQUIRE(asked == 2);
  REQUIRE(result.evaluated == 0);
  REQUIRE(result.best.empty());
  REQUIRE(sum(result.rejected) == result.points);
}

TEST_CASE("a search finds the best where the batch is said by micro-batches of a replica") {
  SearchSpace space = space_of(Runtime::fsdp2, "llama3-8b", 8);
  space.request.gradient_accumulation = 4;
  const SearchResult quick = search({space}, {});
  const SearchResult whole = search({space}, {.exhaustive = true});
  REQUIRE(!quick.best.empty());
  REQUIRE(equal(quick.best, whole.best));
  REQUIRE(quick.points == whole.points);
  for (const Scored& plan : quick.best) {
    Problem p = open_problem(space.request);
    p.layout = plan.layout;
    derive(space.request, p);
    REQUIRE(micro_batches(p) == 4);
  }
}

// Logits of 262,144 words: whole they need more than a GPU has, and in parts they do not.
TEST_CASE("a search cuts the loss where the logits have no room, and leaves it whole else") {
  SearchSpace space = space_of(Runtime::fsdp2, "llama3-8b", 8, "A100-40GB");
  space.request.model.vocab_size = 1 << 18;
  space.request.sequence_length = 8192;
  space.request.global_batch = 8;
  space.request.tp = space.request.pp = space.request.cp = space.request.micro_batch = 1;
  const auto chunks_of_best = [](const SearchSpace& asked) {
    const SearchResult found = search({asked}, {.shapes = 1, .front = false});
    return found.best.empty() ? -1 : found.best.front().layout.loss_chunks;
  };
  SearchSpace whole = space;
  whole.request.runtime.fsdp2.loss_chunks = 1;
  whole.request.given_settings = {"loss_chunks"};
  REQUIRE(chunks_of_best(whole) == -1);
  REQUIRE(chunks_of_best(space) == 0);  // 8 by default
  space.request.sequence_length = 1024;
  REQUIRE(chunks_of_best(space) == 1);
}

TEST_CASE("a search tries the parts of the loss that the code has") {
  using Parts = Values;
  const auto parts = [](const std::vector<Override>& settings, std::int64_t sequence) {
    SearchSpace space = space_of(Runtime::fsdp2, "llama3-8b", 8);
    space.request.runtime = load_runtime(Runtime::fsdp2, settings);
    for (const auto& [key, value] : settings) space.request.given_settings.push_back(key);
    space.request.sequence_length = sequence;
    return choices(space, Field::loss_chunks, open_problem(space.request));
  };
  CHECK(parts({}, 4096) == Parts{0, 1});
  CHECK(parts({}, 32768) == Parts{0, 1, 32});
  CHECK(parts({{"recipe_date", "2025-03-24"}}, 4096) == Parts{0, 8});
  CHECK(parts({{"recipe_date", "2025-02-06"}}, 4096) == Parts{0});
  CHECK(parts({{"layers", "huggingface"}}, 4096) == Parts{0});
  CHECK(parts({{"loss_chunks", "4"}}, 4096) == Parts{0});
}

// What is given of them leaves the others open.
TEST_CASE("layers that are wrapped one by one are chosen below bounds as without",
          "[sweep][release]") {
  SearchSpace space = space_of(Runtime::fsdp2, "llama3-8b", 8, "A100-40GB");
  space.request.model.layers = 12;
  space.request.global_batch = 16;
  space.request.sequence_length = 8192;
  space.request.pp = 1;
  Fsdp2Settings& set = space.request.runtime.fsdp2;
  set.wrap_by_layer = true;
  const auto plan = [&] {
    const SearchResult quick = search({space}, {});
    const SearchResult whole = search({space}, {.exhaustive = true});
    REQUIRE(equal(quick.best, whole.best));
    REQUIRE(quick.points == whole.points);
    REQUIRE_FALSE(quick.best.empty());
    return quick.best.front().layout;
  };
  const Layout open = plan();
  REQUIRE(open.recompute_layers + open.gathered_layers > 0);
  set.selective_rest = true;
  space.request.given_settings = {"selective_rest"};
  const Layout mixed = plan();
  REQUIRE(mixed.recompute == Recompute::full);
  REQUIRE(mixed.recompute_layers > 0);
  REQUIRE(mixed.selective_rest);
  set.selective_rest = false;
  set.no_reshard_layers = 3;
  space.request.given_settings = {"recompute_num_layers", "no_reshard_layers"};
  const Layout given = plan();
  REQUIRE(given.recompute_layers == 0);
  REQUIRE(given.gathered_layers == 0);
}

// 14 layers on 16 chunks: embedding and loss have one each for themselves.
TEST_CASE("a search finds layouts whose ends hold no layer", "[sweep]") {
  SearchSpace space = space_of(Runtime::megatron, "llama3-8b", 16);
  space.request.model.layers = 14;
  space.request.global_batch = 64;
  const bool given = GENERATE(false, true);
  CAPTURE(given);
  if (given) {
    MegatronSettings& set = space.request.runtime.megatron;
    set.account_for_embedding_in_pipeline_split = set.account_for_loss_in_pipeline_split = true;
    space.request.given_settings = {"account_for_embedding_in_pipeline_split",
                                    "account_for_loss_in_pipeline_split"};
  }
  const auto both = [&] {
    const SearchResult quick = search({space}, {});
    const SearchResult whole = search({space}, {.exhaustive = true});
    REQUIRE(equal(quick.best, whole.best));
    REQUIRE(equal(quick.front, whole.front));
    REQUIRE(quick.points == whole.points);
    return quick;
  };
  REQUIRE(!both().best.empty());
  space.request.pp = 4;
  space.request.vpp = 4;
  REQUIRE(!both().best.empty());
  space.request.pp = 16;
  space.request.vpp = 1;
  REQUIRE(!both().best.empty());
}

// Of 4,096 ranks each holds buckets that are padded to whole rows for all of them, 16 GB instead of
// the 9 that each of 256 needs.
TEST_CASE("a search finds narrower groups of Megatron-FSDP whose buckets are padded less",
          "[sweep]") {
  SearchSpace space = space_of(Runtime::megatron, "deepseek-v2-lite", 4096);
  Request& r = space.request;
  r.tp = r.pp = r.cp = r.micro_batch = 1;
  r.zero = ZeroStage::parameters;
  r.recompute = Recompute::full;
  r.sequence_length = 1024;
  r.global_batch = 4096;
  const SearchResult all = search({space}, {.objective = Objective::headroom, .exhaustive = true});
  REQUIRE(!all.best.empty());
  REQUIRE(all.best.front().layout.hsdp > 1);
  const Objective objective = GENERATE(Objective::headroom, Objective::step);
  const std::int64_t least = all.best.front().device.count();
  std::int64_t narrower = 0;
  for (std::int64_t permille = 1000; permille < 1600; permille += 50) {
    CAPTURE(objective, permille);
    r.cluster.gpu.memory = Bytes{least / 1000 * permille};
    const SearchResult quick = search({space}, {.objective = objective});
    const SearchResult whole = search({space}, {.objective = objective, .exhaustive = true});
    REQUIRE(equal(quick.best, whole.best));
    REQUIRE(quick.refused_when_played == whole.refused_when_played);
    narrower += !whole.best.empty() && whole.best.front().layout.hsdp > 0;
  }
  CHECK(narrower > 0);
}

TEST_CASE("branch and bound finds what looking at every layout finds", "[sweep][release]") {
  const auto [runtime, model, gpus, objective] =
      GENERATE(table<Runtime, std::string_view, std::int64_t, Objective>(
          {{Runtime::megatron, "llama3-8b", 16, Objective::step},
           {Runtime::megatron, "llama3-8b", 16, Objective::headroom},
           {Runtime::megatron, "gpt3-13b", 24, Objective::step},
           {Runtime::megatron, "deepseek-v2-lite", 8, Objective::step},
           {Runtime::fsdp2, "llama3-8b", 16, Objective::step},
           {Runtime::deepspeed, "llama3-8b", 8, Objective::step}}));
  CAPTURE(name_of(runtime), model, gpus);
  SearchSpace space = space_of(runtime, model, gpus);
  space.request.global_batch = tests::sanitized ? 24 : 96;
  if (space.request.model.moe)
    space.request.sequence_parallel = true;  // half the space, which is large
  const SearchResult quick = search({space}, {.objective = objective});
  const SearchResult whole = search({space}, {.objective = objective, .exhaustive = true});
  REQUIRE(!whole.best.empty());
  REQUIRE(equal(quick.best, whole.best));
  REQUIRE(equal(quick.front, whole.front));
  REQUIRE(quick.evaluated <= whole.evaluated);
  if (runtime == Runtime::megatron) REQUIRE(quick.evaluated < whole.evaluated);
  REQUIRE(quick.points == whole.points);
  for (const SearchResult& r : {quick, whole}) {
    REQUIRE(r.feasible + sum(r.rejected) == r.points);
  }
}

namespace {

// Small spaces of every kind; few GPUs of little memory, so that the allocator refuses some plans.
SearchSpace draw_space(std::mt19937& random) {
  const auto pick = [&](auto... choices) {
    const std::array list{choices...};
    return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
  };
  using enum Runtime;
  const Runtime runtime = pick(megatron, megatron, megatron, fsdp2, deepspeed, nanotron);
  const bool moe = runtime == megatron && pick(0, 0, 1) == 1;
  const std::string_view model =
      moe ? "deepseek-v2-lite" : pick("llama3-8b", "llama3.2-1b", "gpt3-13b", "qwen2.5-7b");
  SearchSpace space =
      space_of(runtime, model, pick(4, 6, 8, 12, 16), pick("A100-40GB", "A100-80GB", "H100-80GB"));
  Request& r = space.request;
  r.global_batch = pick(12, 16, 24, 32);
  r.sequence_length = pick(1024, 2048, 8192);
  r.sequence_parallel = true;
  if (moe || pick(0, 1) == 1) r.micro_batch = pick(1, 2);
  if (moe || pick(0, 1) == 1) r.cp = 1;
  if (moe) r.etp = 1;
  if (pick(0, 1) == 1) r.schedule = Schedule::one_f_one_b;
  return space;
}

}  // namespace

TEST_CASE("of random spaces bounds find what looking at every layout finds", "[sweep]") {
  std::mt19937 random(3);
  int with_plans = 0;
  std::int64_t refused = 0;
  for (int i = 0; with_plans < tests::draws(40); ++i) {
    REQUIRE(i < 60);  // most spaces have plans
    const SearchSpace space = draw_space(random);
    const Request& r = space.request;
    CAPTURE(i, name_of(r.runtime.kind), r.model.name, r.cluster.gpu.name, r.cluster.gpus);
    for (const Kin kin : {Kin::family, Kin::shape}) {
      SearchSettings settings{.shapes = static_cast<std::size_t>(1 + i % 12),
                              .kin = kin,
                              .front = i % 4 == 0,
                              .tie = 0.05};
      const SearchResult quick = search({space}, settings);
      settings.exhaustive = true;
      const SearchResult whole = search({space}, settings);
      REQUIRE(equal(quick.best, whole.best));
      REQUIRE(quick.refused_when_played == whole.refused_when_played);
      REQUIRE(quick.simplest.has_value() == whole.simplest.has_value());
      if (quick.simplest) REQUIRE(same_plan(quick.simplest->plan, whole.simplest->plan));
      for (std::size_t k = 0; k < quick.simplest_of_each.size(); ++k) {
        REQUIRE(same_plan(quick.simplest_of_each[k].plan, whole.simplest_of_each[k].plan));
      }
      if (settings.front) REQUIRE(equal(quick.front, whole.front));
      for (const auto& [place, cell] : quick.grid) {
        if (quick.best.empty() || cell.seconds_per_token == 0) continue;
        CAPTURE(place.first, place.second);
        const double fastest = whole.grid.at(place).seconds_per_token;
        REQUIRE(fastest <= (1 + 1e-9) * cell.seconds_per_token);
        if (!cell.at_most()) REQUIRE(fastest >= (1 - 1e-9) * cell.seconds_per_token);
      }
      REQUIRE(quick.points == whole.points);
      REQUIRE(quick.evaluated <= whole.evaluated);
      for (const SearchResult* result : {&quick, &whole}) {
        REQUIRE(result->feasible + sum(result->rejected) == result->points);
      }
      with_plans += !quick.best.empty();
      refused += quick.refused_when_played;
    }
  }
  if (!tests::sanitized) REQUIRE(refused > 0);
}

TEST_CASE("where nothing fits and no replay refused any, the answer says what needs least",
          "[sweep]") {
  const SearchResult result = search({space_of(Runtime::megatron, "llama3-70b", 2, "T4")}, {});
  REQUIRE(result.best.empty());
  REQUIRE(result.refused_when_played == 0);
  REQUIRE((result.least || result.least_bound));
}
