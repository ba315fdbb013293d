// Seconds beside bytes: what is timed of a step is all that is predicted of it.
#include "validator/seconds.hpp"

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

RunOptions timed() {
  RunOptions options;
  options.steps = 3;
  options.timed = true;
  return options;
}

// A clock that goes where it is put.
struct Clock {
  double seconds = 0;

  class At final : public Instant {
   public:
    explicit At(double seconds) : seconds_(seconds) {}
    double since(const Instant& earlier) const override {
      return seconds_ - static_cast<const At&>(earlier).seconds_;
    }

   private:
    double seconds_;
  };
  Stopwatch::Point now() const { return std::make_shared<At>(seconds); }
};

// Gathers for ten seconds beside the device; a wait lasts as long as is left of them.
class Slow final : public Communicator {
 public:
  explicit Slow(Clock& clock) : Communicator(0, 2), clock_(clock) {}

 protected:
  void do_all_reduce(Half) override {}
  void do_all_reduce(Wide, Reduction) override {}
  void do_reduce_scatter(Half) override { clock_.seconds += 10; }
  void do_all_gather(Half) override {}
  Pending do_start_all_gather(Half) override {
    Clock end{clock_.seconds + 10};
    return {[this, end] { clock_.seconds = std::max(clock_.seconds, end.seconds); },
            {clock_.now(), end.now()}};
  }
  void do_send(ConstHalf, std::int64_t) override {}
  void do_receive(Half, std::int64_t) override { clock_.seconds += 3; }

 private:
  Clock& clock_;
};

}  // namespace

TEST_CASE("every product and every call of a step is timed") {
  const int zero = GENERATE(0, 1, 2, 3);
  const std::int64_t pp = GENERATE(1, 2);
  const auto [tp, split] = GENERATE(std::pair{1, false}, std::pair{2, true});
  const bool gpt = (zero + pp) % 2 == 0;
  const Layout layout{.dp = 2,
                      .tp = tp,
                      .pp = pp,
                      .micro_batch = 2,
                      .zero = static_cast<ZeroStage>(zero),
                      .sequence_parallel = split,
                      .recompute = zero % 2 == 0 ? Recompute::full : Recompute::none};
  Problem p = tests::tiny_problem(gpt ? tests::tied(tests::tiny_gpt()) : tests::tiny_llama(),
                                  layout, pp + 1);
  p.model.vocab_size = 104;  // padding is multiplied too, and nobody predicts it
  p.runtime.zeroplan = {.prefetch = true, .overlap_comm = true};
  CAPTURE(p.model.name, zero, pp, tp);
  REQUIRE_FALSE(first_violation(p));
  const Evaluator evaluator(p);
  for (const RankReport& rank : run_on_host(p, timed()).ranks) {
    CAPTURE(rank.place.pp, rank.place.tp);
    const StepSeconds predicted = predicted_seconds(p, evaluator, rank.place.pp);
    CHECK(rank.seconds.flops == predicted.flops);
    CHECK(rank.seconds.product_calls == predicted.product_calls);
    CHECK(rank.seconds.products > 0);
    double waited = rank.seconds.products;
    for (const auto& [kind, call] : rank.seconds.calls) {
      CAPTURE(std::get<0>(kind), name_of(std::get<1>(kind)), std::get<2>(kind));
      const auto found = predicted.calls.find(kind);
      CHECK(call.calls == (found == predicted.calls.end() ? 0 : found->second.calls));
      CHECK(call.seconds == call.exposed);  // the host has one thread a rank
      waited += call.exposed;
    }
    CHECK(waited < rank.seconds.step);
    for (const auto& [kind, call] : predicted.calls) CHECK(rank.seconds.calls.count(kind) == 1);
  }
}

TEST_CASE("what travels is waited for only as long as nothing else is done") {
  Clock clock;
  Stopwatch watch([&] { return clock.now(); });
  Slow group(clock);
  group.time_with(&watch, "dp");
  watch.lap();
  const Half none{nullptr, 8};
  const Pending first = group.start_all_gather(none);
  clock.seconds += 7;
  first();
  const Pending second = group.start_all_gather(none);
  clock.seconds += 15;
  second();
  group.start_reduce_scatter(none)();
  group.receive(none, 1);
  const StepSeconds step = watch.lap();
  CHECK(step.step == 38);
  const CallSeconds gathers = step.calls.at({"dp", Collective::all_gather, 16});
  CHECK(gathers.calls == 2);
  CHECK(gathers.seconds == 20);
  CHECK(gathers.exposed == 3);
  const CallSeconds reductions = step.calls.at({"dp", Collective::reduce_scatter, 16});
  CHECK(reductions.calls == 1);
  CHECK(reductions.exposed == 10);
  const CallSeconds messages = step.calls.at({"dp", Collective::send_recv, 16});
  CHECK(messages.calls == 0);
  CHECK(messages.exposed == 3);
  CHECK(ComparedSeconds::hidden(step) == Approx(1 - 16.0 / 33));
  CHECK(watch.lap().calls.empty());
}

TEST_CASE("the step that took longest is laid beside its stage, MFU beside all GPUs") {
  Problem p = tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .pp = 2}, 2);
  p.model.layers = 4;
  RunReport report;
  for (std::int64_t stage = 0; stage < 2; ++stage) {
    RankReport rank;
    rank.place = {.pp = stage};
    rank.seconds = {.step = 1.0 + static_cast<double>(stage), .products = 0.5};
    report.ranks.push_back(rank);
  }
  const Evaluator evaluator(p);
  const ComparedSeconds compared = compared_seconds(p, evaluator, report);
  CHECK(compared.place.pp == 1);
  CHECK(compared.predicted.flops == predicted_seconds(p, evaluator, 1).flops);
  CHECK(compared.predicted.flops > predicted_seconds(p, evaluator, 0).flops);  // the head's
  CHECK(compared.mfu(compared.measured) ==
        Approx(compared.model_flops / 2 / (4 * p.cluster.gpu.bf16_flops)));
  CHECK(compared.product_speed() == compared.predicted.products / 0.5);
  CHECK_FALSE(compared.tells_health());  // a tiny model's products are as short as a start
  p = tests::problem(Runtime::zeroplan, "llama3-8b", {.dp = 2, .pp = 2});
  CHECK(compared_seconds(p, Evaluator(p), report).tells_health());
}
