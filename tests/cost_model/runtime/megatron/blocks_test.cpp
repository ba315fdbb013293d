#include "cost_model/runtime/megatron/blocks.hpp"

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

bool same_events(const std::vector<Event>& a, const std::vector<Event>& b) {
  return std::ranges::equal(a, b, [](const Event& x, const Event& y) {
    return x.index == y.index && x.kind == y.kind && x.of_weights == y.of_weights;
  });
}

std::vector<Problem> problems() {
  std::vector<Problem> list;
  for (const std::int64_t micro_batch : {1, 4}) {
    for (const std::int64_t ep : {2, 8}) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        Problem p =
            tests::problem(Runtime::megatron, "mixtral-8x7b",
                           {.dp = 8, .ep = ep, .micro_batch = micro_batch, .recompute = recompute});
        p.training.global_batch = 64;
        p.layout.recompute_modules = bit_of(RecomputeModule::moe_act);
        list.push_back(p);
      }
    }
  }
  return list;
}

}  // namespace

// A search remembers blocks by their bytes alone, of which it asks; what it plays has events.
TEST_CASE("a remembered block is written again as its own problem has it") {
  std::vector<MegatronBlocks> remembered;
  {
    MegatronBlockCache cache;  // which the blocks outlive
    for (const Problem& p : problems()) remembered.push_back(cache.find_or_make(p));
  }
  for (std::size_t i = 0; i < remembered.size(); ++i) {
    const Problem p = problems()[i];
    CAPTURE(i, p.layout.ep, p.layout.micro_batch, name_of(p.layout.recompute));
    const bool full = p.layout.recompute == Recompute::full;
    const MegatronLayer& layer = remembered[i].layers[LayerKind::moe];
    const FoldedBlock& block = full ? *layer.recomputed : *layer.kept;
    const auto fresh = folded(full ? megatron_recomputed_layers(p, {LayerKind::moe})
                                   : megatron_layer(p, LayerKind::moe, repeats(p)));
    CHECK(block.block().tensors == fresh->block().tensors);
    CHECK(same_events(block.block().forward, fresh->block().forward));
    CHECK(same_events(block.block().backward, fresh->block().backward));
    CHECK(block.bytes.output == fresh->bytes.output);
    CHECK(block.forward.left == fresh->forward.left);
    for (const bool input : {false, true}) {
      for (const bool output_grad : {false, true}) {
        const Borrowed borrowed{input, output_grad};
        const std::size_t at = BlockBytes::index(borrowed);
        CHECK(block.bytes.backward[at].peak == fresh->bytes.backward[at].peak);
        CHECK(block.backward_with(BackwardPart::whole, borrowed).peak.live.allocated() ==
              block.bytes.backward[at].peak);
      }
    }
  }
}
