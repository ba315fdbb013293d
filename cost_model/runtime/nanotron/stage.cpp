// What does a pipeline rank of nanotron hold and run? Front door: nanotron_stage.
#include "cost_model/runtime/nanotron/stage.hpp"

#include "cost_model/program/moments.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/nanotron/layer.hpp"
#include "cost_model/runtime/nanotron/linear.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

class Builder {
 public:
  Builder(const Problem& problem, const WeightInventory& inventory, const Stage& stage)
      : p_(problem), inventory_(inventory), stage_(stage), s_(layer_shape(problem)) {}

  Runs runs() const {
    Runs list;
    const bool starts_with_layer = !stage_.embedding && layer_count(stage_) > 0;
    if (stage_.embedding) list.push_back({folded(embedding())});
    if (starts_with_layer) list.push_back({folded(layer(true))});
    const std::int64_t more = layer_count(stage_) - starts_with_layer;
    if (more > 0) list.push_back({folded(layer(false)), more});
    if (stage_.head) list.push_back({folded(head(), true)});
    return list;
  }

  Block block(BlockKind kind) const {
    return kind == BlockKind::embedding ? embedding()
           : kind == BlockKind::layer   ? layer(false)
                                        : head();
  }

 private:
  Bytes word_gradient() const {
    return Bytes{s_.token.element * local_weight(inventory_.embedding.front(), p_).elements()};
  }
  // On one rank both uses of a tied weight add to one gradient.
  bool tied_here() const { return p_.model.tied_embeddings && stage_.embedding && stage_.head; }

  // The micro-batch is done: its 16-bit gradients have been added in fp32, and what logs keep of it
  // is the next one's (logged).
  void drop_gradients(BlockWriter& w) const {
    const Block plain = layer(false);
    if (stage_.head) w.take(nanotron_gradient, word_gradient());
    for (std::int64_t i = 0; i < layer_count(stage_); ++i) {
      for (const TensorSpec& spec : plain.tensors) {
        if (spec.carried) w.take({spec.name, spec.category}, spec.bytes);
      }
    }
    if (stage_.embedding && !tied_here()) w.take(nanotron_gradient, word_gradient());
  }

  Block embedding() const {
    BlockWriter w(Bytes{}, s_.residual());
    const Tensor ids = w.save("token ids", Bytes{8 * s_.tokens});
    const Tensor whole = w.temporary("embedding before scatter", s_.gathered());
    w.run(Module::embedding);
    w.call("tp", s_.sums(), s_.parts());
    w.allocate(Block::output);
    w.free(whole);
    w.begin_backward();
    w.call("tp", Collective::all_gather, s_.gathered());
    const Tensor gathered = w.temporary("gathered embedding gradient", s_.gathered());
    w.run_backward(Module::embedding);
    if (tied_here()) {
      w.free(w.temporary("embedding table gradient", word_gradient()));
    } else {
      w.put(nanotron_gradient, word_gradient());
    }
    w.free(gathered);
    w.free(ids);
    w.free(Block::output_grad);
    drop_gradients(w);
    return w.finish();
  }

  // `first`: whether it is the first block of a rank without the embedding.
  Block layer(bool first) const {
    BlockWriter w(s_.residual(), s_.residual());
    NanotronLayer layer(s_, inventory_.layer(LayerKind::dense));
    layer.forward(w);
    w.begin_backward();
    layer.backward(w);
    if (first) drop_gradients(w);
    return w.finish();
  }

  Block head() const {
    const std::int64_t logits = s_.tokens * local_weight(inventory_.embedding.front(), p_).rows;
    const Bytes wide{fp32 * logits};
    BlockWriter w(s_.residual(), Bytes{});
    const Tensor statistics = w.save("norm statistics", s_.norm_statistics());
    const Tensor norm = w.save("norm output", s_.residual());
    w.run(Module::final_norm);
    const ColumnInput input = write_column_input(w, s_, norm);
    w.run(Module::output_layer);
    const Tensor narrow = w.temporary("logits", Bytes{s_.token.element * logits});
    const Tensor cast = w.temporary("fp32 logits", wide);
    if (!runs_qwen_class(p_)) w.free(narrow);  // a block of the model gives the fp32 ones
    // The largest logit, the sum of exponentials and the target's (tensor_parallel/
    // functional.py _ShardedCrossEntropy).
    w.call("tp", Collective::all_reduce, Bytes{fp32 * s_.tokens}, 3);
    w.run(Module::loss);
    const Tensor softmax = w.save("fp32 softmax", wide);  // of shifted logits
    w.free(cast);
    if (runs_qwen_class(p_)) w.free(narrow);  // a variable of the model's forward() holds it
    w.free(input.argument);
    w.begin_backward();
    const Tensor wide_gradient = write_loss_gradient(w, softmax, wide);
    const Tensor gradient = w.temporary("logits gradient", Bytes{s_.token.element * logits});
    w.run_backward(Module::loss);
    w.free(wide_gradient);
    w.put(nanotron_gradient, word_gradient());
    const Tensor reduced = write_input_gradient(w, s_, gradient, input.kept);
    w.run_linear_backward(Module::output_layer);
    w.allocate(Block::input_grad);
    w.run_backward(Module::final_norm);
    w.free(reduced);
    w.free(statistics);
    w.free(Block::input);
    if (!stage_.embedding && layer_count(stage_) == 0) drop_gradients(w);
    return w.finish();
  }

