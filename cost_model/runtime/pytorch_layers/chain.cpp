// Which blocks does a decoder without a pipeline run? Front door: eager_chain.
#include "cost_model/runtime/pytorch_layers/chain.hpp"

#include "cost_model/states/buffers.hpp"

namespace zeroplan {
namespace {

Runs runs_of(const Problem& problem,
             Checkpoint checkpoint,
             MicroBatch micro_batch,
             const std::function<Block(const EagerPlace&)>& write,
             const LayerSorts& sorts) {
  using Kind = EagerLink::Kind;
  const auto block = [&](EagerLink link, bool first, bool last, int sort = 0) {
    return folded(write({link, first, last, sort, micro_batch}), link.kind == Kind::head);
  };
  ByKind<std::array<std::array<std::shared_ptr<const FoldedBlock>, 6>, 2>>
      layers;  // by window and sort
  const bool twice = checkpoint != Checkpoint::none;
  Runs runs{{block({.kind = Kind::embedding, .keeps_mask = twice}, true, false)}};
  for (std::int64_t i = 0; i < problem.model.layers; ++i) {
    const EagerLink link = layer_link(problem.model, i, checkpoint);
    const int sort = sorts ? sorts(i) : 0;
    auto& layer = layers[link.layer][link.windowed][static_cast<std::size_t>(sort)];
    if (!layer) layer = block(link, false, false, sort);
    append(runs, layer);
  }
  runs.push_back({block({.kind = Kind::head, .keeps_mask = twice}, false, true)});
  return runs;
}

}  // namespace

ChunkProgram eager_chain(const Problem& problem,
                         Checkpoint checkpoint,
                         const std::function<Block(const EagerPlace&)>& write,
                         const LayerSorts& sorts) {
  return {.runs = runs_of(problem, checkpoint, MicroBatch::later, write, sorts),
          .first_runs = runs_of(problem, checkpoint, MicroBatch::first, write, sorts)};
}

std::vector<Bytes> put_sizes(const ChunkProgram& chunk, const Carried& kind) {
  std::vector<Bytes> sizes;
  for (auto run = chunk.first_runs.rbegin(); run != chunk.first_runs.rend(); ++run) {
    const Block& block = run->block->block();
    for (std::int64_t i = 0; i < run->count; ++i) {
      for (const Event& event : block.backward) {
        if (!event.allocates()) continue;
        const TensorSpec& spec = block.tensors[static_cast<std::size_t>(event.index)];
        if (spec.carried && spec.name == kind.name) sizes.push_back(spec.bytes);
      }
    }
  }
  return sizes;
}

void take_all(BlockWriter& w, const ChunkProgram& chunk, const Carried& kind) {
  for (const Bytes bytes : put_sizes(chunk, kind)) w.take(kind, bytes);
}

void add_resident(StageProgram& program, std::string_view name, Bytes bytes, Category category) {
  if (bytes == Bytes{}) return;
  program.resident.push_back({name, Bytes{round_up(bytes.count(), allocation_unit)}, category});
}

bool has_rotary_table(const Problem& problem) {
  return turns_heads(problem.model) && !problem.model.attention.mla;
}

void add_plain_buffers(StageProgram& program,
                       const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  add_resident(program, "cuBLAS workspaces", workspace(problem, inventory, stage),
               Category::workspace);
  if (has_rotary_table(problem)) {
    // One complex number, or cosine and sine, for each pair of features.
    add_resident(program, "rotary table",
                 Bytes{4 * problem.training.sequence_length * problem.model.attention.head_dim},
                 Category::workspace);
  }
  constexpr std::int64_t id_bytes = 8;
  add_resident(program, "token ids and labels", Bytes{2 * id_bytes * local_tokens(problem)},
               Category::workspace);
}

Startup plain_startup(const Problem&,
                      const WeightInventory&,
                      const Stage&,
                      const StageProgram& program) {
  Startup startup;
  BlockWriter w;
  for (const TensorSpec& spec : program.resident) {
    if (spec.category == Category::optimizer_states) {
      startup.moments.push_back(spec);
    } else {
      w.allocate(spec.name, spec.bytes, spec.category);
    }
  }
  startup.construction = w.finish();
  return startup;
}

}  // namespace zeroplan
