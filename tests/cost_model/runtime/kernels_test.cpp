// What a layer's program computes is what kernel/ gives seconds: each module once, its gradients
// once, and once more what recompute repeats. Random problems of every runtime.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cost_model/kernel/module_time.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

using Counts = std::map<Kernel, int>;

Counts counts_of(const std::vector<Event>& events) {
  Counts counts;
  for (const Event& event : events) {
    if (!event.computes()) continue;
    ++counts[event.kernel()];
  }
  return counts;
}

// Each half of a layer ends with a residual, and with a norm where it has one after it; and each
// gathers and reduces.
int times_a_pass(Module module, LayerKind kind) {
  const bool of_halves =
      module == Module::residual || module == Module::post_norm || module == Module::rank_order;
  return of_halves && has_both_halves(kind) ? 2 : 1;
}

// All that kernel/ knows of a layer, forward and then backward.
std::pair<Counts, Counts> known_kernels(const Problem& p, LayerKind kind) {
  std::pair<Counts, Counts> known;
  for (const ModuleTime& time : module_times(p, kind)) {
    const int times = times_a_pass(time.module, kind);
    if (time.module != Module::gradient_sum) known.first[{time.module, Product::forward}] = times;
    known.second[{time.module, Product::input_gradient}] = times;
    if (time.weight_gradient.total() > 0) {
      known.second[{time.module, Product::weight_gradient}] = times;
    }
  }
  return known;
}

// Every kernel of a pass, in order.
using Text = std::vector<Kernel>;
Text text_of(const std::vector<Event>& events) {
  Text text;
  for (const Event& event : events) {
    if (!event.computes()) continue;
    text.push_back(event.kernel());
  }
  return text;
}

bool runs_attention(const Text& text) {
  return std::ranges::find(text, Module::core_attention, &Kernel::module) != text.end();
}

void require_known(const Problem& p) {
  const Evaluator evaluator(p);
  std::set<std::pair<Text, Text>> texts;
  for (const LayerKind kind : used_kinds(p.model)) {
    const auto [forward, backward] = known_kernels(p, kind);
    const RepeatSet others = repeated_layers(p).others;
    for (const RepeatSet set : {RepeatSet{0}, repeats(p), others, whole_layer}) {
      const Block block = code_of(p).block(p, evaluator.weights(), BlockKind::layer, kind, set);
      CAPTURE(name_of(p.runtime.kind), p.model.name, set, name_of(kind));
      REQUIRE(counts_of(block.forward) == forward);
      Counts gradients = counts_of(block.backward);
      std::erase_if(gradients, [&](const auto& item) {
        const bool again = item.first.product == Product::forward;
        if (again) REQUIRE(item.second <= forward.at(item.first));
        if (again) REQUIRE(set != 0);
        return again;
      });
      REQUIRE(gradients == backward);
      texts.emplace(text_of(block.forward), text_of(block.backward));
    }
  }
  // And so does the step, but for Megatron's blocks of several layers that run again together.
  if (p.runtime.megatron.recompute_num_layers > 1) return;
  for (const Stage& stage : stages(p)) {
    for (const ChunkProgram& chunk : evaluator.stage_program(p, stage).chunks) {
      for (const Run& run : chunk.runs) {
        const Block& block = run.block->block();
        const Text forward = text_of(block.forward);
        CAPTURE(name_of(p.runtime.kind), p.model.name, name_of(p.layout.recompute),
                p.runtime.megatron.recompute_modules, p.runtime.megatron.recompute_num_layers);
        if (!runs_attention(forward)) continue;  // an end of the model
        REQUIRE(texts.contains({forward, text_of(block.backward)}));
      }
    }
  }
}

// How often each kernel runs in both passes.
Counts runs_of(const Block& block) {
  Counts runs;
  for (const auto* pass : {&block.forward, &block.backward}) {
    for (const Event& event : *pass) {
      if (!event.computes()) continue;
      const auto [module, product, times] = event.kernel();
      runs[{module, product}] += times;
    }
  }
  return runs;
}

// Each kernel of the times, so often; final norms that a model lacks take none.
void require_end(const Problem& p, BlockKind kind, const ModuleTimes& times) {
  const Block block =
      code_of(p).block(p, weight_inventory(p.model), kind, LayerKind::dense, RepeatSet{0});
  const LossParts parts = loss_parts(p);
  Counts expected;
  for (const ModuleTime& time : times) {
    const bool apart =
        time.module == Module::loss || (time.module == Module::output_layer && parts.of_hidden());
    for (const Product product :
         {Product::forward, Product::input_gradient, Product::weight_gradient}) {
      if (time.at(product).total() == 0) continue;
      expected[{time.module, product}] = apart ? static_cast<int>(parts.count) : 1;
    }
  }
  Counts runs = runs_of(block);
  if (!p.model.final_norm) {
    std::erase_if(runs, [](const auto& run) { return run.first.module == Module::final_norm; });
  }
  CAPTURE(name_of(p.runtime.kind), p.model.name, kind, parts.count);
  REQUIRE(runs == expected);
}

}  // namespace

TEST_CASE("a layer's program runs each module that has a time, and nothing else") {
  std::mt19937 random(20261125);
  Draw draw(random);
  int drawn = 0;
  while (drawn < (tests::sanitized ? 20 : 600)) {
    const std::optional<Problem> p = draw.problem({0, 0, 1, 2, 3, 3, 4, 5, 6, 6});
    if (!p) continue;
    ++drawn;
    require_known(*p);
  }
}

TEST_CASE(
    "programs of embedding, head and MTP input run what has a time, each part of a loss once") {
  std::mt19937 random(20261126);
  Draw draw(random);
  int drawn = 0;
  while (drawn < tests::draws(300)) {
    const std::optional<Problem> p = draw.problem({0, 0, 1, 1, 1, 2, 3, 4, 5, 6});
    if (!p) continue;
    ++drawn;
    require_end(*p, BlockKind::embedding, embedding_times(*p));
    require_end(*p, BlockKind::head, head_times(*p));
    if (trained_mtp_modules(*p) > 0) {
      require_end(*p, BlockKind::mtp_input, mtp_input_times(*p));
    }
  }
}
