#include "cost_model/program/fold.hpp"

#include <random>

#include "cost_model/legality.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/remembered.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

TEST_CASE("folding finds the highest sum of a block's events") {
  BlockWriter w(Bytes{512}, Bytes{512});
  const Tensor kept = w.save("kept", Bytes{1000});  // 1024 as allocated
  const Tensor gone = w.temporary("gone", Bytes{4096});
  w.free(gone);
  w.allocate(Block::output);
  w.begin_backward();
  w.free(Block::output_grad);
  w.free(kept);
  const Block block = w.finish();

  const Footprint forward = fold(block, block.forward, Phase::forward);
  REQUIRE(forward.peak.live.allocated() == Bytes{1024 + 4096});
  REQUIRE(forward.peak.tensor == "gone");
  REQUIRE(forward.left.allocated() == Bytes{1024 + 512});
  REQUIRE(fold(block, block.backward, Phase::backward).left.allocated() == Bytes{-512 - 1024});
  REQUIRE(fold(block, block.backward, Phase::backward, {.output_grad = true}).left.allocated() ==
          Bytes{-1024});
}

namespace {

// A random Megatron layout that is legal; empty when this draw is not.
std::optional<Problem> draw(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return *(list.begin() +
             std::uniform_int_distribution<long>(0, static_cast<long>(list.size()) - 1)(random));
  };
  const std::string_view models[] = {"llama3-8b", "llama3-70b",       "mixtral-8x7b",
                                     "gpt2-xl",   "deepseek-v2-lite", "qwen3-30b-a3b",
                                     "gemma2-9b", "gpt-neox-20b"};
  Layout layout{.dp = pick({1, 2, 4}),
                .tp = pick({1, 1, 2, 4, 8}),
                .pp = pick({1, 1, 2, 4, 8}),
                .cp = pick({1, 1, 2})};
  layout.ep = pick({1, 1, 2, 4});
  layout.etp = pick({1, 1, layout.tp});
  layout.micro_batch = pick({1, 2});
  layout.zero = static_cast<ZeroStage>(pick({0, 1, 2, 3}));
  layout.sequence_parallel = pick({0, 1, 1}) == 1;
  layout.recompute = static_cast<Recompute>(pick({0, 0, 1, 2}));
  layout.vpp = pick({1, 1, 2, 3});
  if (layout.vpp > 1) layout.schedule = Schedule::interleaved;
  Problem p =
      problem(Runtime::megatron, models[pick({0, 1, 2, 3, 4, 5, 6, 7})], layout, "H100-80GB");
  p.training.sequence_length = pick({256, 512, 1000});
  p.training.precision = static_cast<Precision>(pick({0, 0, 1, 2, 3}));
  p.training.attention = static_cast<AttentionKernel>(pick({0, 0, 1}));
  p.training.global_batch = layout.dp * layout.micro_batch * layout.pp * pick({1, 1, 2, 3, 5});
  MegatronSettings& set = p.runtime.megatron;
  set.hidden_dropout = pick({0, 1}) == 1;
  set.attention_dropout = pick({0, 1}) == 1;
  set.cross_entropy_loss_fusion = pick({0, 1}) == 1;
  set.cross_entropy_fusion_impl = static_cast<CrossEntropy>(pick({0, 1}));
  set.transformer_engine_version = pick({0, 202, 211, 219});
  set.attention_backend = static_cast<AttentionLibrary>(pick({0, 1}));
  set.masked_softmax_fusion = pick({0, 1}) == 1;
  set.bias_activation_fusion = pick({0, 1}) == 1;
  set.gradient_accumulation_fusion = pick({0, 1}) == 1;
  set.moe_pad_to_capacity = pick({0, 1}) == 1;
  set.cp_comm_type = static_cast<ContextTransport>(pick({0, 1, 2}));
  set.recompute_method = static_cast<RecomputeMethod>(pick({0, 1}));
  set.recompute_num_layers = pick({0, 1, 2, 3});
  set.recompute_modules = static_cast<unsigned>(pick({1, 2, 4, 8, 15}));
  if (first_violation(p)) return std::nullopt;
  return p;
}

}  // namespace

// The equality that holds the design together: what is summed up is what happens.
TEST_CASE("fold = play, byte for byte, over random legal layouts") {
  std::mt19937 random(20261120);
  int played = 0;
  for (int i = 0; i < 20'000 && played < 2'500; ++i) {
    const std::optional<Problem> p = draw(random);
    if (!p) continue;
    const Remembered remembered(p->model);
    const auto all = stages(*p);
    const std::int64_t rank =
        std::uniform_int_distribution<std::int64_t>(0, p->layout.pp - 1)(random);
    const StageProgram program = remembered.stage_program(*p, all[static_cast<std::size_t>(rank)]);
    CAPTURE(p->model.name, p->layout.tp, p->layout.pp, p->layout.vpp, rank, micro_batches(*p),
            name_of(p->layout.recompute));

    const auto whole = passes(*p, rank, micro_batches(*p));
    const Playback played_step = play_step(program, whole);
    const Moment folded = fold_step(program, whole);
    REQUIRE(folded.live.allocated() == played_step.peak.live.allocated());
    REQUIRE(folded.live == played_step.peak.live);
    // A few micro-batches tell as much as all of them.
    const Moment steady = fold_step(program, representative_passes(*p, rank));
    REQUIRE(steady.live.allocated() == folded.live.allocated());
    // Nothing leaks: what is left is what was resident.
    Bytes resident;
    for (const TensorSpec& spec : program.resident) resident += spec.bytes;
    REQUIRE(played_step.left.allocated() == resident);
    ++played;
  }
  REQUIRE(played >= 2'000);
}
