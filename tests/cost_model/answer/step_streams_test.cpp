#include "cost_model/answer/step_streams.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "cost_model/pipeline/messages.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

RankStreams streams_of(const Problem& p, std::int64_t rank) {
  const Evaluator evaluator(p);
  return rank_streams(p, evaluator, step_time(p, evaluator), rank, micro_batches(p));
}

// Slices of computing, in order, none before the one ahead of it has ended.
bool computes_one_at_a_time(const RankStreams& streams) {
  double end = 0;
  for (const Slice& slice : streams.slices) {
    if (slice.kind != SliceKind::compute) continue;
    if (slice.start < end - 1e-9 * end) return false;
    end = slice.start + slice.seconds;
  }
  return true;
}

}  // namespace

TEST_CASE("every call of a step stands on its rank's streams once, with the answer's seconds") {
  std::mt19937 random(23);
  tests::Draw draw(random);
  int layouts = 0;
  while (layouts < tests::draws(200)) {
    const std::optional<Problem> drawn = draw.problem({0, 0, 1, 1, 2, 3, 4, 5, 6});
    if (!drawn) continue;
    ++layouts;
    const Problem& p = *drawn;
    const Evaluator evaluator(p);
    const StepTime time = step_time(p, evaluator);
    const std::int64_t rank = draw.pick({0, p.layout.pp / 2, p.layout.pp - 1});
    CAPTURE(layouts, name_of(p.runtime.kind), p.model.name, p.layout.tp, p.layout.pp, p.layout.vpp,
            p.layout.cp, p.layout.ep, p.layout.zero, p.layout.schedule, rank, micro_batches(p));
    const RankStreams streams = rank_streams(p, evaluator, time, rank, micro_batches(p));

    std::size_t calls = 0;
    for (const TimedLoad& load : time.stages[static_cast<std::size_t>(rank)].loads) {
      std::int64_t count = 0;
      double seconds = 0, exposed = 0;
      for (const Slice& slice : streams.slices) {
        if (slice.kind == SliceKind::compute || !slice.call.load.is_like(load.load)) continue;
        ++calls;
        count += slice.call.load.calls;
        seconds += slice.seconds;
        exposed += slice.exposed;
      }
      CAPTURE(load.load.group.name, name_of(load.load.collective), name_of(load.load.during));
      REQUIRE(count == load.load.calls);
      REQUIRE(seconds == Approx(load.seconds));
      REQUIRE(exposed == Approx(load.exposed).margin(1e-12));
    }
    REQUIRE(calls ==
            static_cast<std::size_t>(std::ranges::count_if(
                streams.slices, [](const Slice& s) { return s.kind != SliceKind::compute; })));
    CHECK(computes_one_at_a_time(streams));
  }
}

TEST_CASE("each tensor event of a step stands among its calls once, in order of time") {
  const Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const RankStreams streams = streams_of(p, 0);
  std::vector<bool> seen(streams.events.size());
  double now = 0;
  for (const Occurrence& occurrence : streams.order) {
    if (occurrence.of != Occurrence::Of::tensor) continue;
    REQUIRE_FALSE(seen[occurrence.index]);
    seen[occurrence.index] = true;
    REQUIRE(occurrence.seconds >= now);
    now = occurrence.seconds;
  }
  REQUIRE(static_cast<std::size_t>(std::ranges::count(seen, false)) == streams.first_event);
  REQUIRE(streams.first_event > 0);
}

