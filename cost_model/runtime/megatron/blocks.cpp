// Which blocks does a rank of Megatron-Core run? Front doors: megatron_blocks, MegatronBlockCache.
#include "cost_model/runtime/megatron/blocks.hpp"

#include "cost_model/runtime/megatron/ends.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/mtp.hpp"
#include "cost_model/runtime/megatron/offload.hpp"

namespace zeroplan {
namespace {

// Less than 1 KB each, without their events.
constexpr std::size_t most_known = 3'000;

enum class Part {
  embedding,
  gathering_embedding,  // of all gradients of its table
  tied_embedding,
  head,
  tied_head,
  mtp_input,
  waiting_mtp_input,
  gathering_mtp_input,
  mtp_head,
  passed_on,
  kept_layer,
  recomputed_layer,
  offloaded_layer
};

// What a block reads beside its part and what recompute drops of it.
using BlockInputs = Inputs<&Layout::tp,
                           &Layout::cp,
                           &Layout::etp,
                           &Layout::micro_batch,
                           &Layout::sequence_parallel,
                           &TrainingSpec::sequence_length,
                           &TrainingSpec::precision,
                           &TrainingSpec::attention>;

// A pipeline, where it is one, of two stages: all that DeepSpeed asks to know whose layers run.
std::int64_t whose_layers(const Problem& problem) {
  return runs_megatron_layers(problem) ? 2 : 1;
}

// What selective recompute drops of a layer of this kind.
RepeatSet dropped(const Problem& problem, LayerKind kind) {
  using enum RecomputeModule;
  const RepeatSet of_attention =
      is_linear(kind) ? bit_of(gdn_norm_out) : bit_of(core_attn) | bit_of(mla_up_proj);
  const RepeatSet of_feed_forward =
      has_experts(kind) ? bit_of(moe_act) | bit_of(moe) | bit_of(shared_experts) : bit_of(mlp);
  return repeats(problem) & (bit_of(layernorm) | of_attention | of_feed_forward);
}

}  // namespace

// What the cache knows of one problem, and makes where it does not.
class MegatronBlockCache::Of {
 public:
  Of(MegatronBlockCache& cache, const Problem& problem)
      : cache_(cache), problem_(problem), inputs_(problem) {
    if (cache.known_.size() > most_known) cache.known_.clear();
    if (cache.only_) return;
    cache.only_ = std::make_shared<OnlyFor>(question_of(problem));
    cache.kinds_ = used_kinds(problem.model);
  }

  ByKind<MegatronLayer> layers() const {
    const bool full = problem_.layout.recompute == Recompute::full;
    const bool to_host = offloaded_layers(problem_) > 0;
    ByKind<MegatronLayer> made;
    for (const LayerKind kind : cache_.kinds_) {
      MegatronLayer& blocks = made[kind];
      const RepeatSet set = dropped(problem_, kind);
      const auto layer = [kind, set](const Problem& p) { return megatron_layer(p, kind, set); };
      blocks.kept = block_of(Part::kept_layer, kind, set, layer);
      if (to_host) {
        const auto moved = [layer](const Problem& p) { return with_saved_on_host(layer(p)); };
        blocks.offloaded = block_of(Part::offloaded_layer, kind, set, moved);
      }
      if (!full) continue;
      const auto again = [kind](const Problem& p) { return megatron_recomputed_layers(p, {kind}); };
      blocks.recomputed = block_of(Part::recomputed_layer, kind, 0, again);
    }
    return made;
  }

  MegatronBlocks all() const {
    MegatronBlocks made{.layers = layers()};
    const HandedGradient handed = handed_by_tied_head(problem_);
    const bool tied = handed != HandedGradient::nothing;
    const bool gathers = embedding_gathers(problem_);  // of tied tables too, which have one stage
    const Part embedding = tied      ? Part::tied_embedding
                           : gathers ? Part::gathering_embedding
                                     : Part::embedding;
    made.embedding = block(embedding, [handed, gathers](const Problem& p) {
      return megatron_embedding(p, handed, gathers);
    });
    made.head = block(tied ? Part::tied_head : Part::head,
                      [handed](const Problem& p) { return megatron_head(p, handed); });
    if (trained_mtp_modules(problem_) > 0) {
      const auto add_input = [&](TableGradient table, Part part) {
        made.mtp_inputs[static_cast<std::size_t>(table)] =
            block(part, [table](const Problem& p) { return megatron_mtp_input(p, table); });
      };
      add_input(TableGradient::alone, Part::mtp_input);
      add_input(TableGradient::waits, Part::waiting_mtp_input);
      add_input(TableGradient::gathers, Part::gathering_mtp_input);
      made.mtp_head = block(Part::mtp_head, megatron_mtp_head);
    }
    if (problem_.runtime.megatron.pipeline_model_parallel_layout.given()) {
      made.passed_on = block(Part::passed_on, megatron_passed_on);
    }
    return made;
  }

 private:
  template <class Write>
  std::shared_ptr<const FoldedBlock> block_of(Part part,
                                              LayerKind kind,
                                              RepeatSet dropped,
                                              Write&& write) const {
    const std::int64_t ep = has_experts(kind) ? counted_expert_ranks(problem_) : 1;
    const std::int64_t place = std::ssize(all_layer_kinds) * static_cast<std::int64_t>(part) +
                               static_cast<std::int64_t>(kind);
    const auto [found, added] = cache_.known_.try_emplace(inputs_.with(place, dropped, ep));
    if (added) {
      const bool ends = part == Part::head || part == Part::tied_head || part == Part::mtp_head;
      const auto again = [only = cache_.only_, inputs = inputs_, ep, pp = whose_layers(problem_),
                          write] { return write((*only)(inputs, {.pp = pp, .ep = ep})); };
      found->second = std::make_shared<const FoldedBlock>(again, ends);
    }
    return found->second;
  }
  template <class Write>
  std::shared_ptr<const FoldedBlock> block(Part part, Write&& write) const {
    return block_of(part, LayerKind::dense, 0, write);
  }

  MegatronBlockCache& cache_;
  const Problem& problem_;
  const BlockInputs inputs_;
};

MegatronBlocks MegatronBlockCache::find_or_make(const Problem& problem) {
  return Of(*this, problem).all();
}

ByKind<MegatronLayer> MegatronBlockCache::layers(const Problem& problem) {
  return Of(*this, problem).layers();
}

MegatronBlocks megatron_blocks(const Problem& problem) {
  return MegatronBlockCache().find_or_make(problem);
}

Block megatron_block(const Problem& problem,
                     const WeightInventory&,
                     BlockKind block,
                     LayerKind layer,
                     RepeatSet repeated) {
  switch (block) {
    case BlockKind::embedding:
      return megatron_embedding(problem, handed_by_tied_head(problem), embedding_gathers(problem));
    case BlockKind::layer:
      return repeated == whole_layer ? megatron_recomputed_layers(problem, {layer})
                                     : megatron_layer(problem, layer, repeated);
    case BlockKind::mtp_input:
      return megatron_mtp_input(problem);
    case BlockKind::head:
      break;
  }
  return megatron_head(problem, handed_by_tied_head(problem));
}

}  // namespace zeroplan
