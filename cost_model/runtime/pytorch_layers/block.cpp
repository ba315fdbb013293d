// What does one block of a decoder allocate under plain PyTorch? Front door: EagerBlockWriter.
#include "cost_model/runtime/pytorch_layers/block.hpp"

#include <algorithm>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/spelt_traffic.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {

namespace {

constexpr Carried masks{"masks", Category::activations};
constexpr Carried embedded{"output of the embedding", Category::activations};

// PyTorch's input gradient retains the graph for the weight gradients: whatever the forward pass
// saved stays until then. Source: pytorch torch/distributed/pipelining/_backward.py,
// stage_backward_input.
Block with_graph(Block block) {
  for (Event& event : block.backward) {
    if (!event.frees()) continue;
    const TensorSpec& spec = block.tensors[static_cast<std::size_t>(event.index)];
    event.of_weights |= spec.category == Category::activations;
  }
  return block;
}

}  // namespace

EagerLink layer_link(const ModelSpec& model, std::int64_t layer, Checkpoint checkpoint) {
  return {EagerLink::Kind::layer, kind_of(model, layer), checkpoint, is_windowed(model, layer)};
}

EagerCode huggingface_code(const Problem& problem, bool autocast) {
  const std::string_view family = problem.model.family;
  const auto is_any_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, family) != names.end();
  };
  // The wrapper of SDPA leaves grouped keys and values to the kernel where it has no mask.
  const bool unfused = problem.training.attention == AttentionKernel::unfused;
  const bool is_deepseek =
      is_any_of({"deepseek_v2", "deepseek_v3", "glm4_moe", "glm4_moe_lite", "kimi_k2"});
  const bool routes_wide =
      is_deepseek || is_any_of({"dots1", "exaone_moe", "hy_v3", "nemotron_h", "solar_open"});
  const bool turns_part = is_any_of(
      {"bamba", "glm", "glm4", "gpt_neox", "minimax_m2", "nemotron", "phi", "phi3", "stablelm"});
  const bool full_precision = problem.training.precision == Precision::fp32;
  const bool mixes = is_any_of({"gpt2", "gpt_neox", "phi3"});
  const bool is_llama4 = is_any_of({"llama4_text"});
  const bool is_olmo = is_any_of({"flex_olmo", "olmo2", "olmo3"});
  const bool is_cohere = is_any_of({"cohere", "cohere2"});
  const bool turns_wide = is_olmo || is_cohere || is_any_of({"ernie4_5", "ernie4_5_moe"});
  const bool is_hybrid = is_any_of({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"});
  return {
      .style = {.composite_norm = true,
                .centres_norms = is_cohere,
                .complex_rotary = is_llama4,
                .turns_wide = autocast || (turns_wide && !full_precision),
                .norms_turned = problem.model.attention.plain_qk_norm,
                .repeats_keys = unfused,
                .names_keys = true,
                // query_key_value, c_attn, qkv_proj.
                .fused_qkv = mixes,
                .views_qkv = mixes,
                // Turned by a part of their features, which is put before the rest.
                .joins_heads = is_deepseek || turns_part || is_hybrid,
                .relu = is_any_of({"opt"}),
                .keeps_softmax = is_hybrid || is_any_of({"mixtral", "qwen2_moe", "qwen3_moe"}),
                .widens_router =
                    (routes_wide || is_any_of({"ernie4_5_moe"})) && !autocast && !full_precision,
                .joins_experts = true,
                .repeats_tokens = repeats_tokens(problem),
                .orders_weighed = true,
                .scores_wide = routes_wide || is_any_of({"afmoe", "minimax_m2"}),
                .shared_last = routes_wide || is_any_of({"granitemoehybrid", "granitemoeshared"}),
                .autocast = autocast,
                .spelt_gelu = spells_gelu(problem.model),
                .weighs_wide = is_olmo || is_hybrid ||
                               is_any_of({"afmoe", "gemma", "gemma2", "gemma3_text", "gpt_oss",
                                          "helium", "nemotron_h"}),
                .joins_sinks = is_any_of({"gpt_oss"}),
                .narrow_softmax = is_llama4,
                .caps = is_any_of({"gemma2"}),
                .masks_windows = masks_windows(problem),
                .names_embedding = true,
                .adds_masks = unfused,
                .pads_values =
                    !unfused && problem.model.attention.mla &&
                    problem.runtime.attn_implementation == AttnImplementation::flash_attention_2},
      .loss = LossCode::plain};
}

Block eager_block(const Problem& problem,
                  const WeightInventory& inventory,
                  const EagerCode& code,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy) {
  const Checkpoint checkpoint = policy == whole_layer     ? Checkpoint::layer
                                : policy == titan_repeats ? Checkpoint::operators
                                                          : Checkpoint::none;
  return EagerBlockWriter(problem, inventory, code, {block, layer, checkpoint}).write();
}

EagerBlockWriter::EagerBlockWriter(const Problem& problem,
                                   const WeightInventory& inventory,
                                   const EagerCode& code,
                                   const EagerLink& link)
    : p_(problem),
      inventory_(inventory),
      code_(code),
      link_(link),
      shape_(layer_shape(problem)),
      w_(link.kind == EagerLink::Kind::embedding ? Bytes{} : eager({}).residual(),
         link.kind == EagerLink::Kind::head ? Bytes{} : eager({}).residual()) {}

Block EagerBlockWriter::write() {
  switch (link_.kind) {
    case EagerLink::Kind::embedding:
      write_embedding();
      break;
    case EagerLink::Kind::layer:
      write_layer();
      break;
    case EagerLink::Kind::head:
      write_head();
      break;
    case EagerLink::Kind::mtp_input:  // it trains none
      break;
  }
  return with_graph(w_.finish());
}

void EagerBlockWriter::on_gradient(std::string_view weight, std::int64_t elements) {
  on_part_gradient(weight, elements);
}

void EagerBlockWriter::on_part_gradient(std::string_view weight, std::int64_t elements) {
  w_.free(w_.temporary(weight, Bytes{shape_.token.element * elements}));
}

void EagerBlockWriter::weight_gradient(std::string_view weight, std::int64_t elements) {
  const BlockWriter::WeightEvents of_weights(w_);
  on_gradient(weight, elements);
}

std::int64_t EagerBlockWriter::word_elements() const {
  return local_weight(inventory_.embedding.front(), p_).elements();
}

EagerShape EagerBlockWriter::eager(const std::vector<Weight>& weights) const {
  EagerStyle style = code_.style;
  style.checkpoint = link_.checkpoint;
  style.masks_windows &= link_.windowed;
  style.repeats_keys |= style.masks_windows;
  return {shape_, style, weights};
}

// Products of embedding and head stay in 16 bits, and are not compiled with what they send.
EagerShape EagerBlockWriter::eager_end(const std::vector<Weight>& weights) const {
  EagerShape shape = eager(weights);
  shape.style.narrow_gathers = false;
  shape.style.sends_in_parts = false;
  return shape;
}

// What the model makes of masks before its layers. Of truths one for all samples, where a fused
// kernel is told of a window; of what is added to scores one for each sample, of either sort of
// layer. Those of a pipeline's stages are not counted.
Bytes EagerBlockWriter::mask() const {
  const EagerStyle& style = code_.style;
  const std::int64_t sequence = p_.training.sequence_length;
  if (p_.layout.pp > 1) return {};
  if (!style.adds_masks) return Bytes{style.masks_windows ? sequence * sequence : 0};
  const std::int64_t windowed = p_.model.attention.windowed_layers;
  const std::int64_t sorts = (windowed > 0) + (windowed < p_.model.layers);
  const std::int64_t element = style.autocast ? 4 : shape_.token.element;
  return Bytes{sorts * element * mask_elements(p_)};
}

// What a variable of the model's forward pass keeps of the embedding that nothing else does: no
// norm as its input, no checkpoint. That of a pipeline's stage is not counted.
Bytes EagerBlockWriter::named_embedding() const {
  const EagerShape shape = eager_end(inventory_.embedding);
  const bool kept = keeps_norm_input(shape) || p_.layout.recompute != Recompute::none;
  const bool named = shape.style.names_embedding && p_.layout.pp == 1 && !kept;
  return named ? shape.residual() : Bytes{};
}

void EagerBlockWriter::write_embedding() {
  before_forward();
  const Tensor whole = w_.temporary("embedding before scatter", shape_.gathered());
  w_.run(Module::embedding);
  const EagerShape shape = eager_end(inventory_.embedding);
  send_parts(w_, shape);
  const bool copies = shape.style.joins_gathered && shape.sequence_parallel();
  if (copies) w_.run(Module::rank_order);
  const Tensor ordered = write_rank_order(w_, shape);
  w_.allocate(Block::output);
  w_.free(ordered);
  w_.free(whole);
  w_.put(masks, mask());
  w_.put(embedded, named_embedding());
  after_forward();

  w_.begin_backward();
  if (link_.keeps_mask) w_.take(masks, mask());
  before_backward();
  const Tensor gathered = write_gathered_gradient(w_, shape, "gathered embedding gradient");
  if (copies) w_.run_backward(Module::rank_order);
  w_.run_backward(Module::embedding);
  weight_gradient("embed_tokens", word_elements());
  w_.free(gathered);
  w_.free(Block::output_grad);
  after_backward();
  const EagerHead head(eager_end(inventory_.head), code_.loss, code_.loss_parts);
  if (head.held_logits() > Bytes{}) w_.take(kept_logits, head.held_logits());
}

void EagerBlockWriter::write_layer() {
  EagerLayer layer(eager(inventory_.layer(link_.layer)), link_.layer);
  before_forward();
  layer.forward(w_);
  after_forward();

  w_.begin_backward();
  before_backward();
  layer.backward(w_, [this](BlockWriter&, std::string_view weight, std::int64_t elements) {
    weight_gradient(weight, elements);
  });
  after_backward();
}

void EagerBlockWriter::write_head() {
  EagerShape shape = eager_end(inventory_.head);
  shape.style.compiled = false;  // layers alone are compiled, and the loss
  EagerHead head(std::move(shape), code_.loss, code_.loss_parts);
  if (!link_.keeps_mask) w_.take(masks, mask());
  w_.take(embedded, named_embedding());
  before_forward();
  head.forward(w_);
  after_forward();
  head.loss_forward(w_, [this](BlockWriter&, std::string_view weight, std::int64_t elements) {
    on_part_gradient(weight, elements);
  });
  after_loss();

  w_.begin_backward();
  before_loss_backward();
  head.loss_backward(w_);
  before_backward();
  head.output_layer_backward(w_,
                             [this](BlockWriter&, std::string_view weight, std::int64_t elements) {
                               weight_gradient(weight, elements);
                             });
  after_output_layer_backward();
  head.norm_backward(w_);
  after_backward();
}

}  // namespace zeroplan