TEST_CASE("what is reduced at a step's end is sent one after the other, and so is what is gathered") {
  const Problem p = problem(Runtime::megatron, "qwen3-30b-a3b",
                            {.dp = 8, .ep = 4, .zero = ZeroStage::optimizer}, "H100-80GB");
  const RankStreams streams = streams_of(p, 0);
  double ended[2] = {0, streams.clock.updated};  // of reductions and of gathers
  int seen[2] = {0, 0};
  for (const Slice& slice : streams.slices) {
    if (slice.kind != SliceKind::collective || slice.pass != -1) continue;
    const bool gathers = slice.call.load.collective == Collective::all_gather;
    CAPTURE(slice.name, slice.stream);
    CHECK(slice.start >= ended[gathers] * (1 - 1e-9));
    ended[gathers] = slice.start + slice.seconds;
    ++seen[gathers];
  }
  CHECK((seen[0] > 1 && seen[1] > 1));  // of experts and of the rest
}

TEST_CASE("a pass computes all the time that its calls leave it") {
  for (const std::int64_t tp : {1, 8}) {
    const Problem p =
        problem(Runtime::megatron, "llama3-70b", {.tp = tp, .pp = 4, .sequence_parallel = tp > 1});
    const RankStreams streams = streams_of(p, 2);
    double computed = 0, exposed = 0, sent = 0, passes = 0;
    for (const Slice& slice : streams.slices) {
      if (slice.pass < 0) continue;
      if (slice.kind == SliceKind::compute) computed += slice.seconds;
      if (slice.kind == SliceKind::collective) exposed += slice.exposed;
      // A rank of Megatron-Core waits until its neighbour has what it sent.
      if (slice.kind == SliceKind::message) sent += slice.seconds;
    }
    for (const TimedPass& pass : streams.clock.passes) passes += pass.end - pass.start;
    REQUIRE(sends_block(p));
    REQUIRE(computed + exposed + sent == Approx(passes));
    REQUIRE((exposed > 0) == (tp > 1));
  }
}

TEST_CASE("layers stand in the order in which they run, each with its part of the pass") {
  const Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 4});
  const RankStreams streams = streams_of(p, 3);
  std::vector<std::string> names;
  for (const Slice& slice : streams.slices) {
    if (slice.kind == SliceKind::compute && slice.pass == 0) names.push_back(slice.name);
  }
  REQUIRE(names == std::vector<std::string>{"layer 24", "layer 25", "layer 26", "layer 27",
                                            "layer 28", "layer 29", "layer 30", "layer 31",
                                            "head"});
}

TEST_CASE("kernels fill what their block computes, in the order of its program") {
  const Problem p = problem(Runtime::megatron, "mixtral-8x7b",
                            {.dp = 8, .tp = 2, .pp = 2, .ep = 4, .recompute = Recompute::full});
  const RankStreams streams = streams_of(p, 1);
  auto next = streams.kernels.begin();
  for (const Slice& slice : streams.slices) {
    if (slice.kind != SliceKind::compute || slice.pass < 0) continue;
    double seconds = 0;
    for (; next != streams.kernels.end() && next->start < slice.start + (1 - 1e-9) * slice.seconds;
         ++next) {
      REQUIRE(next->start >= slice.start * (1 - 1e-9));
      REQUIRE(next->played.block == slice.block);
      REQUIRE(next->played.pass == slice.pass);
      seconds += next->seconds;
    }
    REQUIRE(seconds == Approx(slice.seconds));
  }
  REQUIRE(next == streams.kernels.end());

  // Attention takes as long each time that it runs forward, and runs again in each backward pass.
  std::map<std::string, std::vector<double>> seconds;
  for (const KernelSlice& kernel : streams.kernels) {
    seconds[kernel.name()].push_back(kernel.seconds);
  }
  const std::vector<double>& forward = seconds["core attention"];
  REQUIRE(forward.size() == static_cast<std::size_t>(16 * micro_batches(p)));
  REQUIRE(seconds["core attention again"].size() == forward.size());
  REQUIRE(seconds["core attention input gradient"].size() == forward.size());
  for (const double each : forward) REQUIRE(each == Approx(forward.front()));
  REQUIRE(seconds["fc1 weight gradient"].size() == forward.size());
  REQUIRE(seconds["loss"].size() == static_cast<std::size_t>(micro_batches(p)));
}