  // The softmax, made the gradient in place; z-loss makes it of a copy, to which it adds its own.
  Tensor write_loss_gradient(BlockWriter& w, Tensor softmax, Bytes wide) const {
    if (!p_.runtime.nanotron.z_loss) return softmax;
    const Tensor copy = w.temporary("softmax's copy", wide);
    const Tensor own = w.temporary("z-loss gradient", wide);
    const Tensor sum = w.temporary("fp32 logits gradient", wide);
    for (const Tensor tensor : {copy, own, softmax}) w.free(tensor);
    return sum;
  }

  const Problem& p_;
  const WeightInventory& inventory_;
  const Stage& stage_;
  LayerShape s_;
};

// Cosine and sine of each layer's own RotaryEmbedding, in 16 bits (flash-attn layers/rotary.py).
Bytes rotary_table(const Problem& p) {
  constexpr std::int64_t bf16 = 2;
  return Bytes{bf16 * p.training.sequence_length * p.model.attention.head_dim};
}

// Of the micro-batches before the one that runs; a pass that is repeated logs twice, and its second
// log keeps what its graph begins with.
Bytes logged(const Problem& p, const LayerShape& s, const Stage& stage) {
  if (!logs_attention(p)) return {};
  const bool repeats = p.layout.recompute == Recompute::full;
  const std::int64_t before = micro_batches(p) - 1;
  const Bytes sums{fp32 * s.token.heads * s.tokens};
  const Bytes layer =
      (repeats ? 2 * before + 1 : before) * sums + (repeats ? 2 * before : 0) * s.residual();
  return layer_count(stage) * layer;
}

bool divides_optimizer(const Problem& p) {
  return p.layout.zero == ZeroStage::optimizer;
}

}  // namespace

Runs nanotron_runs(const Problem& problem, const WeightInventory& inventory, const Stage& stage) {
  return Builder(problem, inventory, stage).runs();
}

StageProgram nanotron_frame(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage,
                            const ModelStates& states,
                            const std::vector<Call>& updates) {
  const LayerShape s = layer_shape(problem);
  const Layout& l = problem.layout;
  StageProgram program{.boundary = Bytes{round_up(s.residual().count(), allocation_unit)},
                       .forgets_borders = true};
  ChunkProgram& chunk = program.chunks.emplace_back();
  chunk.receives = !stage.embedding;
  chunk.sends = !stage.head;
  BlockWriter step;
  write_calls(step, updates, During::step);
  if (divides_optimizer(problem) && l.dp > 1) {
    // The updated parts are gathered through flattened copies.
    step.free(
        step.temporary("flattened parameters to gather",
                       2 * states.parameters + Bytes{ceil_div(states.parameters.count(), l.dp)}));
  }
  program.step = step.finish();

  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "fp32 gradient buffer", states.gradients, Category::gradients);
  add_resident(program, "fp32 master parameters", states.master_parameters,
               Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  const bool buckets = !divides_optimizer(problem) && l.dp > 1;
  add_resident(program, "buckets of gradients", buckets ? states.parameters : Bytes{},
               Category::communication_buffers);
  // One for what linears read, one for their gradients (parallel/utils.py MemoryBuffer).
  const std::int64_t gathers = problem.runtime.nanotron.tp_recompute_allgather ? 2 : 1;
  add_resident(program, "gather buffers", gathers * s.gathered(), Category::communication_buffers);
  add_resident(program, "rotary tables", layer_count(stage) * rotary_table(problem),
               Category::workspace);
  add_resident(program, "what waits to be logged", logged(problem, s, stage), Category::workspace);
  add_plain_buffers(program, problem, inventory, stage);
  return program;
}

StageProgram nanotron_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  StageProgram program =
      nanotron_frame(problem, inventory, stage, model_states(problem, inventory, stage),
                     nanotron_update_calls(problem, inventory, stage));
  program.chunks.front().runs = nanotron_runs(problem, inventory, stage);
  return program;
}

std::vector<Call> nanotron_update_calls(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage) {
  ReplicaRecipe recipe = zero_recipe(problem);
  recipe.scatters = false;
  if (!divides_optimizer(problem)) recipe.reduce_bucket = ddp_bucket / recipe.parameter_bytes;
  std::vector<Call> calls = replica_calls(problem, inventory, stage, recipe);
  add_tied_embedding(calls, problem, inventory, stage, recipe.gradient_bytes);
  add_replicated_weights(calls, problem, inventory, stage, recipe.gradient_bytes);
  return calls;
}

Block nanotron_block(const Problem& problem,
                     const WeightInventory& inventory,
                     BlockKind block,
                     LayerKind,
                     RepeatSet policy) {
  Problem p = problem;
  p.layout.recompute = policy == whole_layer ? Recompute::full : Recompute::none;
  const Stage any{.chunks = {{0, 1}}};
  return Builder(p, inventory, any).block(block);
}

Startup nanotron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program) {
  const std::int64_t ranks = divides_optimizer(problem) ? problem.layout.dp : 1;
  Startup startup = plain_startup(problem, inventory, stage, program);
  startup.moments.clear();
  // Moments of each weight, made after activations have been cached: they go where those lay.
  visit_weights(problem, inventory, stage, [&](const std::vector<Weight>& weights) {
    const bool hidden = of_hidden_layer(inventory, weights);
    for (const Weight& w : weights) {
      const std::int64_t part = ceil_div(local_weight(w, problem).elements(), ranks);
      add_moments(startup, problem, w.name, part, hidden && w.columns > 1);
    }
  });
  return startup;
}

}  // namespace zeroplan
