// What is the program of a rank of FSDP2? Front door: fsdp2_stage.
#include "cost_model/runtime/fsdp2/stage.hpp"

#include <map>

#include "cost_model/runtime/fsdp2/rank.hpp"

namespace zeroplan {
namespace {

// Equal blocks are made once.
class Blocks {
 public:
  explicit Blocks(const Fsdp2Chain& chain) : chain_(chain) {}

  Runs runs(const std::vector<Fsdp2Link>& links, MicroBatch micro_batch) {
    Runs list;
    for (const Fsdp2Place& place : chain_.places(links)) {
      const auto [found, added] = made_.try_emplace({place.key(), micro_batch});
      if (added) {
        const bool head = place.link.kind == EagerLink::Kind::head;
        found->second = folded(chain_.block(place, micro_batch), head);
      }
      append(list, found->second, place.count);
    }
    return list;
  }

 private:
  using Key = std::pair<decltype(std::declval<Fsdp2Place>().key()), MicroBatch>;

  const Fsdp2Chain& chain_;
  std::map<Key, std::shared_ptr<const FoldedBlock>> made_;
};

}  // namespace

StageProgram fsdp2_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  const Fsdp2Units units = fsdp2_units(problem, inventory);
  const Fsdp2Rank rank(problem, inventory, units);
  const ModelStates states = model_states(problem, inventory, stage);
  StageProgram program = rank.places(stage);

  const Fsdp2Chain chain = rank.chain();
  Blocks blocks(chain);
  std::vector<std::vector<Fsdp2Link>> links;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    links.push_back(rank.links(stage.chunks[i], begins_model(stage, i), ends_model(stage, i)));
    program.chunks[i].runs = blocks.runs(links.back(), MicroBatch::later);
    program.chunks[i].first_runs = blocks.runs(links.back(), MicroBatch::first);
    if (defers_reduction(problem)) {
      program.chunks[i].last_runs = blocks.runs(links.back(), MicroBatch::last);
    }
  }
  std::vector<const std::vector<Fsdp2Link>*> all;
  for (const std::vector<Fsdp2Link>& one : links) all.push_back(&one);
  BlockWriter step;
  rank.end_of_step(all, states.parameters,
                   [&](const Fsdp2StepPart&, std::int64_t times, const auto& write) {
                     for (std::int64_t i = 0; i < times; ++i) write(step);
                   });
  program.step = step.finish();
  program.checkpoint = rank.checkpoint(stage);
  rank.add_resident_to(program, stage, states);
  return program;
}

Block fsdp2_block(const Problem& problem,
                  const WeightInventory& inventory,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy) {
  return eager_block(problem, inventory, fsdp2_recipe(problem).code, block, layer, policy);
}

}  // namespace zeroplan
