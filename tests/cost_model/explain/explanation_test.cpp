#include "cost_model/explain/explanation.hpp"

#include <cmath>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

namespace {

Explanation explained(const Problem& p, std::size_t stage = 0) {
  const Evaluator evaluator(p);
  const Stage all = stages(p)[stage];
  return explain(p, evaluator, all,
                 stage_memory(p, evaluator, all, static_cast<std::int64_t>(stage)));
}

const ExplainedPart& part(const Explanation& e, Category category, std::string_view name) {
  for (const ExplainedPart& p : e.rows[static_cast<std::size_t>(category)].parts) {
    if (p.name == name) return p;
  }
  FAIL("no part " << name);
  throw;
}

std::string formula(const Explanation& e, Category category, std::string_view name) {
  return part(e, category, name).symbols;
}

}  // namespace

// Every byte has a name: what is explained is what is answered.
TEST_CASE("explained parts add up to each row, over random legal layouts") {
  std::mt19937 random(20261121);
  int explained_layouts = 0;
  int replayed = 0;
  while (explained_layouts < tests::draws(300)) {
    const auto p = tests::Draw(random).problem({0, 0, 1, 1, 2, 3, 3, 4, 5, 6});
    if (!p) continue;
    const Evaluator evaluator(*p);
    const std::vector<Stage> all = stages(*p);
    const auto index = std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random);
    StageMemory memory = stage_memory(*p, evaluator, all[index], static_cast<std::int64_t>(index));
    const bool plays = has_allocator(*p) && explained_layouts % 10 == 0;
    if (plays) play_allocator(*p, evaluator, all[index], memory);
    replayed += plays;
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.tp, p->layout.pp, index,
            name_of(p->layout.zero), name_of(p->layout.recompute));
    const Explanation e = explain(*p, evaluator, all[index], memory);
    Bytes device;
    for (const ExplainedRow& row : e.rows) {
      CAPTURE(name_of(row.category));
      REQUIRE(row.bytes == memory.memory[row.category]);
      REQUIRE_FALSE(row.source.empty());
      Bytes sum;
      for (const ExplainedPart& part : row.parts) {
        CAPTURE(part.name);
        sum += part.total();
        Bytes terms;
        for (const ExplainedTerm& term : part.terms) terms += term.bytes;
        if (!part.terms.empty()) REQUIRE(terms == part.each);
      }
      REQUIRE(sum == row.bytes);
      device += sum;
    }
    REQUIRE(device == memory.memory.device());

    std::int64_t elements = e.padding;
    for (const ExplainedWeight& w : e.weights) elements += w.count * w.each.elements();
    REQUIRE(elements == e.elements);
    REQUIRE(e.padding >= 0);
    // Megatron-Core aligns each tensor to 64 elements and the buffer to a few hundred;
    // Megatron-FSDP cuts a layer into whole rows of all its matrices (bucket_elements).
    const bool by_buckets = p->runtime.kind == Runtime::megatron && is_megatron_fsdp(*p);
    const std::int64_t aligned = 64 * static_cast<std::int64_t>(e.weights.size()) *
                                     p->model.layers * (p->model.moe ? p->model.moe->experts : 1) +
                                 256 * world_size(p->layout);
    REQUIRE((by_buckets || e.padding <= aligned));

    const auto loads = step_collectives(*p, evaluator.weights(), all[index]);
    REQUIRE(e.loads.size() == loads.size());
    for (std::size_t i = 0; i < loads.size(); ++i) {
      REQUIRE(e.loads[i].sent == sent_bytes_per_step(loads[i]));
      REQUIRE_FALSE(e.loads[i].factor.empty());
    }
    ++explained_layouts;
  }
  if (!tests::sanitized) REQUIRE(replayed > 10);
}

TEST_CASE("a formula's value is the number it explains") {
  std::mt19937 random(7);
  int formulas_seen = 0;
  for (int layouts = 0; layouts < tests::draws(60);) {
    const auto p = tests::Draw(random).problem({0, 1, 2, 3, 4, 5, 6});
    if (!p) continue;
    ++layouts;
    const Stage stage = stages(*p).front();
    const auto numbers = [&](const Problem& q) {
      std::vector<std::int64_t> list;
      for (const CollectiveLoad& load : step_collectives(q, weight_inventory(q.model), stage)) {
        list.push_back(load.payload.count());
      }
      return list;
    };
    const auto found = formulas(*p, stage, numbers);
    const auto asked = numbers(*p);
    REQUIRE(found.size() == asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!found[i]) continue;
      CAPTURE(found[i]->in_symbols(), found[i]->in_numbers());
      REQUIRE(found[i]->value() == asked[i]);
      ++formulas_seen;
    }
  }
  REQUIRE(formulas_seen > tests::draws(100));
}

