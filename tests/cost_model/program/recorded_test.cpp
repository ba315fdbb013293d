#include "cost_model/program/recorded.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/schedule/pipeline.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

constexpr std::int32_t weight = 0, gradient = 1, kept = 2, gone = 3, other = 4;

Event make(std::int32_t slot) {
  return {slot, Event::Kind::allocate};
}
Event drop(std::int32_t slot) {
  return {slot, Event::Kind::free};
}
Event call(std::int32_t index) {
  return {index, Event::Kind::call};
}
Event enter(Phase phase) {
  return {static_cast<std::int32_t>(phase), Event::Kind::phase};
}

// Two micro-batches that share a gradient; the second one is called for. `other` is left by the
// step before, and dropped in the first pass.
RecordedProgram two_micro_batches() {
  RecordedProgram r;
  const auto slot = [&](std::string_view name, std::int64_t bytes, Category category) {
    r.slots.push_back({name, Bytes{bytes}, category});
  };
  slot("weight", 4096, Category::parameters);
  slot("gradient", 2048, Category::gradients);
  slot("kept", 1024, Category::activations);
  slot("gone", 512, Category::temporaries);
  slot("other", 8192, Category::temporaries);
  r.calls.push_back(
      {.group = "dp", .collective = Collective::reduce_scatter, .payload = Bytes{64}});
  r.resident = {weight, other};
  r.passes = {{drop(other), make(kept), make(gone), drop(gone), enter(Phase::loss), make(gone)},
              {make(gradient), drop(gone), drop(kept)},
              {make(kept)},
              {call(0), make(gone), drop(gone), drop(kept)}};
  r.step = {make(gone), drop(gone), drop(gradient), make(other)};
  return r;
}

std::vector<Pass> order_of(const RecordedProgram& r) {
  std::vector<Pass> order;
  for (std::int32_t i = 0; i < r.micro_batches(); ++i) {
    order.push_back({.kind = PassKind::forward, .micro_batch = i});
    order.push_back({.kind = PassKind::backward, .micro_batch = i});
  }
  return order;
}

}  // namespace

TEST_CASE("a recorded step is played as it ran, and folded to the same moment") {
  const RecordedProgram r = two_micro_batches();
  const StageProgram program = program_of(r);
  const std::vector<Pass> order = order_of(r);
  const Playback played = play_step(program, order);
  // At the loss: weight, kept, gone; before it the step's own `other` was there instead.
  REQUIRE(played.peak.live.allocated() == Bytes{4096 + 8192});
  REQUIRE(fold_step(program, order).live == played.peak.live);
  REQUIRE(played.left == sum(program.resident));
  REQUIRE(played.left.allocated() == Bytes{4096});
}

TEST_CASE("the phases of a recorded step are its own") {
  RecordedProgram r = two_micro_batches();
  r.slots[gone].bytes = Bytes{1 << 20};
  r.passes[3] = {call(0), drop(kept)};
  r.step = {drop(gradient), make(other)};
  const StageProgram program = program_of(r);
  const Moment highest = play_step(program, order_of(r)).peak;
  REQUIRE(highest.phase == Phase::backward);
  REQUIRE(highest.tensor == "gradient");
  // The gradient is made beside the loss.
  r.passes[0].insert(r.passes[0].begin() + 5, make(gradient));
  r.passes[1].erase(r.passes[1].begin());
  const StageProgram later = program_of(r);
  REQUIRE(play_step(later, order_of(r)).peak.phase == Phase::loss);
  REQUIRE(fold_step(later, order_of(r)).phase == Phase::loss);
}

TEST_CASE("calls of a recorded step are those of the micro-batches that make them") {
  const RecordedProgram r = two_micro_batches();
  const std::vector<Call> calls = fold_calls(program_of(r), r.micro_batches());
  REQUIRE(calls.size() == 1);
  REQUIRE(calls.front().times == 1);
  REQUIRE(calls.front().during == During::backward);
}

TEST_CASE("what a recorded step finds taken is its model states") {
  RecordedProgram r = two_micro_batches();
  REQUIRE(states_of(r).parameters == Bytes{4096});
  REQUIRE(states_of(r).gradients == Bytes{});
  r.resident.push_back(gradient);
  r.passes[1].erase(r.passes[1].begin());
  r.step.erase(r.step.begin() + 2);
  REQUIRE(states_of(r).gradients == Bytes{2048});
  REQUIRE(sum(program_of(r).resident).allocated() == Bytes{4096 + 2048});
}
