#include "cost_model/legality/legality.hpp"

#include <random>
#include <set>

#include "cost_model/rank/recomputed.hpp"
#include "planner/sweep/choices.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::string broken_rule(const Problem& p) {
  const auto violation = first_violation(p);
  return violation ? std::string(violation->rule) : "";
}

Problem on(std::int64_t gpus, Problem p) {
  p.cluster.gpus = gpus;
  return p;
}

}  // namespace

TEST_CASE("rules of a runtime have names of their own") {
  for (const Runtime runtime : tests::runtimes()) {
    std::set<std::string_view> ids;
    for (const Rule& rule : rules_of({.kind = runtime}).rules) {
      CAPTURE(name_of(runtime), rule.id);
      REQUIRE(ids.insert(rule.id).second);
    }
  }
}

// So that cutting a tree of choices counts as asking about each layout does. Rows in another order
// do not compile.
TEST_CASE("rules are found by the depth at which a search can ask them") {
  for (const Runtime runtime : tests::runtimes()) {
    const RuleBook& book = rules_of({.kind = runtime});
    std::size_t found = 0;
    for (std::size_t d = 0; d <= choice_order.size(); ++d) {
      for (const Rule& rule : book.of_depth(d)) {
        CAPTURE(name_of(runtime), rule.id);
        REQUIRE(depth(rule) == d);
        REQUIRE(&rule == &book.rules[found++]);
      }
    }
    REQUIRE(found == book.rules.size());
  }
}

TEST_CASE("a rule's answer depends on no field that it does not name") {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  const auto draw = [&](Layout& l, Field field) {
    const bool flag = field == Field::zero || field == Field::schedule ||
                      field == Field::recompute || field == Field::offload || field == Field::knobs;
    set_value(l, field,
              field == Field::sequence_parallel ? pick({0, 1})
              : flag                            ? pick({0, 1, 2})
              : field == Field::hsdp            ? pick({0, 2, 3, 4})
                                                : pick({1, 2, 3, 4, 8}));
  };
  for (int i = 0; i < tests::draws(4000); ++i) {
    const auto runtime = static_cast<Runtime>(random() % names<Runtime>().size());
    Problem p = problem(runtime, random() % 2 == 0 ? "mixtral-8x7b" : "llama3-8b", {});
    p.cluster.gpus = 64;
    p.training.global_batch = 96;
    for (const Field field : choice_order) draw(p.layout, field);
    p.layout.dp = std::max<std::int64_t>(1, 64 / (p.layout.tp * p.layout.cp * p.layout.pp));
    const std::span<const Rule> rules = rules_of(p.runtime).rules;
    const Rule& rule = rules[random() % rules.size()];
    const Field field = choice_order[random() % choice_order.size()];
    if ((rule.reads & set_of({field})) != 0) continue;
    Problem changed = p;
    draw(changed.layout, field);
    const Layout& l = changed.layout;
    changed.layout.dp = std::max<std::int64_t>(1, 64 / (l.tp * l.cp * l.pp));
    CAPTURE(rule.id, name_of(field), name_of(runtime));
    REQUIRE(rule.broken(p).has_value() == rule.broken(changed).has_value());
  }
}

TEST_CASE("the grid divides the GPUs") {
  REQUIRE(broken_rule(problem(Runtime::megatron, "qwen2.5-72b", {.tp = 8, .pp = 8})).empty());
  REQUIRE(broken_rule(on(128, problem(Runtime::megatron, "qwen2.5-72b", {.tp = 8, .pp = 7}))) ==
          "G-world");
  // Llama 3, Table 4, row 3 as some copies print it: 8 x 16 x 16 x 4 is 8,192, not 16,384.
  REQUIRE(world_size({.dp = 4, .tp = 8, .pp = 16, .cp = 16}) == 8192);
}

