#include "cost_model/question/units.hpp"

#include <type_traits>

#include "tests/catch.hpp"

using namespace zeroplan;

TEST_CASE("only lawful arithmetic on bytes compiles") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, Bytes>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Bytes, double>);
  STATIC_REQUIRE(std::is_constructible_v<Bytes, std::int64_t>);
}

TEST_CASE("a shortfall is an ordinary value") {
  const Bytes free = 1_GiB - 3_GiB;
  REQUIRE(free < Bytes{});
  REQUIRE(gibibytes(free) == -2.0);
}

TEST_CASE("GiB is 2^30") {
  REQUIRE(Bytes{80'000'000'000}.count() < (75_GiB).count());
  REQUIRE((1024_MiB) == 1_GiB);
}

TEST_CASE("padding rounds up, never down") {
  REQUIRE(ceil_div(7, 2) == 4);
  REQUIRE(ceil_div(8, 2) == 4);
  REQUIRE(round_up(50257, 128) == 50304);
  REQUIRE(round_up(50304, 128) == 50304);
}