// Korthikanti et al. 2022, section 4 and table 2: s b h and its kin over t with sequence
// parallelism.
TEST_CASE("tensors carry the formulas of the papers") {
  Problem p = tests::problem(
      Runtime::megatron, "llama3-70b",
      {.dp = 2, .tp = 8, .micro_batch = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true},
      "H100-80GB");
  p.training.global_batch = 8;
  const Explanation e = explained(p);
  using enum Category;
  CHECK(formula(e, activations, "output") == "2 b s h / t");
  CHECK(formula(e, activations, "fc1 output") == "4 b s f / t");  // gate and up
  CHECK(formula(e, activations, "activation output") == "2 b s f / t");
  CHECK(formula(e, activations, "rotated queries") == "2 b s a d / t");
  CHECK(formula(e, activations, "rotated keys") == "2 b s k d / t");
  CHECK(formula(e, activations, "log-sum-exp") == "4 b s a / t");
  CHECK(part(e, activations, "fc1 output").numbers == "4 x 2 x 4096 x 28672 / 8");
  CHECK(part(e, activations, "fc1 output").count == 80);
  CHECK(part(e, parameters, "parameter buffer").terms.front().symbols == "2 \u03a8");
  CHECK(part(e, gradients, "gradient buffer").terms.front().symbols == "4 \u03a8");
  const ExplainedPart& adam = part(e, optimizer_states, "optimizer states");
  REQUIRE(adam.terms.size() == 2);
  CHECK(adam.terms[0].symbols == "4 \u03a8_N");
  for (const ExplainedLoad& load : e.loads) {
    const bool layers = load.load.group.name == "tp" && load.load.during != During::step;
    if (!layers || load.load.collective == Collective::all_reduce) continue;  // of loss and norms
    CHECK(load.symbols == "2 b s h");
    CHECK(load.factor == "(n-1)/n");
  }
}

// Unfused attention keeps the scores: 2 a s^2 b bytes and more (section 4.1 there).
TEST_CASE("named weights leave nothing of a rank's elements but padding") {
  for (const std::int64_t modules : {0, 1}) {
    for (const std::string_view model : {"deepseek-v3", "llama3-8b"}) {
      Problem p = tests::problem(Runtime::megatron, model,
                                 {.dp = 4, .tp = 2, .pp = 4, .sequence_parallel = true});
      p.runtime.megatron.mtp_num_layers = modules;
      p.model.layers = 8;
      if (p.model.moe) p.model.layer_kinds.resize(8);
      REQUIRE_FALSE(first_violation(p).has_value());
      for (std::size_t stage = 0; stage < stages(p).size(); ++stage) {
        const Explanation e = explained(p, stage);
        CAPTURE(model, modules, stage);
        REQUIRE(e.padding >= 0);
        REQUIRE(1000 * e.padding <= e.elements);
      }
    }
  }
}

TEST_CASE("a formula has the power of each size") {
  Problem p = tests::problem(Runtime::megatron, "gpt3-175b", {.tp = 8}, "A100-80GB");
  p.training.sequence_length = 2048;
  p.training.attention = AttentionKernel::unfused;
  const Explanation e = explained(p);
  bool scores = false;
  for (const ExplainedPart& part : e.rows[static_cast<std::size_t>(Category::activations)].parts) {
    scores = scores || part.symbols == "2 b s s a / t";
  }
  CHECK(scores);
  p.training.attention = AttentionKernel::flash;
  // All of its heads have keys of their own.
  CHECK(formula(explained(p), Category::activations, "mixed qkv") == "6 b s a d / t");
}

TEST_CASE("gathered parameters and shards are multiples of a layer") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.training.global_batch = 16;
  const Explanation captured = explained(p);
  CHECK(part(captured, Category::gradients, "gradients").terms.front().symbols == "4 \u03a8_N");
  p.runtime.fsdp2.disable_cuda_graphs = RecipeSwitch::on;
  const Explanation e = explained(p);
  CHECK(part(e, Category::parameters, "sharded parameters").terms.front().symbols == "4 \u03a8_N");
  CHECK(part(e, Category::gradients, "gradient shard").symbols == "4 \u03a8_L/N");
}

TEST_CASE("terms of FLOPs add up to the step") {
  std::mt19937 random(3);
  for (int layouts = 0; layouts < tests::draws(50);) {
    const auto p = tests::Draw(random).problem();
    if (!p) continue;
    ++layouts;
    double forward = 0;
    double repeated = 0;
    for (const FlopTerm& term : flop_terms(*p, p->training.scores)) {
      forward += static_cast<double>(term.count) * term.forward;
      repeated += term.repeated;
      REQUIRE(term.repeated <= static_cast<double>(term.count) * term.forward);
    }
    const auto samples = static_cast<double>(p->training.global_batch);
    REQUIRE(step_flops(*p).model == Approx(3 * samples * forward));
    REQUIRE(step_flops(*p).hardware == Approx(samples * (3 * forward + repeated)));
  }
}

TEST_CASE("what a layer allocates is told by whoever wrote its code") {
  const auto told = [](const Problem& p) { return code_of(p).sources(p).program; };
  for (const Runtime runtime : {Runtime::fsdp2, Runtime::ddp, Runtime::deepspeed}) {
    Problem p = tests::problem(runtime, "llama3-8b", {.dp = 8});
    p.runtime.fsdp2.layers = LayerCode::huggingface;
    CAPTURE(name_of(runtime));
    CHECK(told(p).find("transformers models") == 0);
    CHECK(told(p).find("flash-linear-attention") == std::string_view::npos);
    p.model = find_model("qwen3.5-9b").spec;
    CHECK(told(p).find("flash-linear-attention") != std::string_view::npos);
  }
  CHECK(told(tests::problem(Runtime::fsdp2, "llama3-8b", {.dp = 8})).find("torchtitan") == 0);
  CHECK(told(tests::problem(Runtime::deepspeed, "llama3-8b", {.dp = 4, .tp = 2}))
            .find("Megatron-DeepSpeed") == 0);
}
