// What do the convolution and the scan of a state space allocate? Front doors: write_state_scan,
// write_state_scan_backward.
#include "cost_model/runtime/state_scan.hpp"

#include <algorithm>
#include <bit>

#include "cost_model/kernel/state_space.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t bytes_in_fp32 = 4;

// Sizes inside the kernels.
struct KernelSizes {
  const StateScan& z;
  const StateSpaceSpec& m = z.mixer;
  const std::int64_t chunks = z.samples * ceil_div(z.tokens / z.samples, m.chunk);

  Bytes time_steps() const { return z.each(m.heads); }
  /// One a head and token, with those that fill up a chunk.
  Bytes wide_rates() const { return Bytes{bytes_in_fp32 * m.heads * chunks * m.chunk}; }
  Bytes states() const { return Bytes{z.element * state_elements() * chunks}; }
  Bytes wide_states() const { return Bytes{bytes_in_fp32 * state_elements() * chunks}; }
  Bytes last_states() const { return Bytes{bytes_in_fp32 * state_elements() * z.samples}; }
  Bytes pairs() const { return Bytes{bytes_in_fp32 * m.groups * chunks * m.chunk * m.chunk}; }
  Bytes wide_groups() const { return Bytes{bytes_in_fp32 * m.groups * m.state * z.tokens}; }
  /// In how many parts gradients of groups are summed over heads, and those of decays over tokens.
  std::int64_t splits() const { return state_space_splits(m, z.tokens, z.samples); }
  std::int64_t rate_parts() const {
    constexpr std::int64_t tokens_of_part = 32;
    return ceil_div(m.chunk, tokens_of_part);
  }

 private:
  std::int64_t state_elements() const { return m.features() * m.state; }
};

}  // namespace

Bytes StateScan::norm_statistics() const {
  return Bytes{bytes_in_fp32 * mixer.groups * tokens};
}

Bytes StateScan::norm_weight_parts() const {
  constexpr std::int64_t of_warp = 256, most_warps = 8, filled_by = 4;
  const auto group = static_cast<std::uint64_t>(mixer.features() / mixer.groups);
  const auto block = static_cast<std::int64_t>(std::bit_ceil(group));
  const std::int64_t warps = std::clamp<std::int64_t>(block / of_warp, 1, most_warps);
  const std::int64_t parts = ceil_div(multiprocessors * ceil_div(filled_by, warps), mixer.groups);
  return Bytes{bytes_in_fp32 * parts * mixer.features()};
}

TensorList write_state_scan(BlockWriter& w,
                            const StateScan& z,
                            const std::function<void()>& make_outputs) {
  const KernelSizes k{z};
  w.run(Module::convolution);
  const Tensor convolved = w.temporary("convolved", z.mixed());
  w.run(Module::state_scan);
  const Tensor steps = w.temporary("time steps in fp32", k.wide_rates());
  const Tensor decay = w.temporary("decay summed by chunk", k.wide_rates());
  const Tensor written = w.temporary("states of chunks in fp32", k.wide_states());
  const Tensor states = w.temporary("states that chunks begin with", k.states());
  const Tensor last = w.temporary("last states", k.last_states());
  w.free(written);
  const Tensor pairs = w.temporary("pairs of a chunk", k.pairs());
  make_outputs();
  w.free(pairs);
  return {convolved, steps, decay, states, last};
}

void write_state_scan_backward(BlockWriter& w, const StateScan& z) {
  const KernelSizes k{z};
  const auto make = [&](std::string_view name, Bytes bytes) { return w.temporary(name, bytes); };
  const auto in_parts = [&](std::string_view parts_name, std::int64_t parts, std::string_view name,
                            Bytes bytes) {
    const Tensor all = make(parts_name, Bytes{parts * bytes.count()});
    const Tensor sum = make(name, bytes);
    w.free(all);
    return sum;
  };
  const Tensor given = make("time steps", k.time_steps());
  const Tensor steps = make("time steps in fp32", k.wide_rates());
  const Tensor decay = make("decay summed by chunk", k.wide_rates());
  const Tensor pairs = make("pairs of a chunk", k.pairs());
  const Tensor written = make("states of chunks in fp32", k.wide_states());
  const Tensor begun = make("states that chunks begin with, in fp32", k.wide_states());
  const Tensor last = make("last states", k.last_states());
  w.free(written);
  const Tensor before_gate = make("gradient before the gate", z.gates ? z.features() : Bytes{});
  const Tensor of_chunks = make("gradients of states by chunk", k.wide_states());
  const Tensor of_states = make("gradients of states", k.states());
  const Tensor states = make("states that chunks begin with", k.states());
  w.free({of_chunks, begun});
  const Tensor of_steps = make("gradient of time steps in fp32", k.wide_rates());
  const Tensor after = make("decay gradient of chunks after", k.wide_rates());
  const Tensor of_written = in_parts("gradient of what is written, in parts", k.splits(),
                                     "gradient of what is written", k.wide_groups());
  const Tensor before = make("decay gradient of chunks before", k.wide_rates());
  const Tensor of_read = in_parts("gradient of what is read, in parts", k.splits(),
                                  "gradient of what is read", k.wide_groups());
  const Tensor of_pairs =
      in_parts("gradient of pairs, in parts", k.splits(), "gradient of pairs", k.pairs());
  const Tensor turned = make("decay gradient, turned", k.wide_rates());
  const Tensor summed = make("decay gradient, summed", k.wide_rates());
  w.free(turned);
  const Tensor turned_back = make("decay gradient, turned back", k.wide_rates());
  w.free(summed);
  const Tensor within = in_parts("decay gradient within chunks, in parts", k.rate_parts(),
                                 "decay gradient within chunks", k.wide_rates());
  w.free(make("decay gradient of other chunks", k.wide_rates()));
  w.free({steps, of_steps, of_written, of_read, last, given, decay, pairs, states, of_states, after,
          before, of_pairs, turned_back, within, before_gate});
}

}  // namespace zeroplan