// 8 key-value heads: who replicates them, who refuses.
TEST_CASE("runtimes disagree on tp above the key-value heads") {
  const Layout wide{.tp = 16, .sequence_parallel = true};
  REQUIRE(broken_rule(problem(Runtime::megatron, "llama3-70b", wide)).empty());
  REQUIRE(broken_rule(problem(Runtime::fsdp2, "llama3-70b",
                              {.tp = 16, .zero = ZeroStage::parameters})) == "T-kv-heads");
  REQUIRE(broken_rule(problem(Runtime::nanotron, "llama3-70b", wide)) == "T-kv-heads");
  REQUIRE(
      broken_rule(problem(Runtime::nanotron, "llama3-70b", {.tp = 8, .sequence_parallel = true}))
          .empty());
  REQUIRE(broken_rule(problem(Runtime::deepspeed, "llama3-70b", {.tp = 16})) == "T-kv-heads");
  REQUIRE(broken_rule(problem(Runtime::megatron, "llama3-70b", {.tp = 12})) == "M-heads");
}

// (micro-batches, pp, vpp): the same numbers, other answers.
TEST_CASE("runtimes disagree on few micro-batches") {
  Problem p = problem(Runtime::megatron, "llama3-70b", {.pp = 8});
  p.training.global_batch = 7;
  REQUIRE(broken_rule(p).empty());
  p.layout.zero = ZeroStage::parameters;
  p.runtime = load_runtime(Runtime::fsdp2, {});
  REQUIRE(broken_rule(p) == "T-micro-batches");
  p.layout.zero = ZeroStage::none;
  p.runtime = load_runtime(Runtime::nanotron, {});
  REQUIRE(broken_rule(p).empty());
  p.training.global_batch = 6;
  REQUIRE(broken_rule(p) == "N-micro-batches");
  p.layout.schedule = Schedule::gpipe;
  REQUIRE(broken_rule(p).empty());

  Problem interleaved = problem(Runtime::megatron, "llama3-70b",
                                {.pp = 8, .vpp = 2, .schedule = Schedule::interleaved});
  interleaved.training.global_batch = 20;
  REQUIRE(broken_rule(interleaved) == "M-interleaved-batch");
  interleaved.training.global_batch = 24;
  REQUIRE(broken_rule(interleaved).empty());
}

TEST_CASE("one layout a rule, each broken by exactly what it is about") {
  using enum Runtime;
  struct Case {
    std::string rule;
    Runtime runtime;
    std::string model;
    Layout layout;
  };
  const Case cases[] = {
      {"G-data-parallel-only", ddp, "llama3-8b", {.tp = 2}},
      {"G-experts", megatron, "llama3-8b", {.dp = 2, .ep = 2}},
      {"M-expert-grid", megatron, "mixtral-8x7b", {.dp = 2, .ep = 8}},
      {"T-expert-group", fsdp2, "mixtral-8x7b", {.dp = 2, .ep = 8, .zero = ZeroStage::parameters}},
      {"T-etp", fsdp2, "mixtral-8x7b", {.dp = 8, .etp = 2}},
      {"G-hybrid-divides", fsdp2, "llama3-8b", {.dp = 8, .hsdp = 3, .zero = ZeroStage::parameters}},
      {"G-hybrid-stage", megatron, "llama3-8b", {.dp = 8, .hsdp = 4}},
      {"G-hybrid", ddp, "llama3-8b", {.dp = 8, .hsdp = 4}},
      {"M-heads", megatron, "qwen2.5-14b", {.tp = 16}},
      {"M-mlp-width", deepspeed, "llama2-13b", {.tp = 5}},
      {"M-experts", megatron, "mixtral-8x7b", {.dp = 3, .ep = 3}},
      {"G-sequence-parallel", megatron, "llama3-8b", {.sequence_parallel = true}},
      {"G-no-sequence-parallel", deepspeed, "llama3-8b", {.tp = 2, .sequence_parallel = true}},
      {"M-context", megatron, "llama3-8b", {.cp = 3}},
      {"D-context", deepspeed, "llama3-8b", {.cp = 3}},
      {"M-moe-sequence-parallel", megatron, "mixtral-8x7b", {.tp = 2}},
      {"M-positions", megatron, "gpt2", {}},
      {"G-layers", zero_paper, "gpt2", {.pp = 16}},
      {"G-schedule", megatron, "llama3-8b", {.pp = 2, .schedule = Schedule::zb_h1}},
      {"G-schedule-pipeline", zero_paper, "llama3-8b", {.schedule = Schedule::gpipe}},
      {"G-chunks", megatron, "llama3-8b", {.pp = 2, .vpp = 2}},
      {"M-split", megatron, "llama3-8b", {.pp = 3}},
      {"T-tied", fsdp2, "gemma2-9b", {.pp = 2, .zero = ZeroStage::parameters}},
      {"T-stage", fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer}},
      {"G-ddp-stage", ddp, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer}},
      {"D-pipeline-stage", deepspeed, "llama3-8b", {.pp = 2, .zero = ZeroStage::gradients}},
      {"D-expert-stage",
       deepspeed,
       "mixtral-8x7b",
       {.dp = 8, .ep = 8, .zero = ZeroStage::parameters}},
      {"G-recompute", deepspeed, "llama3-8b", {.recompute = Recompute::selective}},
      {"G-offload", ddp, "llama3-8b", {.offload = Offload::optimizer}},
      {"D-hybrid-offload",
       deepspeed,
       "llama3-8b",
       {.dp = 8, .hsdp = 4, .zero = ZeroStage::parameters, .offload = Offload::optimizer}},
      {"G-dualpipe", zero_paper, "llama3-8b", {.pp = 3, .schedule = Schedule::dualpipe}},
      {"G-offload", megatron, "llama3-8b", {.offload = Offload::activations}},
      {"G-offload", deepspeed, "llama3-8b", {.tp = 2, .offload = Offload::activations}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.rule, c.model);
    REQUIRE(broken_rule(problem(c.runtime, c.model, c.layout)) == c.rule);
  }
}

