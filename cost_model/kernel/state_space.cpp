// What does the mixer of a state space compute and move? Front doors: state_space_flops,
// add_state_space.
// Source: state-spaces/mamba @e9594ce1 mamba_ssm/ops/triton/ssd_combined.py.
#include "cost_model/kernel/state_space.hpp"

#include <algorithm>

namespace zeroplan {

double state_space_flops(const StateSpaceSpec& m) {
  constexpr double of_each = 7;
  return of_each * static_cast<double>(m.features()) * static_cast<double>(m.state);
}

std::int64_t state_space_splits(const StateSpaceSpec& m,
                                std::int64_t tokens,
                                std::int64_t samples) {
  const std::int64_t chunks = samples * ceil_div(tokens / samples, m.chunk);
  const std::int64_t in_group = m.heads / m.groups;
  const std::int64_t together =
      std::clamp<std::int64_t>(ceil_div(chunks * m.heads, multiprocessors), 1, in_group);
  return ceil_div(in_group, together);
}

void add_state_space(std::vector<Traffic>& out,
                     const StateSpaceSpec& m,
                     std::int64_t tokens,
                     std::int64_t samples,
                     StateSpaceCopies copies) {
  // Elements of 16 bits that a token has of each; fp32 counts twice.
  constexpr std::int64_t wide = 2;
  const std::int64_t x = m.features();
  const std::int64_t mixed = m.mixed();
  const std::int64_t group = m.groups * m.state;  // what writes the state, or reads it
  const std::int64_t rates = wide * m.heads;
  const std::int64_t states = x * m.state / m.chunk;
  const std::int64_t pairs = wide * m.groups * m.chunk;
  const std::int64_t sums = wide * state_space_splits(m, tokens, samples) * group;

  const std::int64_t stepped = m.heads + 2 * rates;
  const std::int64_t written = x + group + 2 * rates + wide * states;
  const std::int64_t passed_on = (wide + 1) * states;
  const std::int64_t compared = 2 * group + pairs;
  const std::int64_t scanned = x + group + 2 * rates + pairs + states + x;
  const std::int64_t forward = stepped + written + passed_on + compared + scanned;

  const std::int64_t again = stepped + written + compared + 2 * wide * states;
  const std::int64_t of_states = x + group + rates + wide * states;
  const std::int64_t passed_back = 2 * wide * states + 2 * states;
  const std::int64_t of_features = 2 * x + group + pairs + states + 2 * rates + x + rates;
  const std::int64_t of_groups = 2 * (x + states + 2 * rates + group + 2 * sums + group);
  const std::int64_t of_pairs = 2 * x + 2 * rates + 3 * pairs + 2 * (pairs + 3 * group);
  const std::int64_t of_rates = 2 * x + pairs + 8 * rates;
  const std::int64_t backward =
      again + of_states + passed_back + of_features + of_groups + of_pairs + of_rates;

  const auto add = [&](Module module, Access access, std::int64_t ahead, std::int64_t back) {
    constexpr std::int64_t in_16_bits = 2;
    const auto bytes = [&](std::int64_t elements) { return Bytes{in_16_bits * elements * tokens}; };
    out.push_back({module, access, bytes(ahead), bytes(back)});
  };
  // Each reads and writes what was projected, and what the scan gives.
  constexpr std::int64_t of_exchange = 3;
  const std::int64_t times =
      (copies.turns_samples ? 1 : 0) + (copies.exchanges_heads ? of_exchange : 0);
  const std::int64_t copied = times * 2 * (m.projected() + x);
  add(Module::convolution, Access::streaming, 2 * mixed + copied, 2 * mixed + 3 * mixed + copied);
  add(Module::state_scan, Access::scan, forward, backward);
  add(Module::gated_output, Access::streaming, 3 * x, 6 * x);
}

}  // namespace zeroplan
