// In which order are layouts simple?
#include "planner/simplicity.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Request request_on(Runtime runtime, std::int64_t gpus, std::int64_t sequence = 4096) {
  Request r{.model = find_model("llama3-70b").spec,
            .cluster = cluster_of("H100-80GB", gpus),
            .runtime = load_runtime(runtime, {})};
  r.sequence_length = sequence;
  return r;
}

// A layout that departs in nothing.
Layout plain() {
  return {.tp = 4, .pp = 4, .zero = ZeroStage::optimizer, .sequence_parallel = true};
}

Simplicity simplicity(const Request& r, const Layout& l) {
  return SimplicityOf(r)(problem_of(r, l));
}

}  // namespace

TEST_CASE("each departure from the ordinary makes a layout less simple", "[simplicity]") {
  const Request request = request_on(Runtime::megatron, 64);
  REQUIRE(simplicity(request, plain()).departures == 0);
  struct Given {
    Departure departure;
    void (*change)(Layout&);
  };
  const Given cases[] = {
      {Departure::context, [](Layout& l) { l.cp = 2; }},
      {Departure::tensor_reach, [](Layout& l) { l.tp = 16; }},
      {Departure::zero, [](Layout& l) { l.zero = ZeroStage::parameters; }},
      {Departure::offload, [](Layout& l) { l.offload = Offload::optimizer; }},
      {Departure::recompute, [](Layout& l) { l.recompute_layers = 2; }},
      {Departure::ends, [](Layout& l) { l.first_stage = 19, l.last_stage = 19; }},
      {Departure::groups, [](Layout& l) { l.hsdp = 2; }},
      {Departure::sequence, [](Layout& l) { l.sequence_parallel = false; }},
      {Departure::schedule, [](Layout& l) { l.schedule = Schedule::gpipe; }},
      {Departure::settings, [](Layout& l) { l.reduce_bucket = 50'000'000; }},
  };
  for (const auto& [departure, change] : cases) {
    CAPTURE(name_of(departure));
    Layout l = plain();
    change(l);
    const Simplicity changed = simplicity(request, l);
    REQUIRE(changed.departures == 1U << static_cast<unsigned>(departure));
    REQUIRE(changed.rank() > simplicity(request, plain()).rank());
  }
}

TEST_CASE("each kind of parallelism counts once, from two ranks on", "[simplicity]") {
  const Request request = request_on(Runtime::megatron, 64);
  const std::int64_t none = simplicity(request, {}).kinds;
  for (const auto kind :
       {&Layout::tp, &Layout::pp, &Layout::cp, &Layout::ep, &Layout::etp, &Layout::vpp}) {
    for (const std::int64_t ranks : {2, 4}) {
      Layout l;
      l.*kind = ranks;
      REQUIRE(simplicity(request, l).kinds == none + 1);
    }
  }
}

TEST_CASE("two tensor ranks are enough to miss sequence parallelism, one has none to miss",
          "[simplicity]") {
  const Request request = request_on(Runtime::megatron, 64);
  Layout l = plain();
  l.sequence_parallel = false;
  l.tp = 2;
  REQUIRE(simplicity(request, l).departures == 1U << static_cast<unsigned>(Departure::sequence));
  l.tp = 1;
  REQUIRE(simplicity(request, l).departures == 0);
}

TEST_CASE("a departure outweighs kinds of parallelism, and these outweigh the replica",
          "[simplicity]") {
  const Request request = request_on(Runtime::megatron, 64);
  const auto rank = [&](const Layout& l) { return simplicity(request, l).rank(); };
  Layout all = plain();
  all.vpp = 20;
  all.recompute = Recompute::full;
  const Layout sharded{.zero = ZeroStage::gradients};
  REQUIRE(rank(all) < rank(sharded));

  Layout chunked = plain();
  chunked.vpp = 2;
  Layout more_chunked = plain();
  more_chunked.vpp = 5;
  const Layout replicas{.zero = ZeroStage::optimizer};
  REQUIRE(rank(replicas) < rank(plain()));
  REQUIRE(rank(plain()) < rank(chunked));
  REQUIRE(rank(chunked) == rank(more_chunked));
  Layout wide = plain();
  wide.tp = 8;
  wide.pp = 8;
  REQUIRE(rank(plain()) < rank(wide));
  REQUIRE(rank(wide) < rank(chunked));
}

TEST_CASE("a long sequence asks for context parallelism", "[simplicity]") {
  Layout l = plain();
  l.cp = 4;
  const auto departs = [&](std::int64_t sequence) {
    return simplicity(request_on(Runtime::megatron, 64, sequence), l).departs(Departure::context);
  };
  REQUIRE(departs(4096));
  REQUIRE(departs(8192));
  REQUIRE(!departs(16384));
}

TEST_CASE("a ZeRO stage is ordinary where the runtime has it by default", "[simplicity]") {
  Layout l{.tp = 4, .zero = ZeroStage::parameters, .sequence_parallel = true};
  REQUIRE(simplicity(request_on(Runtime::megatron, 64), l).departs(Departure::zero));
  REQUIRE(!simplicity(request_on(Runtime::fsdp2, 64), l).departs(Departure::zero));
  REQUIRE(!simplicity(request_on(Runtime::deepspeed, 64), l).departs(Departure::zero));
}

TEST_CASE("what is asked for is no departure", "[simplicity]") {
  Request asked = request_on(Runtime::megatron, 64);
  asked.cp = 2;
  asked.zero = ZeroStage::parameters;
  asked.offload = Offload::optimizer;
  asked.hsdp = 2;
  Layout l = plain();
  l.cp = 2;
  l.zero = ZeroStage::parameters;
  l.offload = Offload::optimizer;
  l.hsdp = 2;
  REQUIRE(simplicity(asked, l).departures == 0);
}

// What a search may count on while it chooses field by field.
TEST_CASE("no completion is simpler than what was chosen of it", "[simplicity]") {
  const Request request = request_on(Runtime::megatron, 64);
  const SimplicityOf simplicity(request);
  Layout l = plain();
  l.cp = 2;
  l.recompute = Recompute::selective;
  l.recompute_modules = 2;
  l.hsdp = 2;
  l.sequence_parallel = false;
  l.zero = ZeroStage::gradients;
  const Problem whole = problem_of(request, l);
  std::int64_t last = 0;
  for (std::size_t depth = 0; depth <= choice_order.size(); ++depth) {
    const std::int64_t rank = simplicity(whole, depth).rank();
    REQUIRE(rank >= last);
    last = rank;
  }
  Problem shape = whole;  // the other fields as a search has them before it chooses
  shape.layout = {.dp = whole.layout.dp, .tp = 4, .pp = 4, .cp = 2};
  REQUIRE(simplicity(shape, 7).rank() <= simplicity(whole).rank());
}
