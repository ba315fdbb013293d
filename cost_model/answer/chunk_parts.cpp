// Which blocks has a chunk, and how long do they compute? Front door: chunk_parts.
#include "cost_model/answer/chunk_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

PassTime pass_time(const BlockTime& time, double again = 0) {
  return {.forward = time.forward.total(),
          .input_gradient = again + time.input_gradient.total(),
          .weight_gradient = time.weight_gradient.total()};
}

PassTime operator-(const PassTime& a, const PassTime& b) {
  return {a.forward - b.forward, a.input_gradient - b.input_gradient,
          a.weight_gradient - b.weight_gradient};
}

void add(PassTime& sum, const PassTime& more) {
  sum.forward += more.forward;
  sum.input_gradient += more.input_gradient;
  sum.weight_gradient += more.weight_gradient;
}

// The parts of the model that a chunk holds; its layers stand from `first_layer` to `last_layer`.
struct ModelParts {
  std::vector<ChunkPart> parts;
  std::size_t first_layer = 0;
  std::size_t last_layer = 0;
};

ModelParts model_parts(const Problem& p,
                       const BlockTimes& times,
                       const StepModules& modules,
                       const Stage& stage,
                       std::size_t i) {
  ModelParts of;
  const auto add_part = [&](std::string name, const BlockTime& time, const ModuleTimes& own,
                            double again = 0) {
    of.parts.push_back({std::move(name), pass_time(time, again), &own});
  };
  if (begins_model(stage, i)) add_part("embedding", times.embedding.kernels, modules.embedding);
  of.first_layer = of.parts.size();
  const LayerRange& range = stage.chunks[i];
  for (std::int64_t layer = range.first; layer < range.last; ++layer) {
    const LayerKind kind = kind_of(p.model, layer);
    const TimedBlock& block = times.layer(kind);
    add_part(fmt::format("layer {}", layer), block.kernels, modules.layer(kind),
             block.again(recomputes_layer(p, range, layer)));
  }
  of.last_layer = of.parts.size();
  if (!ends_model(stage, i)) return of;
  const BlockTime& head = times.head.kernels;
  for (std::int64_t module = 0; module < trained_mtp_modules(p); ++module) {
    const PassTime ends = pass_time(times.mtp_ends.kernels) - pass_time(head);
    of.parts.push_back({fmt::format("input of MTP module {}", module), ends, &modules.mtp_input});
    for (const auto& [kind, repeated] : mtp_layers(p)) {
      const TimedBlock& block = times.layer(kind);
      add_part(fmt::format("layer of MTP module {}", module), block.kernels, modules.layer(kind),
               block.again(repeated));
    }
    add_part(fmt::format("head of MTP module {}", module), head, modules.head);
  }
  add_part("head", head, modules.head);
  return of;
}

// Layers that run again together are one block, as many in each but the last.
std::vector<ChunkPart> grouped(const ModelParts& of, std::size_t blocks) {
  const std::size_t layers = of.last_layer - of.first_layer;
  const std::size_t others = of.parts.size() - layers;
  const std::size_t groups = blocks > others ? blocks - others : 1;
  const std::size_t size = (layers + groups - 1) / groups;
  std::vector<ChunkPart> parts(of.parts.begin(),
                               of.parts.begin() + static_cast<std::ptrdiff_t>(of.first_layer));
  for (std::size_t first = of.first_layer; first < of.last_layer; first += size) {
    const std::size_t last = std::min(first + size, of.last_layer);
    ChunkPart group = of.parts[first];
    if (last - first > 1) {
      group.name = fmt::format("layers {} to {}", of.parts[first].name.substr(6),
                               of.parts[last - 1].name.substr(6));
    }
    for (std::size_t i = first + 1; i < last; ++i) add(group.seconds, of.parts[i].seconds);
    parts.push_back(std::move(group));
  }
  parts.insert(parts.end(), of.parts.begin() + static_cast<std::ptrdiff_t>(of.last_layer),
               of.parts.end());
  return parts;
}

bool only_exchanges(const Block& block) {
  return std::ranges::all_of(block.forward, &Event::calls) &&
         std::ranges::all_of(block.backward, &Event::calls);
}

}  // namespace

StepModules::StepModules(const Problem& p) : embedding(embedding_times(p)), head(head_times(p)) {
  for (const LayerKind kind : used_kinds(p.model)) layers[kind] = module_times(p, kind);
  if (trained_mtp_modules(p) > 0) mtp_input = mtp_input_times(p);
}

std::vector<ChunkPart> chunk_parts(const Problem& problem,
                                   const BlockTimes& times,
                                   const StepModules& modules,
                                   const Stage& stage,
                                   std::size_t chunk,
                                   const Runs& runs) {
  std::size_t blocks = 0;
  for (const Run& run : runs) {
    if (!only_exchanges(run.block->block())) blocks += static_cast<std::size_t>(run.count);
  }
  const ModelParts of = model_parts(problem, times, modules, stage, chunk);
  const std::vector<ChunkPart> known = blocks < of.parts.size() ? grouped(of, blocks) : of.parts;
  std::vector<ChunkPart> parts;
  std::size_t next = 0;
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      if (only_exchanges(run.block->block())) {
        parts.push_back({"exchange of states", {}});
      } else if (next < known.size()) {
        parts.push_back(known[next++]);
      } else {
        parts.push_back({"passed on", {}});
      }
    }
  }
  return parts;
}

}  // namespace zeroplan
