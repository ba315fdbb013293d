#pragma once
// What ranks of FSDP2 need, in bytes: sums of remembered pieces instead of programs.

#include <map>
#include <optional>

#include "cost_model/program/in_flight_cache.hpp"
#include "cost_model/program/peak_bytes.hpp"
#include "cost_model/runtime/fsdp2/rank.hpp"

namespace zeroplan {

/// What ranks of one model on FSDP2 with its settings need. Not for use by several threads at once.
class Fsdp2PeakBytes final : public PeakBytes {
 public:
  explicit Fsdp2PeakBytes(const WeightInventory& inventory) : inventory_(inventory) {}

  /// The bytes of the highest moment that fold_step finds in fsdp2_stage, of rank `rank`, which
  /// holds `stage` with `states`. Empty where only the fold tells.
  std::optional<Bytes> highest(const Problem& problem,
                               const Stage& stage,
                               std::int64_t rank,
                               const ModelStates& states) override;

  /// What `highest` is never below. What is gathered stays until the backward pass. Of a pipeline
  /// the gradients that wait to be reduced are there in the end, and what is gathered until then;
  /// else until the last backward pass: of them without what shards are padded by, so that it is
  /// alike however they are cut.
  LeastBytes at_least(const Problem& problem,
                      const Stage& stage,
                      std::int64_t rank,
                      const ModelStates& states) override;

  std::optional<std::vector<Call>> update_calls(const Problem& problem,
                                                const Stage& stage) override;

 private:
  // A block, or what is written at the end of a step.
  template <class Sizes>
  struct Piece {
    Sizes bytes;
    std::vector<Call> calls;  // in groups that hold states
  };
  using StepPiece = Piece<PassBytes>;

  // The blocks of one kind of chunk and micro-batch.
  struct Chunk {
    std::vector<Fsdp2Link> links;
    Bytes gathered;     // parameters that stay so from the forward pass of their layers on
    Bytes accumulated;  // gradients that wait for the end of the step
    std::optional<ChunkBytes> bytes;  // where they were asked for
  };

  // What one rank's chunks hold, whatever its tokens and its states are.
  struct Held {
    Bytes gathered, accumulated;
  };

  // What ranks have in common that hold equal units and work on as many tokens.
  struct Pieces {
    Fsdp2Units units;
    std::map<decltype(std::declval<Fsdp2Place>().key()), Piece<BlockBytes>> blocks;
    std::map<decltype(std::declval<Fsdp2StepPart>().key()), StepPiece> step;
    std::unordered_map<Numbers<7>, Chunk, NumbersHash> chunks;
    std::unordered_map<Numbers<8>, Held, NumbersHash> held;
  };
  using PiecesKey = Numbers<14>;

  Pieces& pieces(const Problem& problem, MicroBatch micro_batch, bool has_head);
  // The pieces of units that nothing divides.
  Pieces& whole_pieces(const Problem& problem, bool has_head);
  // A chunk's links and their sums.
  Chunk& chunk(Pieces& known,
               const Problem& problem,
               const LayerRange& range,
               const ChunkProgram& place);
  // A chunk with its bytes.
  const Chunk& weighed_chunk(const Problem& problem,
                             const LayerRange& range,
                             const ChunkProgram& place,
                             MicroBatch micro_batch);

  // The calls of an update, in groups that hold states.
  struct UpdateCalls {
    std::vector<Call> of_later;  // of one micro-batch between
    std::vector<Call> of_step;   // of the first one, a last that differs, and what ends the step
  };
  UpdateCalls find_update_calls(const Problem& problem, const Stage& stage);

  // What the chunks of `stage` hold on rank `index`; `known`: whole_pieces of the stage.
  const Held& held(Pieces& known, const Problem& problem, const Stage& stage, std::int64_t index);

  template <class Write>
  static const StepPiece& step_piece(Pieces& known, const Fsdp2StepPart& part, const Write& write);

  const WeightInventory& inventory_;
  std::unordered_map<PiecesKey, Pieces, NumbersHash> pieces_;
  std::unordered_map<Numbers<17>, UpdateCalls, NumbersHash> update_calls_;
  InFlightCache in_flight_;
};

}  // namespace zeroplan
