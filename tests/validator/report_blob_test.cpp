// What a rank reports to rank 0 arrives as it was.
#include "validator/report_blob.hpp"

#include "gpu_probe/environment_error.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/ranks.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

TEST_CASE("a report arrives whole, its parameters as digests") {
  const Problem p = tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .tp = 2});
  const RunReport run = run_on_host(p, {.steps = 2, .timed = true});
  const Closing closing{.used = 7_GiB, .tensors = 5_GiB, .pool = 3_MiB};
  const RankReport& sent = run.ranks.at(3);
  const auto [report, closed] = unpacked(packed(sent, closing));
  REQUIRE(report.place.tp == 1);
  REQUIRE(report.place.dp == 1);
  REQUIRE(report.losses == sent.losses);
  REQUIRE(report.peak.live == sent.peak.live);
  REQUIRE(report.peak.phase == sent.peak.phase);
  REQUIRE(report.peak.tensor == sent.peak.tensor);
  REQUIRE(report.traffic.size() == sent.traffic.size());
  for (std::size_t i = 0; i < sent.traffic.size(); ++i) {
    REQUIRE(report.traffic[i].group == sent.traffic[i].group);
    REQUIRE(report.traffic[i].ranks == sent.traffic[i].ranks);
    REQUIRE(report.traffic[i].traffic == sent.traffic[i].traffic);
  }
  REQUIRE(report.seconds.step == sent.seconds.step);
  REQUIRE(report.seconds.products == sent.seconds.products);
  REQUIRE(report.seconds.flops == sent.seconds.flops);
  REQUIRE(report.seconds.product_calls == sent.seconds.product_calls);
  REQUIRE_FALSE(sent.seconds.calls.empty());
  REQUIRE(report.seconds.calls.size() == sent.seconds.calls.size());
  for (const auto& [kind, call] : sent.seconds.calls) {
    REQUIRE(report.seconds.calls.at(kind).calls == call.calls);
    REQUIRE(report.seconds.calls.at(kind).exposed == call.exposed);
  }
  REQUIRE(closed.used == closing.used);
  REQUIRE(closed.unaccounted() == closing.unaccounted());
  REQUIRE(report.own_parameters.size() == sent.own_parameters.size());

  SECTION("one bit of a parameter changes its digest") {
    RankReport changed = sent;
    changed.own_parameters.at(1).at(5).bits ^= 1U;
    const RankReport other = unpacked(packed(changed, closing)).first;
    const auto bits = [](const std::vector<Bf16>& digest) {
      std::vector<std::uint16_t> all;
      for (const Bf16 part : digest) all.push_back(part.bits);
      return all;
    };
    REQUIRE(bits(other.own_parameters.at(0)) == bits(report.own_parameters.at(0)));
    REQUIRE(bits(other.own_parameters.at(1)) != bits(report.own_parameters.at(1)));
  }
  SECTION("a report that is cut short is refused") {
    Blob blob = packed(sent, closing);
    blob.pop_back();
    REQUIRE_THROWS_AS(unpacked(blob), EnvironmentError);
  }
}

TEST_CASE("ranks and places stand for each other") {
  const Layout layout{.dp = 3, .tp = 2, .pp = 4};
  for (std::int64_t rank = 0; rank < world_size(layout); ++rank) {
    REQUIRE(rank_of(layout, place_of(layout, rank)) == rank);
  }
  REQUIRE(place_of(layout, 1).tp == 1);
  REQUIRE(place_of(layout, 2).dp == 1);
  REQUIRE(place_of(layout, 6).pp == 1);
}

TEST_CASE("an equation closes within 32 MiB and half a percent, either way") {
  Closing closing{.used = 10_GiB, .tensors = 9_GiB, .context = 1_GiB};
  REQUIRE(closing.closes());
  closing.context = 1_GiB - closing.allowed();
  REQUIRE(closing.closes());
  closing.context -= 1_MiB;
  REQUIRE_FALSE(closing.closes());
  closing.context = 1_GiB + closing.allowed() + 1_MiB;
  REQUIRE_FALSE(closing.closes());
}
