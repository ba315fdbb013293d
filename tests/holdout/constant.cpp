// What is fitted on steps? Front doors: studies, find_constant.
#include "tests/holdout/constant.hpp"

#include <array>

namespace zeroplan::holdout {
namespace {

constexpr std::size_t blackwell = 0;
constexpr std::size_t hopper = 1;
constexpr std::size_t ampere = 2;

using C = TimeConstants;

constexpr std::array ampere_constants{
    Constant{"a.gemm", [](C& c) -> double& { return c.generations[ampere].gemm.sustained.efficiency; }, 0.81},
    Constant{"a.k0", [](C& c) -> double& { return c.generations[ampere].gemm.sustained.k0; }, 100},
    Constant{"a.start", [](C& c) -> double& { return c.generations[ampere].gemm.sustained.start; }, 7e-6},
    Constant{"a.streaming", [](C& c) -> double& { return c.generations[ampere].memory.streaming; }, 0.75},
    Constant{"a.flash_backward", [](C& c) -> double& { return c.generations[ampere].attention.backward; }, 0.5},
    Constant{"flash1_slowness", [](C& c) -> double& { return c.kernels.flash1_slowness; }, 1.6},
    Constant{"eager_passes", [](C& c) -> double& { return c.kernels.eager_passes; }, 1},
    Constant{"local_passes", [](C& c) -> double& { return c.kernels.local_passes; }, 1},
    Constant{"local_gap", [](C& c) -> double& { return c.kernels.local_gap; }, 1e-6},
    Constant{"unaligned", [](C& c) -> double& { return c.kernels.unaligned_slowness; }, 1},
    Constant{"head_waste", [](C& c) -> double& { return c.kernels.head_tile_waste; }, 1},
    Constant{"local_host", [](C& c) -> double& { return c.host.local; }, 1e-6},
    Constant{"local_tp", [](C& c) -> double& { return c.host.local_per_doubling_of_tp; }, 1e-6},
    Constant{"plain_softmax", [](C& c) -> double& { return c.host.plain_softmax; }, 1e-6},
    Constant{"local_wait", [](C& c) -> double& { return c.step.local_layers_wait; }, 1e-6},
    Constant{"straggling", [](C& c) -> double& { return c.step.straggling; }, 1e-6},
};

constexpr std::array hopper_constants{
    Constant{"h.gemm", [](C& c) -> double& { return c.generations[hopper].gemm.sustained.efficiency; }, 0.72},
    Constant{"h.streaming", [](C& c) -> double& { return c.generations[hopper].memory.streaming; }, 0.8},
    Constant{"h.flash2_backward", [](C& c) -> double& { return c.generations[hopper].flash2.backward; }, 0.34},
    Constant{"overlap", [](C& c) -> double& { return c.step.overlap_slowdown; }, 0.126},
    Constant{"nanotron_slice", [](C& c) -> double& { return c.host.nanotron_slice; }, 1e-9},
    Constant{"nanotron_update", [](C& c) -> double& { return c.host.nanotron_update; }, 1e-6},
};

constexpr std::array blackwell_constants{
    Constant{"b.gemm", [](C& c) -> double& { return c.generations[blackwell].gemm.sustained.efficiency; }, 0.5},
    Constant{"engine_forward", [](C& c) -> double& { return c.host.engine_forward; }, 1e-6},
    Constant{"engine_backward", [](C& c) -> double& { return c.host.engine_backward; }, 1e-6},
    Constant{"scatter", [](C& c) -> double& { return c.kernels.scatter_rate; }, 301e9},
};

constexpr std::array all{
    Study{"Ampere", ampere, ampere_constants},
    Study{"Hopper", hopper, hopper_constants},
    Study{"Blackwell", blackwell, blackwell_constants},
};

}  // namespace

std::span<const Study> studies() {
  return all;
}

const Constant* find_constant(std::string_view name) {
  for (const Study& study : all) {
    for (const Constant& constant : study.constants) {
      if (constant.name == name) return &constant;
    }
  }
  return nullptr;
}

}  // namespace zeroplan::holdout
