// What does an FSDP2 unit allocate around its computation? Front door: fsdp2_unit.
#include "cost_model/runtime/fsdp2/unit.hpp"

#include <algorithm>

#include "cost_model/question/units.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

// What is gathered of both, but reduced of the first alone.
Fsdp2Unit gathered_with(Fsdp2Unit a, const Fsdp2Unit& b) {
  a.parameters.insert(a.parameters.end(), b.parameters.begin(), b.parameters.end());
  a.cast += b.cast;
  a.cast_alone = std::max(a.cast_alone, b.cast_alone);
  a.gathered += b.gathered;
  for (std::size_t i = 0; i < a.shares.size(); ++i) a.shares[i].gathered += b.shares[i].gathered;
  return a;
}

Fsdp2Unit merged(const Fsdp2Unit& first, const Fsdp2Unit& b) {
  Fsdp2Unit a = gathered_with(first, b);
  for (std::size_t i = 0; i < a.shares.size(); ++i) {
    a.shares[i].reduce_input += b.shares[i].reduce_input;
    a.shares[i].reduced += b.shares[i].reduced;
  }
  a.accumulated += b.accumulated;
  a.cut += b.cut;
  a.reduce_input += b.reduce_input;
  a.held_input += b.held_input;
  a.reduced += b.reduced;
  a.gradient += b.gradient;
  return a;
}

// The reduction's output is the gradient itself unless formats differ.
Bytes output_beside_gradient(const Fsdp2Unit& unit, GradientShard shard) {
  const bool cast = unit.reduced != unit.gradient;
  return cast || shard == GradientShard::is_added ? unit.reduced : Bytes{};
}

}  // namespace

Fsdp2Unit fsdp2_unit(const Problem& problem,
                     std::span<const Weight> weights,
                     bool linears_in_8_bits,
                     const ShardWidths& widths) {
  const Fsdp2Settings& set = problem.runtime.fsdp2;
  const std::int64_t reduced = reduced_bytes(problem);
  Fsdp2Unit unit;
  unit.replicated = problem.layout.hsdp > 0;
  unit.shares[0].group = unit.replicated ? "shard" : "dp";
  unit.shares[1].group = "expert-dp";
  for (const Weight& weight : weights) {
    const LocalWeight local = local_weight(weight, problem);
    const std::int64_t ranks = weight.expert ? widths.expert : widths.dense;
    const bool narrow = linears_in_8_bits && is_linear_in_8_bits(weight);
    const std::int64_t element = narrow ? 1 : set.mixed_precision_bytes;
    const std::int64_t shard = first_dimension_shard(problem, local, ranks);
    // A view of what every rank's padded part was copied into
    // (_fsdp_param.py init_all_gather_outputs, init_unsharded_param).
    const Bytes gathered{element * shard * ranks};
    unit.parameters.push_back({weight.name, gathered, Category::communication_buffers});
    // One rank's are copied from their own cast, one after the other (FSDPParamGroup.unshard,
    // wait_for_unshard).
    if (ranks == 1) {
      const bool casts = element != set.parameter_bytes;
      unit.cast_alone = std::max(unit.cast_alone, casts ? gathered : Bytes{});
    } else {
      unit.cast += Bytes{element * shard};
      unit.gathered += gathered;
    }
    Fsdp2Share& share = unit.shares[weight.expert ? 1 : 0];
    share.gathered += gathered;
    share.reduce_input += Bytes{reduced * shard * ranks};
    share.reduced += Bytes{reduced * shard};
    unit.accumulated += Bytes{reduced * local.elements()};
    unit.cut = unit.accumulated;
    const Bytes input{reduced * shard * ranks};
    unit.reduce_input += input;
    if (!weight.expert || !wraps_experts_apart(problem)) unit.held_input += input;
    unit.reduced += Bytes{reduced * shard};
    unit.gradient += Bytes{set.parameter_bytes * shard};
    unit.largest = std::max(unit.largest, Bytes{set.parameter_bytes * shard * ranks});
  }
  return unit;
}

