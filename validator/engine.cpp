// What does a rank do in a step? Front door: Engine::step.
#include "validator/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/program/schedule.hpp"
#include "cost_model/rank/stages.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan::engine {
namespace {

// What cuBLASLt is given on recent GPUs; the host's blocks fit too.
constexpr std::int64_t workspace_bytes = 32 * mebi;

// Refuses attention that the workspace cannot hold, before anything is allocated.
void check_attention(const Rank& rank) {
  const AttentionShape& s = rank.shape.attention;
  constexpr auto number = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t bytes = number * rank.device().attention_scratch(s);
  if (bytes <= workspace_bytes) return;
  throw EnvironmentError(
      fmt::format("{} x {} tokens and {} heads a rank: attention would take {} bytes of the "
                  "engine's workspace of {}; a shorter --seq, a smaller --micro-batch or a larger "
                  "--tp would do",
                  s.samples, s.sequence, s.heads, bytes, workspace_bytes));
}

// Micro-batches between their forward and their backward pass, at most.
std::int64_t most_in_flight(const std::vector<Pass>& order) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Pass& pass : order) {
    now += pass.kind == PassKind::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

Engine::Engine(const Problem& problem, const Place& place, const Rank& rank, SampleSource samples)
    : problem_(problem),
      place_(place),
      rank_(rank),
      samples_(std::move(samples)),
      order_(zeroplan::passes(problem, place.pp, micro_batches(problem))) {
  check_attention(rank);
  workspace_ = rank.memory.make<float>("workspace", Category::workspace,
                                       workspace_bytes / static_cast<std::int64_t>(sizeof(float)));
  rank.device().use_workspace(workspace_);
  const Stage stage = stages(problem)[static_cast<std::size_t>(place.pp)];
  if (stage.embedding) embedding_.emplace(rank, problem.model.layers);
  for (std::int64_t i = stage.chunks.front().first; i < stage.chunks.front().last; ++i) {
    layers_.push_back(std::make_unique<Layer>(rank, i));
  }
  if (stage.head) {
    head_.emplace(rank, problem.model.layers, embedding_ ? &embedding_->words() : nullptr);
  }
  make_pipeline_buffers();
  make_constant_buffers();
  if (rank.set.prefetch) {
    std::vector<DividedUnit*> all = units();
    if (head_ && head_->copy() != nullptr) all.pop_back();  // read beside the head's own
    for (std::size_t i = 1; i < all.size(); ++i) {
      all[i - 1]->prefetch(Way::forward, *all[i]);
      all[i]->prefetch(Way::backward, *all[i - 1]);
    }
  }
  if (rank.set.overlap_comm && rank.zero >= ZeroStage::gradients) {
    for (DividedUnit* unit : units()) unit->travel(travelling_);
  }
}

// Makes the buffers that settings ask for: checkpoints (MD), and a bucket of gradients (MD, CB).
void Engine::make_constant_buffers() {
  const ZeroplanSettings& set = rank_.set;
  constexpr std::int64_t aligned = Ledger::alignment / static_cast<std::int64_t>(sizeof(Bf16));
  if (set.contiguous_memory_optimization && rank_.shape.recompute) {
    const std::int64_t each = most_in_flight(order_);
    const auto count = static_cast<std::int64_t>(layers_.size());
    checkpoints_ =
        rank_.memory.make<Bf16>("contiguous checkpoints", Category::activations, count * each,
                                round_up(Checkpoint::elements(rank_), aligned));
    for (std::int64_t i = 0; i < count; ++i) {
      layers_[static_cast<std::size_t>(i)]->use_slots(checkpoints_.view().part(i * each, each));
    }
  }
  if (rank_.zero < ZeroStage::gradients) return;
  std::int64_t elements = 0;
  for (const DividedUnit* unit : units()) elements = std::max(elements, unit->elements());
  if (set.constant_buffers()) elements = rank_.constant_bucket();
  if (!set.constant_buffers() && !set.contiguous_memory_optimization) return;
  bucket_ =
      rank_.memory.make<Bf16>("bucket of gradients", Category::communication_buffers, elements);
  for (DividedUnit* unit : units()) unit->use_bucket(bucket_);
}

void Engine::make_pipeline_buffers() {
  const auto buffer = [&](std::string_view name) {
    return rank_.memory.make<Bf16>(name, Category::communication_buffers, rank_.rows(),
                                   rank_.shape.hidden);
  };
  if (!embedding_) {
    // A checkpoint that is copied leaves the buffer to the next micro-batch.
    const bool copied = rank_.copies_checkpoints() && !layers_.empty();
    for (std::int64_t i = copied ? 1 : most_in_flight(order_); i > 0; --i) {
      inputs_.push_back(buffer("received input"));
    }
  }
  if (!head_) output_gradient_ = buffer("received gradient");
}

std::vector<DividedUnit*> Engine::units() {
  std::vector<DividedUnit*> list;
  if (embedding_) list = embedding_->units();
  for (const auto& layer : layers_) list.push_back(&layer->unit());
  if (head_) list.push_back(&head_->unit());
  if (head_ && head_->copy() != nullptr) list.push_back(head_->copy());
  return list;
}

// Tokens of a micro-batch, from position `offset` of each sample.
Tokens Engine::tokens(std::int64_t step, std::int32_t micro_batch, std::int64_t offset) const {
  if (!rank_.device().holds_data()) return {};
  const std::int64_t b = problem_.layout.micro_batch;
  const std::int64_t first =
      (place_.dp * micro_batches(problem_) + micro_batch) * b;  // sample of the global batch
  Tokens all;
  for (std::int64_t i = 0; i < b; ++i) {
    const Tokens sample = samples_(step, first + i);
    const auto begin = sample.begin() + offset;
    all.insert(all.end(), begin, begin + problem_.training.sequence_length);
  }
  return all;
}

Half Engine::received_input(std::int32_t micro_batch) {
  const Half buffer = inputs_[static_cast<std::size_t>(micro_batch) % inputs_.size()];
  rank_.pp.receive(buffer, place_.pp - 1);
  return buffer;
}

void Engine::forward(std::int32_t micro_batch, std::int64_t step) {
  Ledger& ledger = rank_.memory.ledger();
  ledger.enter(Phase::forward);
  Passed x = embedding_
                 ? Passed::own(embedding_->forward(micro_batch, tokens(step, micro_batch, 0)))
                 : Passed::lend(received_input(micro_batch));
  for (const auto& layer : layers_) x = Passed::own(layer->forward(micro_batch, std::move(x)));
  if (!head_) return rank_.pp.send(x.view, place_.pp + 1);
  const auto all =
      static_cast<double>(rank_.shape.tokens() * micro_batches(problem_) * problem_.layout.dp);
  loss_ += head_->forward(micro_batch, std::move(x), tokens(step, micro_batch, 1),
                          static_cast<float>(1.0 / all)) /
           all;
}

void Engine::backward(std::int32_t micro_batch) {
  Passed dy;
  if (head_) {
    dy = Passed::own(head_->backward(micro_batch));
  } else {
    rank_.pp.receive(output_gradient_, place_.pp + 1);
    dy = Passed::lend(output_gradient_);
  }
  rank_.memory.ledger().enter(Phase::backward);
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    dy = Passed::own((*layer)->backward(micro_batch, std::move(dy)));
  }
  if (embedding_) embedding_->backward(micro_batch, std::move(dy));
  if (travelling_ != nullptr) travelling_->arrive();
  if (embedding_) return;
  rank_.pp.send(dy.view, place_.pp - 1);
  sent_gradient_ = std::move(dy.owned);
}

double Engine::passes(std::int64_t number) {
  loss_ = 0;
  for (DividedUnit* unit : units()) unit->begin_step();
  for (const Pass& pass : order_) {
    pass.kind == PassKind::forward ? forward(pass.micro_batch, number) : backward(pass.micro_batch);
  }
  sent_gradient_.free();
  return loss_;
}

double Engine::step(std::int64_t number) {
  const double loss = passes(number);
  rank_.memory.ledger().enter(Phase::optimizer_step);
  adam.step = number;
  for (DividedUnit* unit : units()) unit->reduce();
  if (rank_.ends.size() > 1) {
    (embedding_ ? embedding_->words() : *head_->copy()).add_ends(rank_.ends);
  }
  for (DividedUnit* unit : units()) {
    unit->update(adam);
    unit->gather_updated();
  }
  return loss;
}

}  // namespace zeroplan::engine
