// Are output layer and loss computed at once? Front door: loss_parts.
#include "cost_model/rank/loss_parts.hpp"

namespace zeroplan {
namespace {

// Days from which a change is in, by torchtitan commit.
constexpr std::int64_t logits_in_parts = 20250324;  // e23bb707d
constexpr std::int64_t logits_whole = 20250402;     // bbb1b616e
constexpr std::int64_t hidden_in_parts = 20260427;  // 786e26f8e
constexpr std::int64_t samples_joined = 20260820;   // 73aed7f6c
constexpr std::int64_t default_parts = 8;

bool titan(const Problem& p) {
  return p.runtime.fsdp2.layers == LayerCode::torchtitan;
}

bool cuts_hidden(const Problem& p) {
  return titan(p) && p.runtime.fsdp2.recipe_date >= hidden_in_parts;
}

}  // namespace

LossParts loss_parts(const Problem& problem) {
  if (!titan(problem)) return {};
  const std::int64_t asked = problem.runtime.fsdp2.loss_chunks;
  return {.count = asked > 0 ? asked : default_loss_parts(problem),
          .cut = cuts_hidden(problem) ? LossCut::hidden : LossCut::logits};
}

std::int64_t default_loss_parts(const Problem& problem) {
  return cuts_hidden(problem) ? default_parts : 1;
}

std::int64_t tokens_in_parts(const Problem& problem) {
  const bool joined = problem.runtime.fsdp2.recipe_date >= samples_joined;
  return joined ? local_tokens(problem) : local_tokens(problem) / problem.layout.micro_batch;
}

bool has_loss_parts(const Problem& problem) {
  const std::int64_t date = problem.runtime.fsdp2.recipe_date;
  return cuts_hidden(problem) || (titan(problem) && date >= logits_in_parts && date < logits_whole);
}

}  // namespace zeroplan