Fsdp2Units fsdp2_units(const Problem& p,
                       const WeightInventory& inventory,
                       const ShardWidths& widths) {
  const bool narrow = gathers_in_8_bits(p);
  const auto unit = [&](std::span<const Weight> weights, bool linears_in_8_bits) {
    return fsdp2_unit(p, weights, linears_in_8_bits, widths);
  };
  std::vector<Weight> head = inventory.head;
  if (!joins_ends(p)) {
    head.insert(head.end(), inventory.tied_head.begin(), inventory.tied_head.end());
  }
  Fsdp2Units units{.embedding = unit(inventory.embedding, false),
                   .head = unit(head, false),
                   .output = unit(output_weights(inventory), false),
                   .before_output = unit(weights_before_output(inventory), false)};
  if (fsdp2_recipe(p).whole_embedding_gradient) {
    const Weight& words = inventory.embedding.front();
    units.embedding.accumulated +=
        Bytes{reduced_bytes(p) * (words.elements() - local_weight(words, p).elements())};
  }
  for (const LayerKind kind : all_layer_kinds) {
    if (!inventory.has(kind)) continue;
    units.layers[kind] = unit(inventory.layer(kind), narrow);
    units.layers[kind].ends_in_norm = true;
  }
  units.ends = merged(units.embedding, units.head);
  if (unties_ends(p)) {
    const Fsdp2Unit output = unit(inventory.tied_head, false);
    // A loss in parts reduces the output layer by itself.
    const bool apart = loss_parts(p).of_hidden();
    units.ends = apart ? gathered_with(units.ends, output) : merged(units.ends, output);
  }
  return units;
}

void write_unshard(BlockWriter& w, const Fsdp2Unit& unit, During during) {
  const Tensor cast =
      w.allocate("cast shard", unit.cast, Category::communication_buffers, Stream::gather);
  w.put(fsdp2_gathered, unit.gathered);
  for (const Fsdp2Share& share : unit.shares) {
    w.call({share.group, Collective::all_gather, during, share.gathered});
  }
  w.free(cast);
}

std::vector<Tensor> write_copy_out(BlockWriter& w, const Fsdp2Unit& unit) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& p : unit.parameters) {
    tensors.push_back(w.allocate(p.name, p.bytes, p.category));
  }
  w.free(w.temporary("cast parameter", unit.cast_alone));
  return tensors;
}

Bytes held_replica_sum(const Fsdp2Unit& unit, GradientShard shard, const Fsdp2Recipe& recipe) {
  return recipe.holds_replica_sum ? output_beside_gradient(unit, shard) : Bytes{};
}

void write_reduce(BlockWriter& w,
                  const Fsdp2Unit& unit,
                  Bytes held,
                  GradientShard shard,
                  const Fsdp2Recipe& recipe,
                  const Fsdp2Gradients& gradients,
                  During during) {
  const auto free = [](const std::function<void()>& those) {
    if (those) those();
  };
  Tensor input = BlockWriter::none;
  if (recipe.reduces_on_own_stream) {
    input = w.allocate(fsdp2_reduce_input.name, unit.reduce_input, fsdp2_reduce_input.category,
                       Stream::reduce);
  } else {
    w.take(fsdp2_reduce_input, held);
    w.put(fsdp2_reduce_input, unit.held_input);
    input = w.allocate(fsdp2_reduce_input.name, unit.reduce_input - unit.held_input,
                       fsdp2_reduce_input.category);
  }
  free(gradients.free_first);
  if (!recipe.holds_last_gradient) free(gradients.free_last);
  Tensor output = BlockWriter::none;
  if (recipe.holds_replica_sum) {
    w.put(fsdp2_replica_sum, held_replica_sum(unit, shard, recipe));
  } else {
    output = w.allocate("reduce-scatter output", output_beside_gradient(unit, shard),
                        Category::gradients, Stream::reduce);
  }
  for (const Fsdp2Share& share : unit.shares) {
    w.call({share.group, Collective::reduce_scatter, during, share.reduce_input});
    if (!unit.replicated) continue;
    w.call({"replica", Collective::all_reduce, during, share.reduced});
  }
  if (shard == GradientShard::is_new) w.put(fsdp2_shard_gradient, unit.gradient);
  if (recipe.holds_last_gradient) free(gradients.free_last);
  w.free(output);
  w.free(input);
}

}  // namespace zeroplan
