#include "cost_model/question/collective.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

namespace {

// A payload that every count of ranks used here divides.
constexpr Bytes payload{std::int64_t{1} << 40};

double share_sent(Collective collective, std::int64_t ranks) {
  const Bytes sent = sent_bytes_per_rank(collective, ranks, payload);
  return static_cast<double>(sent.count()) / static_cast<double>(payload.count());
}

}  // namespace

TEST_CASE("bytes sent are nccl-tests' factors of the payload") {
  std::ifstream file(source_dir() + "/tests/reference/paper_cases.jsonl");
  int seen = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["expect"]["quantity"] != "busbw_over_algbw") continue;
    std::string name = row["inputs"]["collective"];
    std::ranges::replace(name, '_', '-');
    const auto collective = parse_name<Collective>(name);
    if (!collective) continue;  // reduce: nothing in a training step asks for one
    CAPTURE(row["id"].get<std::string>());
    const std::int64_t ranks = row["inputs"]["ranks"];
    REQUIRE(share_sent(*collective, ranks) == Approx(row["expect"]["value"].get<double>()));
    ++seen;
  }
  REQUIRE(seen >= 24);
}

TEST_CASE("a broadcast and a send move their message once") {
  REQUIRE(share_sent(Collective::broadcast, 8) == 1);
  REQUIRE(share_sent(Collective::send_recv, 2) == 1);
}

TEST_CASE("a rank alone sends nothing") {
  for (std::size_t i = 0; i < names<Collective>().size(); ++i) {
    REQUIRE(sent_bytes_per_rank(static_cast<Collective>(i), 1, payload) == Bytes{});
  }
}

TEST_CASE("parts that do not divide evenly are padded") {
  // 10 bytes over 4 ranks: parts of 3.
  REQUIRE(sent_bytes_per_rank(Collective::all_gather, 4, Bytes{10}) == Bytes{9});
  REQUIRE(sent_bytes_per_rank(Collective::all_reduce, 4, Bytes{10}) == Bytes{18});
}

// Narayanan et al. 2021, section 3.2: 8 b s h (t-1)/t elements a layer, as 4 all-reduces of b s h.
TEST_CASE("tensor parallelism sends what Megatron's formula says") {
  const Bytes activations{2 * 2048 * std::int64_t{12288}};
  const Bytes layer = 4 * sent_bytes_per_rank(Collective::all_reduce, 8, activations);
  REQUIRE(12 * layer == Bytes{2 * std::int64_t{2'113'929'216}});
}

// ZeRO, section 7.2.1: an all-reduce sends what a reduce-scatter and an all-gather send.
TEST_CASE("sequence parallelism costs no more bytes than an all-reduce") {
  for (const std::int64_t ranks : {2, 4, 8, 64}) {
    REQUIRE(sent_bytes_per_rank(Collective::reduce_scatter, ranks, payload) +
                sent_bytes_per_rank(Collective::all_gather, ranks, payload) ==
            sent_bytes_per_rank(Collective::all_reduce, ranks, payload));
  }
}

// Megatron-Core MoE report, section 1.2: tokens x top-k x hidden x (ep-1)/ep elements.
TEST_CASE("a dispatch to 64 experts' ranks sends what the report says") {
  const Bytes tokens{std::int64_t{4096} * 8 * 7168};
  REQUIRE(sent_bytes_per_rank(Collective::all_to_all, 64, tokens) == Bytes{231'211'008});
}
