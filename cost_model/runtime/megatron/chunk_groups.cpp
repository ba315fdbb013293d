// Which layers of a chunk leave what on the host? Front door: layers_with_groups.
#include "cost_model/runtime/megatron/chunk_groups.hpp"

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {
namespace {

// What a model returns is all that it held, so that an embedding's output is held until the loss
// where there is one.
InputHolder input_holder(const Stage& stage, std::size_t chunk) {
  if (!begins_model(stage, chunk)) return InputHolder::pipeline;
  return ends_model(stage, chunk) ? InputHolder::model : InputHolder::none;
}

// The places of a chunk's layers, those of MTP modules last.
std::vector<HostPlace> places_of(const Problem& p,
                                 const Stage& stage,
                                 std::size_t chunk,
                                 InFlight in_flight) {
  const LayerRange& range = stage.chunks[chunk];
  const bool last = ends_model(stage, chunk);
  std::vector<LayerKind> kinds;
  for (std::int64_t i = range.first; i < range.last; ++i) kinds.push_back(kind_of(p.model, i));
  for (std::int64_t i = 0; last && i < trained_mtp_modules(p); ++i) {
    for (const MtpLayer& layer : mtp_layers(p)) kinds.push_back(layer.kind);
  }
  return host_places(p, kinds, input_holder(stage, chunk), in_flight);
}

}  // namespace

LayerBlocks layers_with_groups(const Problem& p,
                               const Stage& stage,
                               std::size_t chunk,
                               InFlight in_flight) {
  LayerBlocks made;
  if (p.runtime.megatron.offload_modules == 0) return made;
  const std::vector<HostPlace> places = places_of(p, stage, chunk, in_flight);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool same = i > 0 && places[i] == places[i - 1];
    made.push_back(same ? made.back() : folded(megatron_layer(p, repeats(p), places[i])));
  }
  return made;
}

Bytes moved_by_chunk(const Problem& problem, const Stage& stage, std::size_t chunk) {
  Bytes sum;
  for (const HostPlace& place : places_of(problem, stage, chunk, InFlight::later)) {
    sum += moved_by_groups(problem, place.own);
  }
  return sum;
}

}  // namespace zeroplan
