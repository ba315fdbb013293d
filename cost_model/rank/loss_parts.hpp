#pragma once
// In how many parts of its tokens a rank computes output layer and loss.

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// What is cut. `logits`: all of them exist, the loss reads part by part. `hidden`: they never do;
/// each part passes output layer and loss forward and backward before the next one.
enum class LossCut { logits, hidden };

struct LossParts {
  std::int64_t count = 1;
  LossCut cut = LossCut::hidden;

  bool of_logits() const { return count > 1 && cut == LossCut::logits; }
  bool of_hidden() const { return count > 1 && cut == LossCut::hidden; }
};

/// FSDP2's `loss_chunks`, or as many as default_loss_parts; one part elsewhere.
/// Sources: pytorch/torchtitan components/loss.py @b5bcd76c6, ChunkedLossWrapper, which every
/// training configuration sets since 786e26f8e; chunked_cross_entropy_loss @e23bb707d.
LossParts loss_parts(const Problem& problem);

/// As many as torchtitan's training configurations of the recipe's date ask for.
std::int64_t default_loss_parts(const Problem& problem);

/// Tokens of which torchtitan makes equal parts: those of a rank's micro-batch; of one of its
/// samples before 73aed7f6c.
std::int64_t tokens_in_parts(const Problem& problem);

/// Whether the code can be asked for several parts: since 786e26f8e, and from e23bb707d to
/// bbb1b616e.
bool has_loss_parts(const Problem& problem);

}  // namespace zeroplan