TEST_CASE("embedding and loss fill chunks where they count as layers") {
  Problem p = problem(Runtime::megatron, "llama3.1-405b",
                      {.pp = 16, .vpp = 8, .schedule = Schedule::interleaved});
  MegatronSettings& set = p.runtime.megatron;
  REQUIRE(broken_rule(p) == "G-layers");
  set.account_for_loss_in_pipeline_split = true;
  REQUIRE(first_violation(p)->reason.starts_with("126 layers and 1 more"));
  set.account_for_embedding_in_pipeline_split = true;
  REQUIRE(broken_rule(p).empty());
  // transformer_config.py takes one or the other.
  set.decoder_first_pipeline_num_layers = 8;
  p.layout.vpp = 1;
  p.layout.schedule = Schedule::one_f_one_b;
  REQUIRE(broken_rule(p) == "M-split");
  REQUIRE(first_violation(p)->reason.find("exclude each other") != std::string::npos);
}

TEST_CASE("a layout of the pipeline places all that the model has") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 2});
  PipelineLayout& layout = p.runtime.megatron.pipeline_model_parallel_layout;
  const auto reason = [&] {
    const auto violation = first_violation(p);
    return violation ? violation->reason : "";
  };
  layout.layers = {15, 17};
  REQUIRE(reason().empty());
  layout.layers = {15, 16};
  REQUIRE(reason().find("places 31 layers, not 32") != std::string::npos);
  layout.layers = {15, 15, 2};
  REQUIRE(reason().find("has 3 chunks, not pp 2 x vpp 1") != std::string::npos);
  layout = {.layers = {15, 17}, .mtp_modules = 1};
  REQUIRE(reason().find("1 modules where mtp_num_layers is 0") != std::string::npos);
  layout.mtp_modules = 0;
  p.runtime.megatron.pipeline_code = PipelineCode::zero_bubble;
  REQUIRE(reason().find("Megatron-Core's own") != std::string::npos);
}

TEST_CASE("Megatron-Core's layers take the schedules of the pipeline code that drives them") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 4, .schedule = Schedule::zb_h1});
  REQUIRE(broken_rule(p) == "G-schedule");
  p.runtime.megatron.pipeline_code = PipelineCode::zero_bubble;
  REQUIRE(broken_rule(p).empty());
  p.layout.schedule = Schedule::dualpipe;
  REQUIRE(broken_rule(p) == "G-schedule");
  p.runtime.megatron.pipeline_code = PipelineCode::dualpipe;
  p.training.global_batch = 16;
  REQUIRE(broken_rule(p).empty());
  p.training.global_batch = 15;  // as many in each direction
  REQUIRE(broken_rule(p) == "G-dualpipe");
}

