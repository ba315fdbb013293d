#pragma once
// How PyTorch runs the code of a layer operator by operator, or compiled layer by layer: what of a
// forward pass is kept, and what is made again.

#include <functional>

#include "cost_model/program/block.hpp"

namespace zeroplan {

/// What activation checkpointing keeps of a layer: everything; the results of chosen operators
/// (every second matrix product, attention, reductions over tensor parallelism); its input alone.
enum class Checkpoint { none, operators, layer };

/// How the layer's code is written.
struct EagerStyle {
  bool composite_norm = false;  // RMSNorm written out in fp32; else one kernel
  bool centres_norms = false;   // LayerNorm too, which takes the mean off twice
  bool complex_rotary = false;  // rotation as complex products in fp32
  bool wide_rotary = false;     // by cosine and sine in fp32; else in 16 bits
  bool turns_wide = false;      // tables of fp32 widen what they turn, which is narrowed then
  bool norms_turned = false;    // queries and keys that were turned, without weights
  bool repeats_keys = false;    // keys and values copied for each query head
  bool names_keys = false;      // which are still referred to then as they were
  bool fused_qkv = false;       // one projection for queries, keys and values
  bool views_qkv = false;       // of which they stay views
  bool joins_heads = false;     // turned queries lie head by head, and so does what attention gives
  bool relu = false;            // an activation that saves its result alone
  bool gathers_rotary = false;  // each layer keeps the rotary table's rows of its positions
  bool merges_ranges = false;   // ring attention: the merged output is not as its reader needs it
  bool keeps_context = false;   // keys and values of the whole sequence stay, not this rank's
  bool keeps_softmax = false;   // of its scores a router keeps that alone
  bool widens_router = false;   // which runs in fp32, and keeps its input and weight so
  bool widens_routed = false;   // what experts give is weighed in fp32
  bool joins_experts = false;   // one product makes an expert's gate and up
  bool repeats_tokens = false;  // each expert works on all of them
  bool orders_weighed = false;  // what experts give is weighed, and then put in the tokens' order
  bool scores_wide = false;     // by scores in fp32
  bool weighs_rows = false;     // by a product of rows and scores, not of matrices
  bool shared_last = false;     // shared experts run after the routed ones, not before their sum
  bool saves_experts = true;    // a checkpoint by operators counts their products among others
  bool saves_exchanges = true;  // and keeps what all-to-alls of tokens give
  bool saves_reductions = true;   // and what reduce-scatters over tensor parallelism give
  bool compiled = false;          // torch.compile of each layer
  bool keeps_magnitudes = false;  // float8 run eagerly: a checkpoint keeps abs() of inputs, weights
  bool autocast = false;          // weights and residual in fp32, matrix products in 16 bits
  bool spelt_gelu = false;        // GELU by tanh written out, an operator a kernel
  bool weighs_wide = false;       // a composite norm applies its weight before it narrows
  bool joins_sinks = false;       // unfused scores, whose softmax is then not in fp32
  bool narrow_softmax = false;    // nor is that of others
  bool caps = false;              // logits and scores pass through tanh
  bool masks_windows = false;     // a fused kernel is told of a window by a mask
  bool names_embedding = false;   // a variable holds what layers begin with until they have run
  bool adds_masks = false;        // unfused scores have one added
  bool pads_values = false;       // flash-attn's are as wide as queries, and so is its output
  // Over tensor parallelism, tokens being the second dimension: parts that were gathered are
  // joined, and what is reduced is copied into the order of the ranks.
  bool joins_gathered = false, orders_reduced = false;
  bool narrow_gathers = false;   // what linears gather over it travels in 8 bits
  bool sends_in_parts = false;   // and what they send over it beside their products, in parts
  bool exchanges_heads = false;  // Ulysses: context parallelism divides heads in the kernel
  Checkpoint checkpoint = Checkpoint::none;
};

/// Takes the gradient of a weight, `elements` elements, when autograd has made it.
using OnGradient =
    std::function<void(BlockWriter&, std::string_view weight, std::int64_t elements)>;

/// The forward pass of a layer: keeps what autograd saves; or runs under a checkpoint; or makes
/// again in the backward pass what the checkpoint did not keep.
class EagerPass {
 public:
  enum class Keeps { saved, checkpoint, rebuilt };

  /// `cache`: the results that an operator-wise checkpoint keeps, in order.
  EagerPass(BlockWriter& w, Keeps keeps, Checkpoint policy, std::vector<Tensor>& cache)
      : w_(w), keeps_(keeps), by_operator_(policy == Checkpoint::operators), cache_(cache) {}

  BlockWriter& writer() { return w_; }
  bool is_checkpoint() const { return keeps_ == Keeps::checkpoint; }
  bool is_rebuilt() const { return keeps_ == Keeps::rebuilt; }
  bool is_by_operator() const { return by_operator_; }
  /// Whether what an operator-wise checkpoint kept is there again.
  bool reuses() const { return by_operator_ && keeps_ == Keeps::rebuilt; }

  Tensor make(std::string_view name, Bytes bytes);
  /// A result that an operator-wise checkpoint keeps.
  Tensor keep(std::string_view name, Bytes bytes);
  /// A collective whose result it keeps.
  void call(std::string_view group, Collective what, Bytes payload) {
    if (!reuses()) w_.call(group, what, payload);
  }
  /// The result of a matrix product of these linears: it keeps the first, third, fifth, ... of a
  /// layer.
  Tensor multiply(std::initializer_list<Module> linears, std::string_view name, Bytes bytes);
  /// Runs modules of which it keeps the result.
  void run_kept(std::initializer_list<Module> modules) {
    if (!reuses()) w_.run(modules);
  }
  /// The code of the layer is done with it: gone, unless autograd or the checkpoint keeps it.
  void done(Tensor& tensor) {
    if (!is_checkpoint()) return;
    drop(tensor);
    tensor = BlockWriter::none;
  }
  void done(std::vector<Tensor>& tensors) {
    for (Tensor& tensor : tensors) done(tensor);
  }
  /// The last reference goes, apart from the checkpoint's.
  void drop(Tensor tensor);
  void drop(const std::vector<Tensor>& tensors) {
    for (const Tensor tensor : tensors) drop(tensor);
  }

 private:
  BlockWriter& w_;
  Keeps keeps_;
  bool by_operator_;
  std::vector<Tensor>& cache_;
  std::size_t used_ = 0;  // of the cache, when rebuilding
  std::int64_t products_ = 0;
};

}  // namespace zeroplan
