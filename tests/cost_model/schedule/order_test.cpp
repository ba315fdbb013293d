#include "cost_model/schedule/order.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.hpp"
#include "tests/cost_model/schedule/simulation.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::PassTimes;
using tests::simulate;

namespace {

Pipeline pipeline(Schedule schedule, std::int64_t p, std::int64_t m, std::int64_t v = 1) {
  const std::int64_t chunks = schedule == Schedule::interleaved ? v : 1;
  const bool two = schedule == Schedule::zb_v || schedule == Schedule::dualpipe;
  return {.schedule = schedule,
          .ranks = p,
          .chunks = two ? 2 : chunks,
          .micro_batches = m,
          .interleaving = {.group = p}};
}

std::string text(const std::vector<Pass>& order) {
  std::string out;
  for (const Pass& pass : order) {
    const bool late = pass.kind == PassKind::weight_gradient;
    out += pass.kind == PassKind::forward ? 'f' : late ? 'w' : 'b';
    out += std::to_string(pass.micro_batch);
    if (pass.chunk > 0) out += std::string(static_cast<std::size_t>(pass.chunk), '\'');
    out += ' ';
  }
  return out;
}

// Chunks held at most, each from its forward pass to its last gradient.
std::int64_t most_held(const Pipeline& p, std::int64_t rank) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Pass& pass : passes(p, rank)) {
    if (pass.kind == PassKind::forward) ++now;
    if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) --now;
    most = std::max(most, now);
  }
  return most;
}

std::int64_t most_held(const Pipeline& p) {
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < p.ranks; ++rank) most = std::max(most, most_held(p, rank));
  return most;
}

const Schedule all_schedules[] = {Schedule::gpipe,   Schedule::one_f_one_b, Schedule::interleaved,
                                  Schedule::zb_h1,   Schedule::zb_h2,       Schedule::zb_v,
                                  Schedule::dualpipe};

// Every pipeline of this schedule up to some size.
std::vector<Pipeline> pipelines(Schedule schedule) {
  std::vector<Pipeline> list;
  for (const std::int64_t p : {1, 2, 3, 4, 5, 8, 12}) {
    if (schedule == Schedule::dualpipe) {
      if (p % 2 != 0) continue;
      for (std::int64_t m = 2 * p; m <= 5 * p; m += 2) list.push_back(pipeline(schedule, p, m));
    } else if (schedule == Schedule::interleaved) {
      for (const std::int64_t v : {2, 3, 5})
        for (std::int64_t m = p; m <= 4 * p; m += p) list.push_back(pipeline(schedule, p, m, v));
    } else {
      for (std::int64_t m = 1; m <= 4 * p + 1; ++m) list.push_back(pipeline(schedule, p, m));
    }
  }
  return list;
}

}  // namespace

TEST_CASE("the orders of ZB-H1 and ZB-H2 are those of the paper's figures") {
  const Pipeline h1 = pipeline(Schedule::zb_h1, 4, 8);
  REQUIRE(text(passes(h1, 0)) ==
          "f0 f1 f2 f3 b0 w0 f4 b1 w1 f5 b2 w2 f6 b3 w3 f7 b4 w4 b5 w5 b6 w6 b7 w7 ");
  REQUIRE(text(passes(h1, 3)) ==
          "f0 b0 f1 b1 f2 b2 f3 b3 w0 f4 b4 w1 f5 b5 w2 f6 b6 w3 f7 b7 w4 w5 w6 w7 ");
  const Pipeline h2 = pipeline(Schedule::zb_h2, 3, 6);
  REQUIRE(text(passes(h2, 0)) == "f0 f1 f2 f3 f4 b0 w0 f5 b1 w1 b2 w2 b3 w3 b4 w4 b5 w5 ");
  REQUIRE(text(passes(h2, 2)) == "f0 b0 f1 b1 f2 b2 f3 b3 f4 b4 w0 f5 b5 w1 w2 w3 w4 w5 ");
}

TEST_CASE("ZB-V's ranks run both arms of the V") {
  REQUIRE(text(passes(pipeline(Schedule::zb_v, 2, 3), 1)) ==
          "f0 f0' f1 f1' b0' w0' f2 b0 w0 f2' b1' w1' b1 b2' b2 w1 w2' w2 ");
}

// Megatron-LM core/pipeline_parallel/schedules.py get_pp_rank_microbatches.
TEST_CASE("where passes of both directions run as one, a rank is one more ahead") {
  Pipeline p = pipeline(Schedule::interleaved, 2, 4, 2);
  p.interleaving.ahead = 1;
  REQUIRE(text(passes(p, 1)) == "f0 f1 f0' f1' b0' f2 b1' f3 b0 f2' b1 f3' b2' b3' b2 b3 ");
  p.interleaving.ahead = 0;
  REQUIRE(text(passes(p, 1)) == "f0 f1 f0' b0' f1' b1' f2 b0 f3 b1 f2' b2' f3' b3' b2 b3 ");
}