TEST_CASE("contiguous checkpoints are partitioned ones, without a pipeline") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.tp = 2, .recompute = Recompute::full});
  p.runtime.deepspeed.contiguous_checkpoints = true;
  REQUIRE(broken_rule(p) == "D-contiguous");
  p.runtime.deepspeed.partition_activations = true;
  REQUIRE(broken_rule(p).empty());
}

TEST_CASE("mics_shard_size is another name of hsdp") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b",
                      {.dp = 16, .hsdp = 8, .zero = ZeroStage::parameters});
  p.runtime.deepspeed.mics_shard_size = 8;
  REQUIRE(broken_rule(p).empty());
  p.runtime.deepspeed.mics_shard_size = 4;
  REQUIRE(broken_rule(p) == "G-hybrid-divides");
}

// 40 query and 8 key-value heads, 5,000 tokens.
TEST_CASE("Ulysses divides key-value heads or copies them") {
  const auto broken = [](std::int64_t cp, std::int64_t tp) {
    Problem p = problem(Runtime::deepspeed, "qwen2.5-14b", {.tp = tp, .cp = cp});
    p.training.sequence_length = 5000;
    return broken_rule(p);
  };
  REQUIRE(broken(5, 1) == "D-context-kv");
  REQUIRE(broken(4, 1).empty());
  REQUIRE(broken(40, 1).empty());
  REQUIRE(broken(5, 2).empty());  // Megatron-DeepSpeed's layers
}

TEST_CASE("Megatron-Core's attention that is not fused has no context parallelism") {
  const auto broken = [](std::int64_t cp, AttentionKernel attention) {
    Problem p = problem(Runtime::megatron, "llama3-8b", {.cp = cp});
    p.training.attention = attention;
    return broken_rule(p);
  };
  REQUIRE(broken(2, AttentionKernel::unfused) == "M-context-unfused");
  REQUIRE(broken(1, AttentionKernel::unfused).empty());
  REQUIRE(broken(2, AttentionKernel::flash).empty());
}

TEST_CASE("context parallelism by all-to-all takes heads apart") {
  const auto broken = [](std::string_view model, std::int64_t tp, ContextTransport transport) {
    Problem p = problem(Runtime::megatron, model, {.tp = tp, .cp = 2, .sequence_parallel = tp > 1});
    p.runtime.megatron.cp_comm_type = transport;
    return broken_rule(p);
  };
  using enum ContextTransport;
  REQUIRE(broken("llama3-70b", 4, a2a).empty());
  REQUIRE(broken("llama3-70b", 8, a2a) == "M-context-heads");  // one key-value head is left
  REQUIRE(broken("llama3-70b", 16, a2a) == "M-context-heads");
  REQUIRE(broken("llama3-70b", 8, p2p).empty());
  REQUIRE(broken("deepseek-v3", 8, a2a).empty());  // 128 of both
}

TEST_CASE("ZeRO++'s second copy is divided over ranks that divide the others") {
  const auto broken = [](std::int64_t dp, std::int64_t size, ZeroStage zero) {
    Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = dp, .zero = zero});
    p.runtime.deepspeed.hpz_partition_size = size;
    return first_violation(p);
  };
  using enum ZeroStage;
  REQUIRE(!broken(16, 8, parameters));
  REQUIRE(!broken(8, 16, parameters));  // DeepSpeed takes 8
  REQUIRE(!broken(12, 8, gradients));
  const auto violation = broken(12, 8, parameters);
  REQUIRE(violation);
  REQUIRE(violation->rule == "D-secondary");
  REQUIRE(violation->reason.ends_with("--set zero_hpz_partition_size=6 would"));
}