TEST_CASE("each pass runs once, gradients after what they come from, and no rank waits for ever") {
  const Schedule schedule =
      GENERATE(from_range(std::begin(all_schedules), std::end(all_schedules)));
  for (const Pipeline& p : pipelines(schedule)) {
    CAPTURE(name_of(schedule), p.ranks, p.chunks, p.micro_batches);
    for (std::int64_t rank = 0; rank < p.ranks; ++rank) {
      using Key = std::pair<std::int32_t, std::int32_t>;
      std::set<Key> forward, gradient, whole;
      for (const Pass& pass : passes(p, rank)) {
        const Key key(pass.chunk, pass.micro_batch);
        REQUIRE(pass.micro_batch < p.micro_batches);
        switch (pass.kind) {
          case PassKind::forward:
            REQUIRE(forward.insert(key).second);
            break;
          case PassKind::backward:
            REQUIRE(forward.contains(key));
            REQUIRE(gradient.insert(key).second);
            REQUIRE(whole.insert(key).second);
            break;
          case PassKind::input_gradient:
            REQUIRE(forward.contains(key));
            REQUIRE(gradient.insert(key).second);
            break;
          case PassKind::weight_gradient:
            REQUIRE(gradient.contains(key));
            REQUIRE(whole.insert(key).second);
            break;
        }
      }
      const std::int64_t ways = schedule == Schedule::dualpipe ? 2 : 1;
      REQUIRE(static_cast<std::int64_t>(forward.size()) == p.chunks * p.micro_batches / ways);
      REQUIRE(forward == whole);
      REQUIRE(forward == gradient);
    }
    REQUIRE(simulate(p, {}).has_value());
  }
}

// Narayanan et al. (arXiv 2104.04473), section 2.2; Qi et al. (arXiv 2401.10241), Table 2 and
// section 6; DeepSeek-V3 (arXiv 2412.19437), Table 2.
TEST_CASE("schedules hold what is published") {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    const std::int64_t m = 4 * p;
    CAPTURE(p);
    REQUIRE(most_held(pipeline(Schedule::gpipe, p, m)) == m);
    REQUIRE(most_held(pipeline(Schedule::one_f_one_b, p, m)) == p);
    REQUIRE(most_held(pipeline(Schedule::interleaved, p, m, 3)) == 3 * p + p - 1);
    REQUIRE(most_held(pipeline(Schedule::dualpipe, p, m)) == p + 1);
    for (std::int64_t rank = 0; rank < p; ++rank) {
      REQUIRE(most_held(pipeline(Schedule::zb_h1, p, m), rank) == p);
      REQUIRE(most_held(pipeline(Schedule::zb_h2, p, m), rank) == 2 * p - 1);
      REQUIRE(most_held(pipeline(Schedule::zb_v, p, m), rank) == 2 * p);  // half a stage each
    }
  }
}

// Qi et al., Table 2; DeepSeek-V3, Table 2, where B is the whole backward pass.
TEST_CASE("bubbles are as long as published") {
  for (const std::int64_t p : {2, 4, 8, 16}) {
    const std::int64_t m = 4 * p;
    const auto bubble = [&](Schedule schedule, const PassTimes& t, std::int64_t v = 1) {
      const double chunk = t.forward + t.input_gradient + t.weight_gradient;
      const std::int64_t each = schedule == Schedule::interleaved ? v
                                : schedule == Schedule::zb_v      ? 2
                                                                  : 1;
      return *simulate(pipeline(schedule, p, m, v), t) - static_cast<double>(m * each) * chunk;
    };
    CAPTURE(p);
    const auto others = static_cast<double>(p - 1);
    const PassTimes equal;
    REQUIRE(bubble(Schedule::gpipe, equal) == others * 3);
    REQUIRE(bubble(Schedule::one_f_one_b, equal) == others * 3);
    // In units of a chunk's times, the stage's a v-th.
    REQUIRE(bubble(Schedule::interleaved, equal, 4) == others * 3);
    REQUIRE(bubble(Schedule::zb_h1, equal) == others * (1 + 1 - 1));
    REQUIRE(bubble(Schedule::zb_h2, equal) == others * (1 + 1 - 2));
    REQUIRE(bubble(Schedule::zb_v, equal) == 0);
    REQUIRE(bubble(Schedule::dualpipe, equal) == static_cast<double>(p / 2 - 1) * (3 + 2 - 3));
    const PassTimes uneven{.forward = 5, .input_gradient = 5, .weight_gradient = 3};
    REQUIRE(bubble(Schedule::zb_h1, uneven) == others * (5 + 5 - 3));
    REQUIRE(bubble(Schedule::zb_h2, uneven) == others * (5 + 5 - 2 * 3));
  }
}

// Qi et al., Table 5, of the profiled times of Table 9: to the four decimals that are printed.
TEST_CASE("simulated bubble rates are those of Qi et al.") {
  const std::map<std::string, Schedule> names{
      {"1f1b", Schedule::one_f_one_b}, {"zbh1", Schedule::zb_h1}, {"zbh2", Schedule::zb_h2}};
  std::ifstream file(source_dir() + "/tests/reference/paper_cases.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto& in = row.at("inputs");
    if (row.at("expect").at("quantity") != "bubble_rate") continue;
    const auto schedule = names.find(in.at("schedule").get<std::string>());
    if (schedule == names.end()) continue;
    const PassTimes t{in.at("T_F_ms"), in.at("T_B_ms"), in.at("T_W_ms"), in.at("T_comm_ms")};
    const std::int64_t m = in.at("microbatches");
    const double cost = *simulate(pipeline(schedule->second, in.at("pp"), m), t);
    const double work = static_cast<double>(m) * (t.forward + t.input_gradient + t.weight_gradient);
    CAPTURE(row.at("id").get<std::string>());
    REQUIRE(std::round((cost - work) / cost * 1e4) ==
            std::round(row.at("expect").at("value").get<double>() * 1e4));
    ++rows;
  }
  REQUIRE(rows >= 30);
}