TEST_CASE("Megatron-Core overlaps parameters only with gradients, and what is sharded") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  p.runtime.megatron.overlap_param_gather = true;
  REQUIRE(broken_rule(p) == "M-overlap-gradients");
  p.layout.zero = ZeroStage::parameters;  // Megatron-FSDP sets the other by itself
  REQUIRE(broken_rule(p).empty());
  p.layout.zero = ZeroStage::optimizer;
  p.runtime.megatron.overlap_grad_reduce = true;
  REQUIRE(broken_rule(p).empty());
  p.layout.zero = ZeroStage::none;
  REQUIRE(broken_rule(p) == "M-overlap");
}

TEST_CASE("the precision-aware optimizer is a distributed adam") {
  const auto broken = [](auto ask) {
    Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
    ask(p);
    const std::string sharded = broken_rule(p);
    p.layout.zero = ZeroStage::none;
    const std::string whole = broken_rule(p);
    p.layout.zero = ZeroStage::optimizer;
    p.training.optimizer = OptimizerKind::muon;
    return std::vector{sharded, whole, broken_rule(p)};
  };
  const std::vector<std::string> refused{"", "M-precision-aware-stage", "M-precision-aware-adam"};
  REQUIRE(broken([](Problem&) {}) == std::vector<std::string>{"", "", ""});
  REQUIRE(broken([](Problem& p) { p.runtime.megatron.use_precision_aware_optimizer = true; }) ==
          refused);
  REQUIRE(broken([](Problem& p) { p.runtime.megatron.exp_avg_bytes = 2; }) == refused);
  REQUIRE(broken([](Problem& p) { p.layout.offload = Offload::optimizer; }) == refused);
}

TEST_CASE("overlap of tensor parallelism needs sequence parallelism") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.tp = 2, .sequence_parallel = true});
  p.runtime.megatron.tp_comm_overlap = true;
  REQUIRE(broken_rule(p).empty());
  p.layout.sequence_parallel = false;
  REQUIRE(broken_rule(p) == "M-tp-overlap");
}

TEST_CASE("selective recompute takes modules that the model has, and no layers") {
  const auto broken = [](std::string_view model, auto ask) {
    Problem p = problem(Runtime::megatron, model, {.recompute = Recompute::selective});
    ask(p.runtime.megatron);
    const std::string selective = broken_rule(p);
    p.layout.recompute = Recompute::full;
    REQUIRE(broken_rule(p).empty());
    return selective;
  };
  const auto module = [](RecomputeModule m) {
    return [m](MegatronSettings& set) { set.recompute_modules = bit_of(m); };
  };
  using enum RecomputeModule;
  const std::string refused = "M-recompute-modules";
  REQUIRE(broken("llama3-8b", module(mlp)).empty());
  REQUIRE(broken("llama3-8b", module(mla_up_proj)) == refused);
  REQUIRE(broken("deepseek-v3", module(mla_up_proj)).empty());
  REQUIRE(broken("llama3-8b", module(moe_act)) == refused);
  REQUIRE(broken("mixtral-8x7b", module(moe_act)).empty());
  REQUIRE(broken("mixtral-8x7b", [](MegatronSettings& set) {
            set.recompute_modules = bit_of(moe_act);
            set.moe_grouped_gemm = false;
          }) == refused);
  const std::string groups = "M-recompute-groups";
  REQUIRE(broken("llama3-8b", [](MegatronSettings& set) { set.recompute_num_layers = 2; }) ==
          groups);
  REQUIRE(broken("llama3-8b", [](MegatronSettings& set) {
            set.recompute_method = RecomputeMethod::block;
          }) == groups);
}

TEST_CASE("the reason names the numbers") {
  const auto violation =
      first_violation(on(128, problem(Runtime::megatron, "qwen2.5-72b", {.tp = 8, .pp = 7})));
  REQUIRE(violation->reason == "128 GPUs cannot be split into tp 8 x pp 7 (56 each)");
  const auto with_cp = first_violation(
      on(128, problem(Runtime::megatron, "qwen2.5-72b", {.tp = 8, .pp = 7, .cp = 2})));
  REQUIRE(with_cp->reason == "128 GPUs cannot be split into tp 8 x pp 7 x cp 2 (112 each)");
}
